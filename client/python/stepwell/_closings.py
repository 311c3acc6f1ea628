"""Closings: windows of a run that were left, and whether the master has them."""

from __future__ import annotations

import time

from stepwell._load import core

KEPT_WHOLE = 8  # each holds descriptors and rings, and has an agent started where there is none
KEPT_MAX = 4096  # a page each, with what the agent says of it
_ASKED = 64  # of those before the last ones, each time that a window is left
_MEMORY_ONLY = 2  # core.state()
_SLICE_MS = 50  # of a wait: a signal's handler runs between two


class Closings:
    """Those of a run that are not known to be stored. With the run's lock held, but for waits. An interrupt at any line
    leaves it telling too little of what is stored, never too much."""

    def __init__(self) -> None:
        self._kept: list[object] = []  # as core.close_begin() puts them there, the oldest first
        self._next = 0  # that is asked
        self.unknown_count = 0  # that nobody will tell of: refused ones, and more at a time than are kept

    def leave(self, is_switched_off: bool) -> bool:
        """Closes what is recorded into. False = nothing is. What loops go on to call is a loss, but where it is switched off."""
        self._let_go()
        return (core.switch_off_begin if is_switched_off else core.close_begin)(self._kept)

    def _let_go(self) -> None:
        """Of what is stored, and for one more of what the others hold."""
        last = self._kept[1 - KEPT_WHOLE :]
        before = self._kept[: 1 - KEPT_WHOLE]
        first = self._next if self._next < len(before) else 0
        self._next = first + _ASKED
        for one in before[first : first + _ASKED]:
            core.close_ease(one)  # from here on it waits for an agent that has not come yet
            self._forget(one)
        # An agent that was not seen so far may come, but for what is in memory alone.
        is_kept = core.state() != _MEMORY_ONLY
        for one in last:
            self._forget(one, is_kept)
        while len(self._kept) >= KEPT_MAX:
            self.unknown_count += 1
            del self._kept[:1]

    def _forget(self, one: object, is_kept: bool = False) -> None:
        """Where it is known what became of it; of what nobody says so far it is not, if that is kept."""
        told = core.close_await(one, 0)
        if told == 0 or (told < 0 and is_kept):
            return
        if told < 0:
            self.unknown_count += 1
        try:
            self._kept.remove(one)
        except ValueError:
            pass  # a signal's handler has closed the run meanwhile

    def waiting(self) -> list[object]:
        return list(self._kept)

    def take(self) -> list[object]:
        waiting, self._kept = self._kept, []
        return waiting


def are_stored_within(closings: list[object], wait_ms: int) -> bool:
    until = time.monotonic() + wait_ms / 1000
    are_stored = True
    for one in reversed(closings):
        told = _told_within(one, until)
        are_stored = are_stored and told == 1
        if told < 0:
            until = 0.0  # where nobody takes this one, nobody comes for those before it
    return are_stored


def _told_within(closing: object, until: float) -> int:
    """1 = stored, 0 = not yet, -1 = nobody will say. Any number of threads may ask."""
    while True:
        left_ms = max(0, int(1000 * (until - time.monotonic())))
        told = core.close_await(closing, min(left_ms, _SLICE_MS))
        if told != 0 or left_ms == 0:
            return told
