"""What a run has to do with captures by a native profiler, which is loaded once one is asked for."""

from __future__ import annotations

import sys

from stepwell._load import core
from stepwell._tell import described, warn

_FAILED = 6  # kCaptureFailed of the recorder's spool_format.h


def tend(upcoming: int, moment: int) -> bool:
    """Of the extension, once an agent asks."""
    try:
        from stepwell import _native_capture
    except Exception as error:  # no descriptor is left, say
        warn(f"stepwell: what was asked of torch's profiler is not captured: {described(error)}")
        core.capture_answer(core.capture_wanted()[0], _FAILED, 0)
        return False
    return _native_capture.tend(upcoming, moment)


def recording_ends(wait_s: float) -> None:
    capture = sys.modules.get("stepwell._native_capture")
    if capture is not None:
        capture.recording_ends(wait_s)


def await_traces(wait_s: float | None = None) -> None:
    """What is left for the agent lies where the recorder that is open has its own. Not with the run's lock held."""
    writing = sys.modules.get("stepwell._trace_writing")
    if writing is not None:
        writing.wait(wait_s)


def after_fork() -> None:
    for name in ("stepwell._native_capture", "stepwell._torch_watch", "stepwell._mirroring",
                 "stepwell._trace_writing"):  # fmt: skip
        module = sys.modules.get(name)
        if module is not None:
            module.after_fork()
