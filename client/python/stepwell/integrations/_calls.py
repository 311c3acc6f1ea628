"""Calls of frameworks that train: which of them go on, where one is made within another."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from stepwell.integrations._training import Training

    # Of a frame its code, its place and the instruction that it is at; of a call its own and those of all that called it. The
    # frames themselves are not held: their locals may be models.
    Frames = list[tuple[Any, int, int]]

    class Watcher(Protocol):
        training: Training
        around: Watcher | None

        def anew(self) -> Watcher: ...
        def train_ends(self) -> None: ...


def frames() -> Frames:
    """Of this thread, the innermost first."""
    found = []
    frame: Any = sys._getframe(1)
    while frame is not None:
        found.append((frame.f_code, id(frame), frame.f_lasti))
        frame = frame.f_back
    return found


def call_of(function: str, there: Frames) -> Frames:
    """The innermost of that name; empty where there is none."""
    names = [code.co_name for code, _, _ in there]
    return there[names.index(function) :] if function in names else []


def goes_on(call: Frames, there: Frames) -> bool:
    """Whether it is among those. The place of a frame that is over may be another's, also of the same code: who called this one
    waits at the same instruction still. Only a call from the same line of the same caller, as in a loop, passes for it."""
    if not 0 < len(call) <= len(there):
        return False
    now = there[-len(call) :]
    return now[0][:2] == call[0][:2] and now[1:] == call[1:]


def is_within(call: Frames) -> bool:
    """Whether this thread is in that call, as goes_on() tells it, without a list of all frames: each event asks."""
    frame: Any = sys._getframe(1)
    for number, (code, place, at) in enumerate(call):
        while number == 0 and frame is not None and (id(frame) != place or frame.f_code is not code):
            frame = frame.f_back
        if frame is None or (number > 0 and (id(frame) != place or frame.f_lasti != at or frame.f_code is not code)):
            return False
        frame = frame.f_back
    return bool(call) and frame is None


def watcher_of(callback: Any) -> Any:
    """The innermost of those that this callback has: of the training that its framework tells of now."""
    watcher: Watcher = callback._stepwell
    while watcher.around is not None and not watcher.training.goes_on():
        watcher.train_ends()  # again, where it was not left by an exception
        callback._stepwell = watcher = watcher.around
    return watcher


def watcher_begins(callback: Any, function: str = "fit") -> Any:
    """That of a training that begins now. One callback may be given to a training and to another that begins within that,
    which has a watcher of its own."""
    watcher: Watcher = watcher_of(callback)
    if watcher.training.goes_on_around(function):
        inner = watcher.anew()
        inner.around = watcher
        callback._stepwell = watcher = inner
    return watcher
