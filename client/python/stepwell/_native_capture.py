"""`stepwell capture --native`: torch.profiler over the steps for which an agent asks, in a program that knows nothing of it.

The extension calls tend() where steps begin and end, once one was asked for. It starts and ends the profiler there, on the
training's thread, since torch's is one of its thread; what it saw is written by a thread of its own. Never raises.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import weakref

from stepwell import _identity, _mirroring, _run, _torch_export, _torch_watch
from stepwell._load import core
from stepwell._tell import described, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from typing import Any
    from threading import local as _local
else:
    from _thread import _local  # which costs no import of threading

# As spool_format.h of the recorder has them.
_RUNNING, _HANDED_OVER, _NO_PROFILER, _BUSY, _LATE, _FAILED, _NOT_WRITTEN, _NO_STEPS = range(1, 9)
_STEP_ENDS, _STEP_BEGAN, _LOOP_IS_LEFT = range(3)
# As long as a master waits at most: an agent that was killed takes nothing back.
_SECONDS_MAX = 600.0

_taking: _Taking | None = None
_taken = 0  # the request that was taken up last, or answered
_writing: threading.Thread | None = None


class _Token:
    pass


class _Thread(_local):
    """A token that is gone with its thread."""

    def __init__(self) -> None:
        self.token = _Token()


_thread = _Thread()


def tend(upcoming: int, moment: int) -> bool:
    """Whether the next moment is of interest, too."""
    try:
        if _taking is not None and _taking.tend(upcoming, moment):
            return True
        return _look(upcoming, moment)  # another one may be wanted by now
    except BaseException as error:
        _give_up(error)
        if not isinstance(error, Exception):  # the training's
            raise
        return False


def recording_ends(wait_s: float) -> None:
    """Before the recorder closes: what is recorded is handed over, and that awaited so long."""
    try:
        if _taking is not None and _taking.is_of_this_thread:
            _taking.end(_NO_STEPS)
        if _writing is not None and wait_s > 0:
            _writing.join(wait_s)
    except Exception as error:
        _give_up(error)


def make_room() -> None:
    """The program begins a profiler of its own, beside which torch has no other."""
    taking = _taking
    try:
        if taking is not None and not taking.make_room():
            taking.end(_BUSY)
    except Exception as error:
        _give_up(error)


def after_fork() -> None:
    """In a child, which has a copy of the profiler, whose operators nobody asks for."""
    global _taking, _writing
    taking, _taking, _writing = _taking, None, None
    try:
        torch = sys.modules.get("torch")
        if taking is not None and taking.is_of_this_thread and torch is not None:
            torch.autograd._enable_record_function(False)
    except Exception:
        pass  # it gathers them
    _torch_watch.remove(_torch_watch.ROOM)


def _look(upcoming: int, moment: int) -> bool:
    global _taken
    request, first, count = core.capture_wanted()
    if request in (0, _taken):
        return False
    if upcoming < first or moment == _LOOP_IS_LEFT:
        return True
    if upcoming > first:
        return _refuse(request, _LATE)
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "autograd"):  # or it is being imported
        return _refuse(request, _NO_PROFILER)
    if not _torch_watch.put(_torch_watch.ROOM):
        _torch_watch.remove(_torch_watch.ROOM)
        return _refuse(request, _NO_PROFILER)  # theirs would find ours, and fail
    if _torch_watch.is_other_active() or torch.autograd._profiler_enabled():
        _torch_watch.remove(_torch_watch.ROOM)
        return _refuse(request, _BUSY)
    _taken = request
    _begin(_Taking(request, first, count), upcoming, moment)
    return True


def _begin(taking: _Taking, upcoming: int, moment: int) -> None:
    global _taking
    _taking = taking
    taking.begin()
    if moment == _STEP_BEGAN:
        taking.tend(upcoming, moment)


def _refuse(request: int, outcome: int) -> bool:
    """False, as there is nothing more to do."""
    global _taken
    _taken = request
    core.capture_answer(request, outcome, 0)
    return False


def _answer(request: int, outcome: int, step_count: int = 0) -> None:
    if request == _taken:  # else another one was taken up meanwhile
        core.capture_answer(request, outcome, step_count)


def _let_go() -> None:
    global _taking
    _taking = None
    _torch_watch.remove(_torch_watch.ROOM)


def _give_up(error: BaseException) -> None:
    global _taken
    taking = _taking
    warn(f"stepwell: what was asked of torch's profiler is not captured: {described(error)}")
    if taking is None:
        request, _, _ = core.capture_wanted()
        if request not in (0, _taken):
            _refuse(request, _FAILED)
        return
    _let_go()
    taking.drop()
    _answer(taking.request, _FAILED)


class _Taking:
    """torch.profiler over some steps. Of one thread."""

    def __init__(self, request: int, first: int, count: int) -> None:
        self.request = request
        self._first = first
        self._count = count
        self._over = 0
        self._epoch = -1
        self._until = time.monotonic() + _SECONDS_MAX
        self._gives_way = False
        self._owner = weakref.ref(_thread.token)
        self._profile: Any = None
        self._step: Any = None  # its record_function, as profilers with a schedule have one

    @property
    def is_of_this_thread(self) -> bool:
        return self._owner() is _thread.token

    def begin(self) -> None:
        from torch import profiler

        self._profile = profiler.profile()
        with _torch_watch.Ours():
            self._profile.start()
        _mirroring.begin(self)
        _answer(self.request, _RUNNING)

    def make_room(self) -> bool:
        """False where it can be ended here: torch ends one on its thread alone, which does at its next moment."""
        self._gives_way = True
        return not self.is_of_this_thread

    def tend(self, upcoming: int, moment: int) -> bool:
        """False once it is over."""
        if not self.is_of_this_thread:
            return not self._has_lost_its_thread()
        if moment == _STEP_ENDS:
            self._end_step()
            return True
        if moment == _STEP_BEGAN:
            self._over = min(max(upcoming - self._first, 0), self._count)
        if moment == _LOOP_IS_LEFT and self._over == 0 and self._is_wanted():
            return self._wait()
        if moment == _LOOP_IS_LEFT or self._over == self._count or not self._is_wanted():
            self.end(_BUSY if self._gives_way else _NO_STEPS)
            return False
        self._begin_step(upcoming)
        return True

    def _is_wanted(self) -> bool:
        """Nobody may, where the caller gave up."""
        return not self._gives_way and core.capture_wanted()[0] == self.request and time.monotonic() < self._until

    def _has_lost_its_thread(self) -> bool:
        """Which has ended within a step, and its profiler with it."""
        if self._owner() is not None:
            return False
        _mirroring.end(self)
        _let_go()
        _answer(self.request, _NO_STEPS)
        return True

    def _wait(self) -> bool:
        """The fetch of the first step found its loop's end: the step comes with the next loop."""
        global _taken
        _let_go()
        _taken = 0
        self.drop()
        return True

    def end(self, otherwise: int) -> None:
        """With the steps that are over; the answer where there is none."""
        from stepwell import _trace_writing  # which imports threading

        self._end_step()
        self._epoch = _trace_writing.epoch()
        _mirroring.end(self)
        with _torch_watch.Ours():
            self._profile.stop()
        _let_go()
        if self._over == 0:
            _answer(self.request, otherwise)
            return
        self._write_apart()

    def _write_apart(self) -> None:
        global _writing
        from stepwell import _trace_writing

        try:
            _writing = _trace_writing.apart(self._write)
        except RuntimeError as error:
            warn(f"stepwell: what torch's profiler saw is lost: {described(error)}")
            _answer(self.request, _NOT_WRITTEN)

    def drop(self) -> None:
        """Else it would gather operators until the process ends."""
        try:
            self._end_step()
            _mirroring.end(self)
            with _torch_watch.Ours():
                self._profile.stop()
        except Exception:
            pass  # it was not begun, or could not be ended

    def _begin_step(self, batch: int) -> None:
        from torch.profiler import record_function

        self._step = record_function(f"ProfilerStep#{batch}")
        self._step.__enter__()

    def _end_step(self) -> None:
        step, self._step = self._step, None
        if step is not None:
            step.__exit__(None, None, None)

    def _write(self) -> None:
        path = ""
        try:
            last = self._first + self._over - 1
            rank = _rank()
            # In any epoch: its agent tells the master the name before, and the epoch goes with the file.
            name = f"capture-{_torch_export.stem(0, last, rank)}.pt.trace.json"
            path = os.path.join(os.path.abspath(tempfile.mkdtemp(prefix="stepwell-traces-")), name)
            _torch_export.write(self._profile.profiler, path, rank)
            self._profile = None  # which holds all it saw
            if core.upload_trace(os.fsencode(path), self._epoch, self._first, last, True):
                _answer(self.request, _HANDED_OVER, self._over)
                return
            warn("stepwell: no agent takes what torch's profiler saw, which is not kept")
        except Exception as error:
            warn(f"stepwell: what torch's profiler saw is lost: {described(error)}")
        if path:
            _torch_export.remove(path, True)
        _answer(self.request, _NOT_WRITTEN)


def _rank() -> int:
    run = _run._run
    rank: Any = run._options["rank"] if run is not None else None
    return _identity.rank(None if rank is None or rank < 0 else rank)
