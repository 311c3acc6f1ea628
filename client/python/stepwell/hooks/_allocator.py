"""What torch's allocator of the current GPU says of its memory: once a second at most, at a step's end."""

from __future__ import annotations

import time

from stepwell._load import core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PERIOD_S = 1.0
_GAUGE, _COUNTER = 1, 2
# torch's names -> ours. Those of all pools together.
_BYTES = {"allocated_bytes": "allocated", "active_bytes": "active", "reserved_bytes": "reserved",
          "inactive_split_bytes": "inactive"}  # fmt: skip


class Allocator:
    """`cuda` is torch.cuda, or alike."""

    def __init__(self, cuda: Any) -> None:
        self._cuda = cuda
        self._next_s = 0.0
        self._series: dict[tuple[str, int], Any] = {}

    def sample(self, batch: int) -> None:
        now_s = time.monotonic()
        if now_s < self._next_s or not self._cuda.is_initialized():
            return
        self._next_s = now_s + _PERIOD_S
        device = self._cuda.current_device()
        stats = self._cuda.memory_stats(device)
        for theirs, ours in _BYTES.items():
            self._record(f"cuda_{ours}", "bytes", device, stats.get(f"{theirs}.all.current"))
            self._record(f"cuda_{ours}_peak", "bytes", device, stats.get(f"{theirs}.all.peak"))
        self._record("cuda_alloc_retries", "1", device, stats.get("num_alloc_retries"), _COUNTER)

    def _record(self, name: str, unit: str, device: int, value: Any, kind: int = _GAUGE) -> None:
        if value is None:
            return
        series = self._series.get((name, device))
        if series is None:
            series = core.define_series("torch", name, unit, kind, {"cuda_device": str(device)})
            self._series[name, device] = series
        series.record(value)
