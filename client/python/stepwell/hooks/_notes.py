"""Notes: what hooks remember of an iterator of a DataLoader's, in it.

By attributes, never by its __dict__: where nobody asks for that, Python keeps the attributes of an object in the object,
and what its own methods read is found without a search. One that was asked for it costs each fetch a microsecond.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def has_room(iterator: Any) -> bool:
    """A loader's own kind may have none (__slots__)."""
    return type(iterator).__dictoffset__ != 0


def noted(iterator: Any, name: str) -> Any:
    """None = nothing is. Its own, never what its class's __getattr__ finds elsewhere."""
    try:
        return object.__getattribute__(iterator, name)
    except AttributeError:
        return None


def note(iterator: Any, name: str, value: Any) -> Any:
    """The value. Past a __setattr__ of its class's."""
    object.__setattr__(iterator, name, value)
    return value


def forget(iterator: Any, name: str) -> Any:
    """What was noted; None = nothing was."""
    value = noted(iterator, name)
    if value is not None:
        object.__delattr__(iterator, name)
    return value
