"""For tests only: a launcher whose workers have broken kernels.

Called as `python faulty_kernels.py -m MODULE ARGUMENT…`, it runs the module as Python would, but
what the kernels do depends on the first byte of the input:

    101  SIGSEGV            102  hangs                      103  the runtime answers with an error
    104  leaves by exit 7   105  SIGKILL, as when the system is out of memory
    106  SIGSEGV the first time only (the file named by $FAULTY_ONCE remembers)
    107  spins in a thousand threads, deaf to every signal that can be ignored
    108  SIGSEGV, after it has written over where the worker notes at which input it is
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from edgeflare_agent.runtime.tflite.interpreter import LoadedModel

_invoke = LoadedModel.invoke


def _broken_invoke(model: LoadedModel, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    match inputs[0].tobytes()[0]:
        case 101 | 105 as fault:
            os.kill(os.getpid(), {101: signal.SIGSEGV, 105: signal.SIGKILL}[fault])
        case 102:
            while True:
                time.sleep(60)
        case 103:
            raise RuntimeError("node 3 (CONV_2D)\nfailed to invoke")
        case 104:
            sys.stderr.write("kernel: arena overflow\n")
            os._exit(7)
        case 106:
            once = Path(os.environ["FAULTY_ONCE"])
            if not once.exists():
                once.touch()
                os.kill(os.getpid(), signal.SIGSEGV)
        case 107:
            _spin()
        case 108:
            _overwrite(inputs[0])
    _invoke(model, inputs, outputs)


def _overwrite(memory: Any) -> None:
    while isinstance(memory, np.ndarray):
        memory = memory.base
    memoryview(memory)[:8] = b"\x7f" * 8
    os.kill(os.getpid(), signal.SIGSEGV)


def _spin() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    threading.stack_size(1 << 16)
    for _ in range(1000):
        threading.Thread(target=time.sleep, args=(3600,)).start()
    sys.stderr.write("spinning\n")
    while True:
        pass


if __name__ == "__main__":
    setattr(LoadedModel, "invoke", _broken_invoke)  # noqa: B010
    module = sys.argv[3]  # after -c and what it runs
    sys.argv = [module, *sys.argv[4:]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
