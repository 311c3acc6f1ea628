"""What a process makes of the scopes and series that another one sent it."""

from __future__ import annotations

from stepwell._load import core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stepwell._core import Scope, Series


def scope(name: str) -> Scope:
    return core.Recording().scope(name)


def series(group: str, name: str, unit: str, kind: int, labels: dict[str, str]) -> Series:
    return core.define_series(group, name, unit, kind, labels)
