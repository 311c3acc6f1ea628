"""KeptIterator: that of a DataLoader whose workers persist, which the loader keeps where a loop over it was left by `break`.

Who else holds it is told by its count of references, against that of when one name more than the loader did.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _holder_count(found: Callable[[], Any]) -> int:
    """By one way from both places: how often a call holds its arguments differs between Pythons."""
    thing = found()
    return sys.getrefcount(thing)


class KeptIterator:
    """The last one."""

    def __init__(self) -> None:
        self._found: Callable[[], Any] | None = None
        self._count = 0

    def watch(self, found: Callable[[], Any]) -> None:
        """`found` is a weak reference to what its loader holds and one name of the caller's."""
        self._found, self._count = found, _holder_count(found)

    def found_left(self) -> Any:
        """It, where nobody but its loader holds it; None otherwise."""
        if self._found is None or self._found() is None or _holder_count(self._found) >= self._count:
            return None
        return self._found()
