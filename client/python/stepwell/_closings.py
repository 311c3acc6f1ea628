"""Closings: windows of a run that were left, and whether the master has them."""

from __future__ import annotations

import time
from _thread import RLock  # type: ignore[attr-defined]  # older declarations lack it

from stepwell._load import core

KEPT_MAX = 8  # each holds descriptors, and rings
_SLICE_MS = 50  # of a wait: a signal's handler runs between two


class Closing:
    """One window's, as core.close_begin() gives it. Any thread may ask, also while another one waits: the recorder answers
    them one after the other."""

    def __init__(self, held: object) -> None:
        self._held = held
        self._told = 0
        self._asking = RLock()

    def ask(self, wait_ms: int) -> int:
        """1 = stored, 0 = not yet, -1 = nobody will say."""
        if self._told == 0 and self._asking.acquire(timeout=wait_ms / 1000):
            try:
                if self._told == 0:
                    self._told = core.close_await(self._held, wait_ms)
                if self._told != 0:
                    self._held = None  # with what it holds
            finally:
                self._asking.release()
        return self._told

    def is_stored_within(self, wait_ms: int) -> bool:
        until = time.monotonic() + wait_ms / 1000
        while True:
            left_ms = max(0, int(1000 * (until - time.monotonic())))
            told = self.ask(min(left_ms, _SLICE_MS))
            if told != 0 or left_ms == 0:
                return told == 1


class Closings:
    """Those of a run that are not known to be stored: the last ones, and of others how many. With the run's lock held,
    but for waits."""

    def __init__(self) -> None:
        self._kept: list[Closing] = []
        self.unknown_count = 0  # that nobody will tell of: refused ones, and more at a time than are kept

    def leave(self) -> bool:
        """Closes what is recorded into. False = nothing is."""
        self.unknown_count += 1  # an interrupt may come before it is kept
        held = core.close_begin()
        told = [(one, one.ask(0)) for one in self._kept]
        waiting = [one for one, answer in told if answer == 0]
        if held is not None:
            waiting.append(Closing(held))
        self._kept = waiting[-KEPT_MAX:]
        self.unknown_count += sum(answer < 0 for _, answer in told) + len(waiting) - len(self._kept) - 1
        return held is not None

    def waiting(self) -> list[Closing]:
        return list(self._kept)

    def take(self) -> list[Closing]:
        waiting, self._kept = self._kept, []
        return waiting


def are_stored_within(closings: list[Closing], wait_ms: int) -> bool:
    until = time.monotonic() + wait_ms / 1000
    told = [one.is_stored_within(max(0, int(1000 * (until - time.monotonic())))) for one in closings]
    return all(told)
