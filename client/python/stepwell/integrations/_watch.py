"""Watched loaders and methods: what a framework calls by itself, seen where it is called."""

from __future__ import annotations

from stepwell.integrations._guard import guarded, tell_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Begin = Callable[[], None]
    End = Callable[[Any, bool], None]


# Of object's: some loaders have a property of that name, which tells of the loader that they stand for.
_CLASS = vars(object)["__class__"]


class WatchedItems:
    """An iterator whose fetches are seen: begin() before, end(item, is_found) after. What else is asked of it is the
    iterator's own."""

    def __init__(self, items: Iterator[Any], begin: Begin, end: End) -> None:
        self._stepwell = (items, guarded(begin), guarded(end))

    def __iter__(self) -> WatchedItems:
        return self

    def __next__(self) -> Any:
        items, begin, end = self._stepwell
        begin()
        try:
            item = next(items)
        except BaseException:
            end(None, False)
            raise
        end(item, True)
        return item

    def __getattr__(self, name: str) -> Any:
        if name == "_stepwell":  # asked for before it is there, by copy
            raise AttributeError(name)
        return getattr(self._stepwell[0], name)


class SizedWatchedItems(WatchedItems):
    """Of those that have a length: what has none is true where it is asked."""

    def __len__(self) -> int:
        return len(self._stepwell[0])  # type: ignore[arg-type]


def watch_items(items: Iterator[Any], begin: Begin, end: End) -> WatchedItems:
    kind = SizedWatchedItems if hasattr(type(items), "__len__") else WatchedItems
    return kind(items, begin, end)


def _new(kind: type, *arguments: Any) -> Any:
    return kind.__new__(kind, *arguments)


def _plain(kind: type, watched: type, reduced: Any) -> Any:
    """What copy and pickle make of it is one that is not watched."""
    if not isinstance(reduced, tuple) or len(reduced) < 2 or watched not in reduced[1]:
        return reduced
    return (_new, tuple(kind if argument is watched else argument for argument in reduced[1]), *reduced[2:])


def watch_loader(loader: Any, begin: Begin, end: End) -> Callable[[], None] | None:
    """Its iterators are watched from now on, until what this hands out is called. It stays the object that it is, of a
    class that is its own's child. None where it cannot be: one of C, or with __slots__."""
    kind = type(loader)
    if getattr(kind, "_stepwell_watched", None) is not None:
        return None

    def iterate(self: Any) -> WatchedItems:
        return watch_items(kind.__iter__(self), begin, end)

    def reduce(self: Any, protocol: Any) -> Any:
        return _plain(kind, watched, kind.__reduce_ex__(self, protocol))  # type: ignore[call-arg]

    try:
        watched = type(kind.__name__, (kind,), {"__iter__": iterate, "__reduce_ex__": reduce, "_stepwell_watched": kind,
                                                "__module__": kind.__module__, "__doc__": kind.__doc__})  # fmt: skip
        _CLASS.__set__(loader, watched)
    except (TypeError, AttributeError) as error:
        tell_once(f"dataloader_next of a {kind.__name__}", error)
        return None

    def restore() -> None:
        if type(loader) is watched:
            _CLASS.__set__(loader, kind)

    return restore


def watch_call(
    owner: Any, name: str, begin: Callable[..., None], end: Callable[[], None]
) -> Callable[[], None] | None:  # fmt: skip
    """owner.name(...) has begin(...) called before and end() after, however it ends. None = no such thing."""
    begin, end = guarded(begin), guarded(end)
    original = getattr(owner, name, None)
    if not callable(original) or getattr(original, "_stepwell_original", None) is not None:
        return None

    def call(*args: Any, **keywords: Any) -> Any:
        begin(*args, **keywords)
        try:
            return original(*args, **keywords)
        finally:
            end()

    for attribute in ("__name__", "__qualname__", "__doc__", "__wrapped__", "__self__", "__func__"):
        try:
            setattr(call, attribute, original if attribute == "__wrapped__" else getattr(original, attribute))
        except (AttributeError, TypeError):
            pass  # schedulers of torch look for some of these
    call._stepwell_original = original  # type: ignore[attr-defined]
    was_own = name in getattr(owner, "__dict__", {})
    try:
        setattr(owner, name, call)
    except (AttributeError, TypeError) as error:
        tell_once(name, error)
        return None

    def restore() -> None:
        if getattr(owner, "__dict__", {}).get(name) is not call:
            return  # another's lies over it
        if was_own:
            setattr(owner, name, original)
        else:
            delattr(owner, name)

    return restore


class Watches:
    """What is watched, to be left alone again."""

    def __init__(self) -> None:
        self._restores: list[Callable[[], None]] = []

    def add(self, restore: Callable[[], None] | None) -> None:
        if restore is not None:
            self._restores.append(restore)

    def end(self) -> None:
        while self._restores:
            try:
                self._restores.pop()()
            except Exception as error:
                tell_once("the end of a watch", error)
