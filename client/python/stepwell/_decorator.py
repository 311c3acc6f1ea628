"""A scope as a decorator: the calls of a function are timed, each by itself."""

from __future__ import annotations

import functools
import inspect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Union

    from stepwell._absent import Scope as AbsentScope
    from stepwell._core import Scope
    from stepwell._device_scope import DeviceScope

    AnyScope = Union[Scope, AbsentScope, DeviceScope]


def timed(scope: AnyScope, function: Callable[..., Any]) -> Callable[..., Any]:
    """A coroutine's time reaches from its start to its end, a generator's from its first item to its last."""
    if isinstance(function, (type, staticmethod, classmethod)):
        kind = "class" if isinstance(function, type) else type(function).__name__
        raise TypeError(f"stepwell: scope {scope.name!r} decorates a {kind}; allowed: a function, inside of it")
    if not callable(function):
        raise TypeError(f"stepwell: scope {scope.name!r} decorates a {type(function).__name__}; allowed: a function")
    if inspect.isasyncgenfunction(function):
        raise TypeError(f"stepwell: scope {scope.name!r} decorates an asynchronous generator; allowed: a function, a coroutine, "
                        "a generator; in this one `async with` of the scope")  # fmt: skip
    if inspect.iscoroutinefunction(function):
        return _timed_coroutine(scope, function)
    if inspect.isgeneratorfunction(function):
        return _timed_generator(scope, function)

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        with scope:
            return function(*args, **keywords)

    return call


def _timed_coroutine(scope: AnyScope, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def call(*args: Any, **keywords: Any) -> Any:
        # Tasks interleave: each has one of its own, which lies in no other's.
        with scope._apart():
            return await function(*args, **keywords)

    return call


def _timed_generator(scope: AnyScope, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        with scope._apart():
            return (yield from function(*args, **keywords))

    return call
