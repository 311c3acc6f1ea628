"""What people are told: never an exception, whatever warnings are made into."""

from __future__ import annotations

import os
import sys


_is_mute = False


def mute() -> None:
    """All that there is to say was said."""
    global _is_mute
    _is_mute = True


def warn(text: str) -> None:
    """A warning. Where those are errors it is a line on stderr: a training does not end for it."""
    if _is_mute:
        return
    import warnings

    try:
        warnings.warn(text, RuntimeWarning, stacklevel=3)
    except Exception:
        say(text)


def described(error: BaseException) -> str:
    """Also one that cannot say what it is."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


def is_quiet() -> bool:
    return _is_mute or os.environ.get("STEPWELL_QUIET", "0") not in ("", "0")


def is_disabled() -> bool:
    """Nothing is recorded, whoever asks for it."""
    return os.environ.get("STEPWELL_DISABLED", "0") not in ("", "0")


def say(text: str) -> None:
    """Lines on stderr, unless STEPWELL_QUIET is set."""
    stderr = sys.stderr
    if stderr is None or is_quiet():
        return
    try:
        if stderr is sys.__stderr__:  # what it could not write it would keep, and end the process with 120
            os.write(stderr.fileno(), f"{text}\n".encode(errors="backslashreplace"))
        else:
            print(text, file=stderr, flush=True)
    except Exception:
        pass  # closed, or full
