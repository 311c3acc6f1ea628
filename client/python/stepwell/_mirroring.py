"""Our scopes in torch's profilers: as record_function, while at least one that records wants them. Else as NVTX's ranges, where
somebody profiles these. Otherwise that costs nothing."""

from __future__ import annotations

import sys
import weakref

from stepwell._load import core, is_absent
from stepwell._tell import warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

_wishes: dict[int, weakref.ref[object]] = {}  # by id
_record_function: Callable[[str], Any] | None = None
_is_told = False  # that torch has none
_ranges: ModuleType | None = None  # _nvtx, where they are wanted


def begin(who: object) -> None:
    """Until `who` ends it, or is no more. Again: changes nothing. Never raises: where torch has no record_function nothing is
    mirrored."""
    global _record_function, _is_told
    if is_absent:
        return  # there are no scopes, and torch may lack what they would be
    key = id(who)
    if key in _wishes:
        return
    found = _found()
    if found is None:
        if not _is_told:
            _is_told = True
            warn("stepwell: our scopes are not in torch's profiler: this torch has no record_function")
        return
    _record_function = found
    _wishes[key] = weakref.ref(who, lambda _: _drop(key))
    _follow()


def end(who: object) -> None:
    """Not begun: changes nothing."""
    _drop(id(who))


def begin_ranges() -> None:
    """Until the process ends, but while a profiler of torch's records: its emit_nvtx makes ranges of what it is told. Again:
    changes nothing. Never raises."""
    global _ranges
    if is_absent or _ranges is not None:
        return
    from stepwell import _nvtx

    if _nvtx.prepare():
        _ranges = _nvtx
        _follow()


def _found() -> Callable[[str], Any] | None:
    """Of the torch that is imported. Nothing is imported for it: that may fail, and what runs here is a training's step."""
    for name in ("torch.profiler", "torch.autograd.profiler"):
        try:
            found = getattr(sys.modules.get(name), "record_function", None)
        except Exception:  # modules may answer by a function of their own
            continue
        if callable(found):
            return found  # type: ignore[no-any-return]
    return None


def _drop(key: int) -> None:
    if _wishes.pop(key, None) is not None:
        _follow()


def _follow() -> None:
    """The mirror is as the wishes are. Whoever turns it looks again: other threads begin and end meanwhile."""
    while True:
        begins = _begins()
        core.mirror_scopes(begins, None if begins is None else _end_region)
        if begins == _begins():
            return


def _begins() -> Callable[[str], Any] | None:
    if _wishes:
        return _begin_region
    return None if _ranges is None else _ranges.begin


def _begin_region(name: str) -> Any:
    region = _record_function(name)  # type: ignore[misc]
    region.__enter__()
    return region


def _end_region(region: Any) -> None:
    region.__exit__(None, None, None)


def after_fork() -> None:
    """A child's profiler is its parent's, which nobody ends."""
    global _ranges
    if _ranges is not None:
        _ranges.after_fork()
        _ranges = None
    elif not _wishes:
        return
    _wishes.clear()
    core.mirror_scopes(None, None)
