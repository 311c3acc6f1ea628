"""What a run loads when it opens, and a step may be the first to need: no descriptor may be left for an import by then."""

from __future__ import annotations

import os

from stepwell._tell import described, warn


def load() -> None:
    try:
        from stepwell import _decorator, _device_scope, _stepping  # noqa: F401
    except Exception as error:  # none is left now
        warn(f"stepwell: steps with an epoch, device scopes and decorators may fail: {described(error)}")
    if os.environ.get("NVTX_INJECTION64_PATH"):  # of a profiler that takes ranges
        from stepwell import _mirroring

        _mirroring.begin_ranges()
