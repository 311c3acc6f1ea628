"""What TorchScript makes of hooks: the operators that the originals are. It knows those by the identity of a function."""

from __future__ import annotations

import sys
import types

from stepwell._tell import described, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from stepwell.hooks._hook import Hook


def tell(hooks: Iterable[Hook]) -> None:
    """Never raises. Its table is made where it is asked first, of a list."""
    builtins = sys.modules.get("torch.jit._builtins")
    if builtins is None:
        return
    try:
        for hook in hooks:
            for owner, original, put in hook.put_there():
                if isinstance(owner, types.ModuleType):
                    _tell(builtins, original, put)
    except Exception as error:  # another torch than those that are known
        say(f"stepwell: TorchScript does not know what is hooked: {described(error)}")


def _tell(builtins: Any, original: Any, put: Any) -> None:
    table = builtins._builtin_table
    if table is None:
        builtins._builtin_ops += [(put, operator) for known, operator in builtins._builtin_ops if known is original]
    elif id(original) in table:
        builtins._register_builtin(put, table[id(original)])
