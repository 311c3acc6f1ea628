"""What torch's profiler saw on its way into a file: by a thread of its own, so that no step waits for a disk."""

from __future__ import annotations

import os
import threading

from stepwell import _run
from stepwell._load import core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_writing: threading.Thread | None = None


def apart(write: Callable[[], None]) -> threading.Thread | None:
    """None = it is written already: at the interpreter's end, which awaits no more threads. Raises RuntimeError where the system
    has no more of them."""
    main = threading.main_thread()
    if threading.current_thread() is main and not main.is_alive():
        write()
        return None
    thread = threading.Thread(target=write, name="stepwell-capture", daemon=False)
    thread.start()
    return thread


def one_at_a_time(write: Callable[[], None]) -> None:
    """What is to be written is held until then: a disk that is slower than the training holds it up, and does not fill memory."""
    global _writing
    wait()
    try:
        _writing = apart(write)
    except RuntimeError:
        write()


def wait(seconds: float | None = None) -> None:
    """For what one_at_a_time() was given last. Not in a signal's handler, say, that came while its thread has the run's lock: who
    writes waits for that."""
    global _writing
    writing, run = _writing, _run._run
    if writing is None or writing is threading.current_thread() or (run is not None and run._lock._is_owned()):
        return
    writing.join(seconds)
    if not writing.is_alive() and _writing is writing:
        _writing = None


def upload(path: str, epoch: int, first: int, last: int, is_ours: bool) -> bool:
    """Whether an agent will find word of it. Of any thread: not between the two halves of a flush()."""
    run = _run._run
    words = (os.fsencode(path), epoch, first, last, is_ours)
    if run is None:
        return bool(core.upload_trace(*words))
    with run._lock:
        return bool(core.upload_trace(*words))


def epoch() -> int:
    """That this process said last; -1 = it said none."""
    run = _run.open_run()
    return -1 if run is None else run._epoch


def after_fork() -> None:
    """In a child, which has no such thread."""
    global _writing
    _writing = None
