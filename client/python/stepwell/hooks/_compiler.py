"""What torch.compile makes of hooks: nothing. It is not imported for that, for that takes seconds."""

from __future__ import annotations

import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any


def question(torch: Any) -> Callable[[], bool] | None:
    """Whether what runs is being compiled, not called: constant to the compiler. None = there is none."""
    return getattr(getattr(torch, "compiler", None), "is_compiling", None)


def keep_out(torch: Any, owners: Iterable[Any]) -> None:
    """Functions of these are called by what is compiled, and are not for the compiler to look at: it would break its
    graph at each, and say so."""
    skip = _skip(torch)
    if skip is None:
        return
    for owner in owners:
        for function in vars(owner).values() if isinstance(owner, type) else (owner,):
            for code in _codes(getattr(function, "__code__", None)):
                skip(code)


def _skip(torch: Any) -> Callable[[types.CodeType], None] | None:
    """As torch._dynamo.eval_frame.skip_code, of torch 2.0 to 2.6, and of later ones. None = no such thing here."""
    frames: Any = getattr(getattr(getattr(torch, "_C", None), "_dynamo", None), "eval_frame", None)
    if hasattr(frames, "skip_code"):
        skip: Callable[[types.CodeType], None] = frames.skip_code
        return skip
    try:
        strategy = frames._FrameExecStrategy(frames._FrameAction.SKIP, frames._FrameAction.DEFAULT)
        set_strategy = frames.set_code_exec_strategy
    except AttributeError:
        return None

    def skip_code(code: types.CodeType) -> None:
        set_strategy(code, strategy)

    return skip_code


def _codes(code: types.CodeType | None) -> Iterator[types.CodeType]:
    """With those of the functions that are made in it."""
    if code is None:
        return
    yield code
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _codes(inner)
