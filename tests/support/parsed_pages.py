"""An HTML page taken apart, whose elements have to be closed in their order."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

Attributes = dict[str, str | None]

VOID = {"meta", "link", "img", "input", "br"}


@dataclass
class Parsed(HTMLParser):
    """A page taken apart: its elements, and their texts."""

    page: str
    elements: list[tuple[str, Attributes]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in {"style", "script"} and data.strip():
            self.texts.append(" ".join(data.split()))

    def all(self, tag: str) -> list[Attributes]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self) -> str:
        return " ".join(self.texts)


def well_formed(page: str) -> Parsed:
    """The page taken apart, once its elements are closed and its links lead somewhere in it."""
    parsed = Parsed(page)
    assert parsed.open == []
    ids = [one["id"] for _, one in parsed.elements if "id" in one]
    assert len(ids) == len(set(ids))
    for _, attributes in parsed.elements:
        assert attributes.get("aria-labelledby", ids[0]) in ids
    for link in parsed.all("a"):
        assert str(link["href"])[1:] in ids
    return parsed


def asks_for_nothing(parsed: Parsed) -> None:
    """Check that a page runs no script, and holds all that it shows."""
    assert not parsed.all("script")
    (policy,) = [one["content"] for one in parsed.all("meta") if "http-equiv" in one]
    assert policy is not None
    assert policy.startswith("default-src 'none'; img-src data:;")
    for _, attributes in parsed.elements:
        address = attributes.get("src") or attributes.get("href") or "#"
        assert address.startswith(("data:", "#"))
