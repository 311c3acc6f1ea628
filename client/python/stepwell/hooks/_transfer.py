"""Transfers between host and device: `to_device`, `from_device` and `pin_memory`.

Those of tensors, by the methods that training loops call. A tensor that is where it should be is no transfer.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def direction(kinds: tuple[type, ...], tensor: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> str:
    """Of tensor.to(*args, **keywords): to_device, from_device, or "" for none. `kinds` are the tensors that are asked
    where they are."""
    wanted = keywords.get("device")
    if wanted is None:
        wanted = keywords.get("other") if not args else args[0]
    if wanted is None:
        return ""
    is_host = _is_host(wanted, kinds)
    if is_host is None or is_host == tensor.is_cpu:
        return ""
    return "from_device" if is_host else "to_device"


def _is_host(wanted: Any, kinds: tuple[type, ...]) -> bool | None:
    """None: it names no device, as a dtype does."""
    if isinstance(wanted, str):
        return wanted.startswith("cpu")
    if isinstance(wanted, int):
        return False
    if isinstance(wanted, kinds):  # a tensor, whose device is meant
        is_cpu = wanted.is_cpu if type(wanted) in kinds else None
        return is_cpu if isinstance(is_cpu, bool) else None
    kind = getattr(wanted, "type", None)  # torch.device
    return kind == "cpu" if isinstance(kind, str) else None
