"""Checkpoints: what writes and reads them, torch's own and what may be imported later."""

from __future__ import annotations

import sys

from stepwell.hooks import _watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from stepwell.hooks._hook import Hook

# Of each module: what saves, and what loads. One within another's call is a part of that.
_NAMES = {
    "torch": (("save",), ("load",)),
    "torch.distributed.checkpoint": (("save", "async_save", "save_state_dict"), ("load", "load_state_dict")),
    "safetensors.torch": (("save_file", "save_model"), ("load_file", "load_model")),
}


def put(hook: Hook, save: Callable[..., Any], load: Callable[..., Any]) -> None:
    """Into each of them that is imported, into the others once the program imports them: before who imports one there can
    take a function out of it."""

    def put_into(module: Any, names: tuple[tuple[str, ...], tuple[str, ...]]) -> None:
        for handler, those in zip((save, load), names):
            for name in those:
                hook.replace(module, name, handler)

    for name, names in _NAMES.items():
        if name in sys.modules:
            put_into(sys.modules[name], names)
        else:
            _watch.on_import(name, lambda name=name, names=names: put_into(sys.modules[name], names), hook.fail)
