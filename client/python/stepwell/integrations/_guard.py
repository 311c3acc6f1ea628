"""Nothing of ours is raised into a training: what fails warns once, and is left out."""

from __future__ import annotations

import functools

from stepwell._tell import described, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_told: set[str] = set()


def tell_once(what: str, error: BaseException) -> None:
    if what in _told:
        return
    _told.add(what)
    warn(f"stepwell: {what} is not recorded: {described(error)}")


def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Its exceptions are a warning. What is no Exception, as Ctrl-C, passes."""

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except Exception as error:
            tell_once(function.__qualname__, error)
            return None

    return call


def guard_methods(kind: type) -> type:
    """Guards all of a class's own methods but the special ones."""
    for name, value in list(vars(kind).items()):
        if not name.startswith("__") and callable(value) and not isinstance(value, (type, staticmethod, classmethod)):
            setattr(kind, name, guarded(value))
    return kind
