"""Transfers between host and device: `to_device`, `from_device` and `pin_memory`.

Those of tensors, by the methods that training loops call. A tensor that is where it should be is no transfer.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def direction(tensor: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> str:
    """Of tensor.to(*args, **keywords): to_device, from_device, or "" for none."""
    wanted = keywords.get("device")
    if wanted is None:
        wanted = keywords.get("other") if not args else args[0]
    if wanted is None:
        return ""
    is_host = _is_host(wanted)
    if is_host is None or is_host == tensor.is_cpu:
        return ""
    return "from_device" if is_host else "to_device"


def _is_host(wanted: Any) -> bool | None:
    """None: it names no device, as a dtype does."""
    if isinstance(wanted, str):
        return wanted.startswith("cpu")
    if isinstance(wanted, int):
        return False
    kind = getattr(wanted, "type", None)
    if isinstance(kind, str):  # torch.device
        return kind == "cpu"
    is_cpu = getattr(wanted, "is_cpu", None)  # a tensor, whose device is meant
    return is_cpu if isinstance(is_cpu, bool) else None
