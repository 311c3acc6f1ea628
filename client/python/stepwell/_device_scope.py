"""DeviceScope: a scope that is timed on the GPU as well, by CUDA events on the current stream that nobody waits for."""

from __future__ import annotations

import threading

from stepwell._load import core
from stepwell.hooks import _device

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from stepwell._core import Scope
    from stepwell.hooks._device import Device


class DeviceScope(core.Around):
    """Made by Run.device_scope(). The host's time is that of a scope of this name; the GPU's has the label `clock=device`,
    where the main thread has used it by then."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._is_taken = scope.name != ""  # else the host records nothing either
        self._tokens: list[tuple[Device | None, Any]] = []

    @property
    def name(self) -> str:
        return self._scope.name

    def _begin(self) -> None:
        if self._is_taken and threading.current_thread() is threading.main_thread():
            begun_count = len(self._tokens)
            try:
                self._tokens.append(begin(self.name))
            except Exception:  # no memory, say: the host's time alone
                self._tokens[begun_count:] = [(None, None)]
                forget(self.name)
            except BaseException:  # Ctrl-C
                del self._tokens[begun_count:]
                forget(self.name)
                raise

    def _end(self) -> None:
        if self._tokens and threading.current_thread() is threading.main_thread():
            device, token = self._tokens.pop()
            try:
                if device is not None:
                    device.end(token)
            except BaseException:
                forget(self.name)
                raise

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """As a scope: of coroutines and generators, which take turns, the host's time alone."""
        from stepwell._decorator import timed

        return timed(self, function)

    async def __aenter__(self) -> DeviceScope:
        await self._scope.__aenter__()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._scope.__aexit__(*exception)

    def _apart(self) -> Scope:
        return self._scope._apart()


_looked_batch: int | None = None


def begin(name: str) -> tuple[Device | None, Any]:
    """The device, and what its end() takes. The first of a step asks what the GPU has done since."""
    global _looked_batch
    device = _device.found()
    if device is None:
        return None, None
    batch = core.batch()
    if batch != _looked_batch or not device.has_times or (batch < 0 and not device.is_within):
        _looked_batch = batch
        device.look(batch)
    return device, device.begin(name)


def forget(name: str) -> None:
    """It was not begun, or not ended: another one of that name may be."""
    device = _device.found()
    if device is not None:
        device.forget(name)
