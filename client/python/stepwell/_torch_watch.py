"""torch's profilers as they begin and end, whoever made them: torch.profiler, autograd's, emit_nvtx, and those of libraries
over these. Our scopes are in each that records, and a capture of ours makes room for one that a program begins.

It stands before functions of torch.autograd that all of them call, which are private: where a torch has others it watches
nothing. What is told of a profiler is kept with the thread that began it, as torch does.
"""

from __future__ import annotations

import functools
import sys
import weakref

from stepwell import _mirroring
from stepwell._tell import described, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import local as _local
    from typing import Any
else:
    from _thread import _local  # which costs no import of threading

# What it may be wanted for.
SCOPES = "scopes"  # in each profiler
ROOM = "room"  # of a capture, for theirs

_SUFFIXES = {"torch.autograd.profiler": "", "torch.autograd.profiler_legacy": "_legacy"}


class _Begun:
    """A profiler that is not ours and records, or is about to. Gone with its thread."""


class _Thread(_local):
    def __init__(self) -> None:
        self.is_ours = False  # what is called now
        self.prepared: _Begun | None = None
        self.begun: list[_Begun] = []


_thread = _Thread()
_active: weakref.WeakSet[_Begun] = weakref.WeakSet()
_wanted: set[str] = set()
_put: dict[tuple[str, str], tuple[Any, Any]] = {}  # by module and name: what was there, and what is


def put(what: str = SCOPES) -> bool:
    """Into the torch that is imported, for this. Whether it sees them begin and end. Again: changes nothing."""
    _wanted.add(what)
    for module_name, suffix in _SUFFIXES.items():
        module = sys.modules.get(module_name)
        if module is not None:
            _put_into(module, module_name, suffix)
    if what == SCOPES:
        for profiler in list(_active):
            _mirroring.begin(profiler)
    return ("torch.autograd.profiler", "_enable_profiler") in _put


def remove(what: str = SCOPES) -> None:
    """Nobody is told of anything for it any more. Once it is wanted for nothing, what was there is there again, unless others
    stand before it."""
    _wanted.discard(what)
    if what == SCOPES:
        for profiler in list(_active):
            _mirroring.end(profiler)
    if _wanted:
        return
    _active.clear()
    for (module_name, name), (original, watched) in list(_put.items()):
        module = sys.modules.get(module_name)
        if getattr(module, name, None) is watched:
            setattr(module, name, original)
            del _put[module_name, name]


def is_other_active() -> bool:
    """One that is not ours, of any thread, as far as it was watched."""
    return len(_active) > 0


def after_fork() -> None:
    """In a child: nobody ends its parent's."""
    global _thread
    _thread = _Thread()
    _active.clear()


class Ours:
    """Of what this thread begins and ends within it nobody is told."""

    def __enter__(self) -> None:
        _thread.is_ours = True

    def __exit__(self, *exception: object) -> None:
        _thread.is_ours = False


def _put_into(module: Any, module_name: str, suffix: str) -> None:
    # First the end: a begin without one would leave the scopes on for ever.
    watches = {"_disable_profiler": _watched_end, "_enable_profiler": _watched_begin, "_prepare_profiler": _watched_prepare}
    for name, watch in watches.items():
        name += suffix
        original = getattr(module, name, None)
        before, watched = _put.get((module_name, name), (original, None))
        if not callable(original):
            if watch is _watched_end:
                return
            continue
        # What stands before ours calls it, we think. What was there before ours does not.
        if original is before:
            watched = watch(original)
            _put[module_name, name] = (original, watched)
            setattr(module, name, watched)


def _watched_prepare(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def watched(*args: Any, **keywords: Any) -> Any:
        if not _wanted or _thread.is_ours:
            return original(*args, **keywords)
        _tell(_make_room)
        result = original(*args, **keywords)
        _tell(_prepared)
        return result

    return watched


def _watched_begin(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def watched(*args: Any, **keywords: Any) -> Any:
        if not _wanted or _thread.is_ours:
            return original(*args, **keywords)
        _tell(_make_room)
        _thread.prepared = None
        result = original(*args, **keywords)
        _tell(_begun)
        return result

    return watched


def _watched_end(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def watched(*args: Any, **keywords: Any) -> Any:
        if not _wanted or _thread.is_ours:
            return original(*args, **keywords)
        is_ended = False
        try:
            result = original(*args, **keywords)
            is_ended = True
            return result
        finally:  # one that cannot end records no more, either
            _tell(_ended if is_ended else _ended_with_error)

    return watched


def _tell(what: Callable[[], None]) -> None:
    try:
        what()
    except Exception as error:
        warn(f"stepwell: our scopes are not in torch's profiler: {described(error)}")


def _make_room() -> None:
    capture = sys.modules.get("stepwell._native_capture")
    if capture is not None:
        capture.make_room()


def _prepared() -> None:
    if not _wanted:  # room was made, which was all
        return
    _thread.prepared = _Begun()
    _active.add(_thread.prepared)


def _begun() -> None:
    if not _wanted:
        return
    profiler = _Begun()
    _thread.begun.append(profiler)
    _active.add(profiler)
    if SCOPES in _wanted:
        _mirroring.begin(profiler)


def _ended() -> None:
    if not _thread.begun and _thread.prepared is None:  # torch lets some end in another thread than they began in
        _forget(next(iter(list(_active)), None))
        return
    _ended_with_error()


def _ended_with_error() -> None:
    """Where this thread began none, torch says that there is none."""
    _thread.prepared = None
    if _thread.begun:
        _forget(_thread.begun.pop())


def _forget(profiler: _Begun | None) -> None:
    if profiler is not None:
        _active.discard(profiler)
        _mirroring.end(profiler)
