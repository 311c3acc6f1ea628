"""torch's profilers as they begin and end, whoever made them: torch.profiler, autograd's, emit_nvtx, and those of libraries
over these. Our scopes are in each that records.

It stands before two functions of torch.autograd.profiler that all of them call, which are private: where a torch has others
it watches nothing.
"""

from __future__ import annotations

import functools
import sys

from stepwell import _mirroring
from stepwell._tell import described, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class _Others:
    """Who wants scopes for them."""


_others = _Others()
_put: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {}  # by name: what was there, and what is


def put() -> None:
    """Into the torch that is imported. Again: changes nothing; never raises."""
    module = sys.modules.get("torch.autograd.profiler")
    tells = {"_enable_profiler": _begun, "_disable_profiler": _ended}
    if _put or module is None or not all(callable(getattr(module, name, None)) for name in tells):
        return
    for name, tell in tells.items():
        original = getattr(module, name)
        _put[name] = (original, _told_of(original, tell))
        setattr(module, name, _put[name][1])


def remove() -> None:
    """What was there is there again, unless others stand before it."""
    module = sys.modules.get("torch.autograd.profiler")
    for name, (original, watched) in list(_put.items()):
        if getattr(module, name, None) is watched:
            setattr(module, name, original)
            del _put[name]
    _ended()


def _told_of(original: Callable[..., Any], tell: Callable[[], None]) -> Callable[..., Any]:
    @functools.wraps(original)
    def watched(*args: Any, **keywords: Any) -> Any:
        result = original(*args, **keywords)
        try:
            tell()
        except Exception as error:
            warn(f"stepwell: our scopes are not in torch's profiler: {described(error)}")
        return result

    return watched


def _begun() -> None:
    _mirroring.begin(_others)


def _ended() -> None:
    _mirroring.end(_others)
