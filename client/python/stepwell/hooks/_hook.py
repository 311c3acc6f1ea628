"""Hook: one thing of a training that is looked at. One that fails is off from then on, and says so once."""

from __future__ import annotations

from stepwell._load import core
from stepwell._tell import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Hook:
    """`what` is what people call it."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.seen_count = 0
        self.trouble = ""  # why it is off
        self._replaced: list[tuple[Any, str, Any, bool]] = []

    def replace(self, owner: Any, name: str, handler: Callable[..., Any]) -> None:
        """handler(original, *args, **keywords) is called in place of owner.name. Where there is none: nothing."""
        original = getattr(owner, name, None)
        if original is None or isinstance(original, core.Hooked):
            return
        is_own = name in vars(owner)
        setattr(owner, name, core.Hooked(original, handler))
        self._replaced.append((owner, name, original, is_own))

    def fail(self, error: BaseException) -> None:
        """Puts back what was there. What others put over it meanwhile stays."""
        if self.trouble:
            return
        self.trouble = f"{type(error).__name__}: {error}"
        for owner, name, original, is_own in self._replaced:
            try:
                if not isinstance(vars(owner).get(name), core.Hooked):
                    continue
                if is_own:
                    setattr(owner, name, original)
                else:
                    delattr(owner, name)
            except Exception:  # it goes on as it is: its handler does nothing any more
                continue
        say(f"stepwell: {self.what} is not recorded any more: {self.trouble}")
