"""Closings: windows of a run that were left, and whether the master has them. With the run's lock held, but for waits."""

from __future__ import annotations

import time

from stepwell._load import core

_KEPT_MAX = 4  # each holds descriptors
_SLICE_MS = 50  # of a wait: a signal's handler runs between two


def is_stored_within(closing: object, wait_ms: int) -> bool:
    """`closing` as core.close_begin() gives it."""
    until = time.monotonic() + wait_ms / 1000
    while closing is not None:
        left_ms = max(0, int(1000 * (until - time.monotonic())))
        told = core.close_await(closing, min(left_ms, _SLICE_MS))
        if told != 0 or left_ms == 0:
            return told == 1
    return False


class Closings:
    """Those that may not be stored yet, the last ones."""

    def __init__(self) -> None:
        self._kept: list[object] = []

    def keep(self, closing: object) -> None:
        waiting = [one for one in self._kept if core.close_await(one, 0) != 1]
        if closing is not None:
            waiting.append(closing)
        self._kept = waiting[-_KEPT_MAX:]

    def take(self, closing: object) -> list[object]:
        """All of them, and this one, which is None where nothing was open."""
        waiting, self._kept = self._kept, []
        return waiting if closing is None else [*waiting, closing]


def are_stored_within(closings: list[object], wait_ms: int) -> bool:
    until = time.monotonic() + wait_ms / 1000
    told = [is_stored_within(one, max(0, int(1000 * (until - time.monotonic())))) for one in closings]
    return all(told)
