"""The callbacks of a framework that times none of them: each call is a timing `callback/CLASS/EVENT`."""

from __future__ import annotations

import sys
import time

from stepwell.integrations._guard import guarded
from stepwell.integrations._watch import watch_call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from stepwell.integrations._training import Training
    from stepwell.integrations._watch import Watches

_FRAME_COUNT_MAX = 8


def _beside(callback: Any) -> list[Any]:
    """Those that a framework calls together with this one, which it hands to none of them: of who calls it now."""
    frame = sys._getframe(1)
    for _ in range(_FRAME_COUNT_MAX):
        if frame.f_back is None:
            break
        frame = frame.f_back
        listed = getattr(frame.f_locals.get("self"), "callbacks", None)
        if isinstance(listed, list) and any(one is callback for one in listed):
            return [one for one in listed if one is not callback]
    return []


@guarded
def watch_callbacks(callback: Any, base: type, training: Training, watches: Watches) -> None:
    """Called by `callback`, of those that are called together with it."""
    watch_each(_beside(callback), base, training, watches)


@guarded
def watch_each(callbacks: list[Any], base: type, training: Training, watches: Watches) -> None:
    """`base` is the class of all of them. What they do nothing at is left out, and what is watched already."""
    events = [name for name in vars(base) if name.startswith("on_")]
    for one in callbacks:
        for event in events:
            if getattr(type(one), event, None) is not getattr(base, event):
                _watch(one, event, training, watches)


def _watch(callback: Any, event: str, training: Training, watches: Watches) -> None:
    name = f"callback/{type(callback).__name__}/{event}"
    begun: list[float] = []

    def begin(*_: Any, **__: Any) -> None:
        begun.append(time.perf_counter())

    def end() -> None:
        training.took(name, time.perf_counter() - begun.pop())

    watches.add(watch_call(callback, event, begin, end))
