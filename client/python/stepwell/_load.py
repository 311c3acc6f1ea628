"""The extension; where it cannot be loaded, what does nothing in its place, and one warning."""

from __future__ import annotations

import sys

from stepwell._tell import mute, warn

TYPE_CHECKING = False
is_absent = False  # what stands in for it records nothing
if TYPE_CHECKING:
    from stepwell import _core as core
else:
    try:
        import stepwell._core as core

        if not core.is_main_interpreter():  # it was loaded by that
            raise ImportError("this is a sub-interpreter; a process's main one records")
    except Exception as error:
        from stepwell import _absent as core

        is_absent = True
        _why = (str(error) or type(error).__name__) if sys.platform == "linux" else f"{sys.platform} is not Linux"
        warn(f"stepwell: nothing is recorded: {_why}")
        mute()

__all__ = ["core", "is_absent"]
