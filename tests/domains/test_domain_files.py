"""The files in which each domain keeps its inputs."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from edgeflare import class_registry
from edgeflare.class_registry import InstalledClasses
from edgeflare.core.domain import Domain
from edgeflare.core.input_space import Input
from edgeflare.core.views import ImageView, ValuesView
from edgeflare.domains import domain_registry
from edgeflare.domains.array_domain import DTYPES, ArrayDomain
from edgeflare.domains.audio.audio_domain import AudioDomain
from edgeflare.domains.audio.wav_file import WavFormat, wav_format
from edgeflare.domains.domain_registry import DOMAINS, decoder_of_file, find_domain
from edgeflare.domains.frames_domain import FramesDomain
from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.domains.tokens_domain import TokensDomain
from edgeflare.errors import UserError

NEEDED = {"tokens": {"vocabulary": 9}}
"""Settings that a domain cannot do without."""

CHANNELS = st.sampled_from([1, 3, 4])
WAVES = st.integers(0, 60).flatmap(lambda samples: arrays(np.int16, (samples,)))
INPUTS: dict[str, st.SearchStrategy[Any]] = {
    "array": st.tuples(st.sampled_from(DTYPES), array_shapes(min_dims=1, max_dims=2)).flatmap(
        lambda both: arrays(both[0], both[1])
    ),
    "audio": WAVES,
    "frames": st.tuples(array_shapes(min_dims=3, max_dims=3, max_side=6), CHANNELS).flatmap(
        lambda both: arrays(np.uint8, (*both[0], both[1]))
    ),
    "image": st.tuples(st.integers(1, 9), st.integers(1, 9), CHANNELS).flatmap(
        lambda shape: arrays(np.uint8, shape)
    ),
    "tokens": st.integers(0, 30).flatmap(lambda length: arrays(np.int32, length)),
}


@pytest.mark.parametrize("name", DOMAINS.names())
@given(data=st.data())
def test_a_file_keeps_an_input_to_the_bit_and_is_read_without_its_pair(
    name: str, data: st.DataObject
) -> None:
    domain, one = find_domain(name, NEEDED.get(name, {})), data.draw(INPUTS[name])
    assert domain.name == name
    file = domain.encode_file(one)
    kept = decoder_of_file(f"findings/000001{domain.suffix}")(file)
    assert kept is not None
    assert (kept.dtype, kept.shape, kept.tobytes()) == (one.dtype, one.shape, one.tobytes())
    assert domain.encode_file(one) == file


@pytest.mark.parametrize(
    ("domain", "data"),
    [
        *(
            (ArrayDomain, data)
            for data in (b"no archive", ArrayDomain.encode_file(np.array(["a"])))
        ),
        (FramesDomain, FramesDomain.encode_file(np.zeros((2, 3, 3, 1), np.uint8))[:-1]),
        (FramesDomain, FramesDomain.encode_file(np.zeros((3, 3), np.uint8))),
        (FramesDomain, ArrayDomain.encode_file(np.zeros((2, 3, 3, 1)))),
        *((ImageDomain, data) for data in (b"", b"no image", b"\x89PNG\r\n\x1a\n")),
        *((TokensDomain, data) for data in (b"", b"[1, 2", b"{}", b"3", b"[1.5]", b"[true]")),
        *((TokensDomain, data) for data in (b'["a"]', b"[2147483648]", b"[" * 99_999)),
    ],
)
def test_a_file_of_something_else_is_none(domain: type[Domain], data: bytes) -> None:
    assert domain.decode_file(data) is None


@pytest.mark.parametrize(
    "file",
    [
        ArrayDomain.encode_file(np.arange(30, dtype=np.float32)),
        AudioDomain().encode_file(np.arange(20, dtype=np.int16)),
    ],
)
@given(share=st.floats(0.0, 1.0, exclude_max=True))
def test_a_file_without_its_end_is_none(file: bytes, share: float) -> None:
    for domain in (ArrayDomain, AudioDomain):
        assert domain.decode_file(file[: int(share * len(file))]) is None


@given(wave=WAVES, sample_rate=st.integers(1, 2**31 - 1))
def test_a_sound_is_kept_and_shown_at_its_own_sample_rate(wave: Input, sample_rate: int) -> None:
    """Whatever that of the domain is which reads it."""
    own = AudioDomain(sample_rate)
    file = own.encode_file(wave)
    assert wav_format(file) == WavFormat(sample_rate, 1, 16)
    view = AudioDomain(16_000).view_file(file)
    assert view is not None
    assert view.sample_rate == own.view(wave).sample_rate == sample_rate
    assert np.array_equal(view.wave, wave)
    assert view.wave.flags.writeable


def test_files_are_shown_as_the_domain_shows_inputs() -> None:
    domain = ArrayDomain("int16", -5, 9)
    values = domain.view_file(domain.encode_file(np.array([1, 2], np.int16)))
    assert isinstance(values, ValuesView)
    assert (values.values.tolist(), values.lowest, values.highest) == ([1, 2], -5, 9)
    image = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    shown = ImageDomain().view_file(ImageDomain.encode_file(image))
    assert isinstance(shown, ImageView)
    assert np.array_equal(shown.pixels, image)
    assert ImageDomain().view_file(b"no image") is None
    assert AudioDomain().view_file(b"no sound") is None


def test_no_two_domains_share_a_suffix() -> None:
    suffixes = [DOMAINS.find(name).suffix for name in DOMAINS.names()]
    assert not [one for one in suffixes if sum(other.endswith(one) for other in suffixes) > 1]


def test_a_broken_domain_of_another_package_harms_no_file_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entries = [
        EntryPoint("aardvark", "no_such_module:Domain", "edgeflare.domains"),
        *entry_points(group="edgeflare.domains"),
    ]
    monkeypatch.setattr(class_registry, "entry_points", lambda **_group: entries)
    monkeypatch.setattr(
        domain_registry, "DOMAINS", InstalledClasses("edgeflare.domains", "domain", Domain)
    )
    assert decoder_of_file("findings/000001.png") == ImageDomain.decode_file
    with pytest.raises(UserError, match="'aardvark' of package unknown: it does not load"):
        decoder_of_file("findings/000001.doc")


def test_a_file_of_no_domain_is_refused() -> None:
    known = ", ".join(DOMAINS.names())
    assert known == "array, audio, frames, image, tokens"
    with pytest.raises(UserError, match=f"is no file of any domain; there are {known}"):
        decoder_of_file("seed.doc")
