"""Hook: one thing of a training that is looked at. One that fails is off from then on, and says so once."""

from __future__ import annotations

import functools
import pkgutil
import types

from stepwell._load import core
from stepwell._tell import described, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


_MARK = "_stepwell_hooked"
_NOT_WANTED = "not wanted"


def _function(original: Callable[..., Any], hooked: Any, is_compiling: Callable[[], bool]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **keywords: Any) -> Any:
        return original(*args, **keywords) if is_compiling() else hooked(*args, **keywords)

    setattr(call, _MARK, True)
    return call


def _place(owner: Any, name: str) -> str:
    """As pkgutil.resolve_name takes it."""
    if isinstance(owner, types.ModuleType):
        return f"{owner.__name__}:{name}"
    return f"{owner.__module__}:{owner.__qualname__}.{name}"


def _reduced(place: str, hooked: Any) -> Any:
    """For pickle: the name that the original has, where that is the hooked one's, too; else a call that finds it. Both
    load where nothing is hooked, and where there is no Stepwell."""
    original = hooked.__wrapped__
    try:
        if pkgutil.resolve_name(f"{original.__module__}:{original.__qualname__}") is hooked:
            return original.__qualname__
    except Exception:  # it says a name that is nobody's
        pass
    return pkgutil.resolve_name, (place,)


class Hook:
    """`what` is what people call it."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.seen_count = 0
        self._seen_before = 0  # the run
        self.trouble = ""  # why it is off
        self.missed = ""  # why it was never put in, for a run's end to say
        self._replaced: list[tuple[Any, str, Any, Any, bool]] = []
        self._calls: list[Any] = []

    def handle(self, call: Any) -> Any:
        """A TimedCall or FetchCall of this hook's, which its handler lets go alone."""
        self._calls.append(call)
        return call

    def forbid_plain(self) -> None:
        for call in self._calls:
            call.is_plain = False

    def run_begins(self) -> None:
        """What it saw before is another one's. A call that is plain is not counted: each has its handler once more."""
        self._seen_before = self.seen_count
        self.forbid_plain()

    @property
    def is_seen(self) -> bool:
        """In this run."""
        return self.seen_count > self._seen_before

    def replace(
        self, owner: Any, name: str, handler: Callable[..., Any], is_compiling: Callable[[], bool] | None = None, *,
        is_followed: bool = False,
    ) -> None:  # fmt: skip
        """handler(original, *args, **keywords) is called in place of owner.name. Where there is none: nothing. With
        is_compiling a compiler that looks for functions of Python finds one, and through it the original. With is_followed the handler is called also
        where nothing is recorded, but a schedule is followed."""
        original = getattr(owner, name, None)
        if original is None or isinstance(original, core.Hooked) or hasattr(original, _MARK):
            return
        hooked = core.Hooked(original, handler, functools.partial(_reduced, _place(owner, name)), is_followed)
        put = hooked if is_compiling is None else _function(original, hooked, is_compiling)
        self.put(owner, name, put)

    def put(self, owner: Any, name: str, put: Any) -> None:
        """In place of owner.name, now, or when the program wants it once more; one that failed puts nothing in any more."""
        self._replaced.append((owner, name, getattr(owner, name), put, name in vars(owner)))
        if not self.trouble:
            setattr(owner, name, put)

    def put_there(self) -> list[tuple[Any, Any, Any]]:
        """Owners, what was there, and what is there in its place."""
        return [(owner, original, put) for owner, _, original, put, _ in self._replaced]

    def fail(self, error: BaseException) -> None:
        """It is off from now on."""
        if self.trouble:
            return
        self.trouble = described(error)
        self.put_back()
        say(f"stepwell: {self.what} is not recorded any more: {self.trouble}")

    def leave_out(self, why: str) -> None:
        """It is off, which is said at the end where nobody else told the same."""
        self.trouble = self.missed = why
        self.put_back()

    def refuse(self) -> None:
        """The program wants none."""
        self.trouble = self.trouble or _NOT_WANTED
        self.put_back()

    def put_again(self) -> None:
        """The program wants it once more. What others put there meanwhile stays."""
        if self.trouble != _NOT_WANTED:
            return
        self.trouble = ""
        for owner, name, original, put, is_own in self._replaced:
            if vars(owner).get(name) is (original if is_own else None):
                setattr(owner, name, put)

    def put_back(self) -> None:
        """What others put over it meanwhile stays."""
        self.forbid_plain()
        for owner, name, original, put, is_own in self._replaced:
            try:
                if vars(owner).get(name) is not put:
                    continue
                if is_own:
                    setattr(owner, name, original)
                else:
                    delattr(owner, name)
            except Exception:  # it goes on as it is: its handler does nothing any more
                continue
