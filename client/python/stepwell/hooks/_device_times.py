"""DeviceTimes: how long the device worked on what a scope gave it, by events on the stream that it is given on.

Nothing is waited for: events are asked a step later at the earliest, and those that have not come to pass are asked
again. While a graph is captured no event is recorded, nor asked.
"""

from __future__ import annotations

import time
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Protocol

    class Event(Protocol):
        """As torch.cuda.Event, with timing."""

        def record(self) -> None: ...
        def query(self) -> bool: ...
        def elapsed_time(self, end: Event, /) -> float: ...

    Store = Callable[[str, int, int, float], None]

_PENDING_COUNT_MAX = 1024  # of a device that is a few steps behind


class DeviceTimes:
    """`make_event` makes one that tells its time, `is_capturing` says whether the current stream records a graph,
    `current_device` which device the current stream is of;
    store(name, batch, start in microseconds since 1970, seconds) takes what is known. Of one thread.

        token = times.begin("forward", batch)
        ...
        times.end(token)
        times.read(batch)        # at each step's end
    """

    def __init__(
        self, make_event: Callable[[], Event], is_capturing: Callable[[], bool], store: Store,
        current_device: Callable[[], int] = lambda: 0,
    ) -> None:  # fmt: skip
        self._make_event = make_event
        self._is_capturing = is_capturing
        self._store = store
        self._current_device = current_device
        self._free: dict[int, list[Any]] = {}  # by device: an event is that one's on which it was recorded first
        self._pending: deque[tuple[str, int, int, int, Any, Any]] = deque()
        self.given_up_count = 0
        self._is_given_up = False

    def begin(self, name: str, batch: int) -> tuple[str, int, int, int, Any] | None:
        if self._is_capturing():
            return None
        if self._is_given_up:
            self._drop()
        if len(self._pending) >= _PENDING_COUNT_MAX:
            self.given_up_count += 1
            return None
        device = self._current_device()
        return name, batch, time.time_ns() // 1000, device, self._recorded(device)

    def end(self, token: tuple[str, int, int, int, Any] | None) -> None:
        # One that began before a capture and ends in it has no end.
        if token is None or self._is_capturing():
            return
        device = self._current_device()
        if device != token[3]:  # between events of two devices there is no time
            self.given_up_count += 1
            return
        self._pending.append((*token, self._recorded(device)))

    def _recorded(self, device: int) -> Any:
        free = self._free.get(device)
        event = free.pop() if free else self._make_event()
        event.record()
        return event

    def give_up(self) -> None:
        """At a run's end: what is not known yet is nobody's, for another run's batches have the same numbers. From any
        thread."""
        if not self._is_given_up:
            self.given_up_count += len(self._pending)
        self._is_given_up = True

    def _drop(self) -> None:
        self._is_given_up = False
        self._pending.clear()

    def read(self, batch: int | None) -> None:
        """Of batches before this one, None = of all. In the order in which they were given: the device works in that,
        too."""
        if self._is_given_up:
            self._drop()
        if not self._pending or self._is_capturing():
            return
        while self._pending:
            name, of_batch, time_us, device, start, end = self._pending[0]
            if of_batch == batch or not end.query():
                return
            self._pending.popleft()
            self._store(name, of_batch, time_us, start.elapsed_time(end) / 1000)
            self._free.setdefault(device, []).extend((start, end))
