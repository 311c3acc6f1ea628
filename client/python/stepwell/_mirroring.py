"""Our scopes in torch's profilers: as record_function, while at least one that records wants them. Otherwise that costs
nothing."""

from __future__ import annotations

import weakref

from stepwell._load import core, is_absent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_wishes: dict[int, weakref.ref[object]] = {}  # by id


def begin(who: object) -> None:
    """Until `who` ends it, or is no more. Again: changes nothing."""
    if is_absent:
        return  # there are no scopes, and torch may lack what they would be
    from torch.autograd.profiler import record_function

    def begin_region(name: str) -> Any:
        region = record_function(name)
        region.__enter__()
        return region

    key = id(who)
    # First the wish: another thread that ends the last one meanwhile leaves the mirror where it is.
    _wishes[key] = weakref.ref(who, lambda _: _drop(key))
    if len(_wishes) == 1:
        core.mirror_scopes(begin_region, lambda region: region.__exit__(None, None, None))


def end(who: object) -> None:
    """Not begun: changes nothing."""
    _drop(id(who))


def _drop(key: int) -> None:
    if _wishes.pop(key, None) is not None and not _wishes:
        core.mirror_scopes(None, None)


def after_fork() -> None:
    """A child's profiler is its parent's, which nobody ends."""
    if _wishes:
        _wishes.clear()
        core.mirror_scopes(None, None)
