"""A small model that is run before workers are forked, which inherit what that leaves behind.

That is what QEMU has translated: it translates code when that first runs, which takes longer than
anything else that a worker does before it is ready.
"""

from __future__ import annotations

import threading
from base64 import b64decode

from edgeflare_agent.runtime.session_options import Options
from edgeflare_agent.runtime.tflite.interpreter import LoadedModel
from edgeflare_agent.runtime.warm_up import warm_up

MODEL = b64decode(
    "GAAAAFRGTDMAAA4AFAAQAAwACAAAAAQADgAAABAAAAAYAAAA4AAAAAMAAAABAAAABAAAAKj///8BAAAAEAAAAAwA"
    "FAAQAAwACAAEAAwAAAAQAAAAUAAAAFQAAABYAAAAAQAAABQAAAAAAA4AFAAAABAADAALAAQADgAAABQAAAAAAABO"
    "EAAAABQAAAAEAAQABAAAAAEAAAABAAAAAQAAAAAAAAABAAAAAQAAAAEAAAAAAAAAAgAAADAAAAAEAAAA5P///wgA"
    "AAAMAAAAAgAAAHQxAAABAAAAAQAAAAwADAAIAAAAAAAEAAwAAAAIAAAADAAAAAIAAAB0MAAAAQAAAAEAAAABAAAA"
    "EAAAAAwADAALAAAAAAAEAAwAAABlAAAAAAAAZQ=="
)
"""One operator, ABS, of one float32 value."""


def rehearse() -> None:
    """Run the small model as workers run theirs; afterwards no thread is left.

    Raises:
        RuntimeMissing: there is no runtime.
        ModelRejected: the runtime refuses the model.

    """
    # When a process starts its first thread, QEMU discards all that it has translated. Each worker
    # starts one; here it is done before there is anything to discard.
    thread = threading.Thread(target=threading.get_ident)
    thread.start()
    thread.join()
    warm_up(LoadedModel(MODEL, Options("xnnpack")), 1)
