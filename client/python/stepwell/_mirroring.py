"""Our scopes in torch's profilers: as record_function, while at least one that records wants them. Otherwise that costs
nothing."""

from __future__ import annotations

from stepwell._load import core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_wishes: set[int] = set()  # by id


def begin(who: object) -> None:
    """`who` lives until it ends it. Again: changes nothing."""
    if not _wishes:
        from torch.autograd.profiler import record_function

        def begin_region(name: str) -> Any:
            region = record_function(name)
            region.__enter__()
            return region

        core.mirror_scopes(begin_region, lambda region: region.__exit__(None, None, None))
    _wishes.add(id(who))


def end(who: object) -> None:
    """Not begun: changes nothing."""
    if id(who) in _wishes:
        _wishes.discard(id(who))
        if not _wishes:
            core.mirror_scopes(None, None)


def after_fork() -> None:
    """A child's profiler is its parent's, which nobody ends."""
    if _wishes:
        _wishes.clear()
        core.mirror_scopes(None, None)
