"""Our scopes as NVTX's ranges, in a process that a profiler of these has begun: Nsight Systems, say, names the library that takes
them in NVTX_INJECTION64_PATH. Ranges are of a thread, which has a stack of them."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import local as _local
    from typing import Any
else:
    from _thread import _local  # which costs no import of threading

_functions: tuple[Callable[[str], Any], Callable[[], Any]] | None = None  # push and pop
_is_forked = False


class _Thread(_local):
    def __init__(self) -> None:
        self.open: list[_Range] = []


_thread = _Thread()


class _Range:
    """One whose scope another thread left, or left before those within it, is popped with what lies above it."""

    __slots__ = ("_is_over",)

    def __init__(self) -> None:
        self._is_over = False

    def __exit__(self, *exception: object) -> None:
        self._is_over = True
        _pop_those_over()


def prepare() -> bool:
    """Before the training's steps, as something may be imported for it. False = there will be no ranges."""
    global _functions
    if _is_forked:
        return False
    if _functions is None:
        _functions = _of_package()
    return True


def begin(name: str) -> _Range:
    """As a context that is entered. Where nothing makes ranges yet it is none."""
    global _functions
    made = _Range()
    if _functions is None:
        _functions = _of_torch()
        if _functions is None:
            return made
    _pop_those_over()
    _functions[0](name)
    _thread.open.append(made)
    return made


def after_fork() -> None:
    """What was injected is as the fork found it, with its locks: profilers take nothing from a child unless it is exec'ed."""
    global _functions, _is_forked, _thread
    _is_forked = True
    _functions = None
    _thread = _Thread()


def _pop_those_over() -> None:
    opened = _thread.open
    while opened and opened[-1]._is_over:
        opened.pop()
        if _functions is not None:
            _functions[1]()


def _of_package() -> tuple[Callable[[str], Any], Callable[[], Any]] | None:
    try:
        import nvtx

        if not getattr(nvtx, "enabled", lambda: True)():
            return None
        push, pop = nvtx.push_range, nvtx.pop_range
        return (lambda name: push(name, None)), pop  # it looks for matplotlib's colors where one is named
    except Exception:  # there is none, or it cannot be loaded
        return None


def _of_torch() -> tuple[Callable[[str], Any], Callable[[], Any]] | None:
    """Of the torch that is imported: one without CUDA has functions that raise."""
    if not getattr(sys.modules.get("torch.version"), "cuda", None):
        return None
    module = sys.modules.get("torch.cuda.nvtx")
    push, pop = getattr(module, "range_push", None), getattr(module, "range_pop", None)
    return (push, pop) if callable(push) and callable(pop) else None
