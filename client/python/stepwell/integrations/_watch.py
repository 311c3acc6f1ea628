"""Watched loaders and methods: what a framework calls by itself, seen where it is called."""

from __future__ import annotations

import abc
import copy
import copyreg
import functools
import os
import sys
import threading
import types
import weakref

from stepwell._load import core
from stepwell.integrations._guard import guarded, tell_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Begin = Callable[[], None]
    End = Callable[[Any, bool], None]


_making = threading.RLock()  # a class is made of what another thread may replace for a moment


def _make_anew() -> None:
    """In a child: another thread may have held it at the fork."""
    global _making
    _making = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_make_anew)

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


class _Watched:
    """In the class of what is watched, in place of its method. Before what lies in the instance, which torch's
    schedulers and compiler put there; nothing of ours does, so that what is stored of an instance is what it was."""

    def __init__(self, kind: type, name: str, call: Callable[..., Any]) -> None:
        self.kind = kind
        self.name = name
        self.call = call
        self.is_within = False
        self.thread = 0  # that of the first call: replicas and autograd have others
        self.is_lost: Callable[[], bool] = lambda: False  # nobody has what ends it, of a module's, as the next two
        self.is_over = False
        self.before: _WatchedCall | None = None  # over which it lies

    def may_enter(self) -> bool:
        """False within another call, and on another thread than the first."""
        return not self.is_within and self.thread in (0, threading.get_ident())

    def enter(self, function: Callable[..., Any], /, *args: Any, **keywords: Any) -> Any:
        """Calls it. Not in lines of Python: an interrupt at one would leave `is_within` as it is."""
        self.thread = threading.get_ident()
        return core.call_within(self, function, args, keywords)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        if owner is None:
            return getattr(self.kind, self.name)
        return _WatchedCall(self, owner, self._original(owner))

    def __set__(self, owner: Any, value: Any) -> None:
        vars_of(owner)[self.name] = value

    def __delete__(self, owner: Any) -> None:
        if self.name not in vars_of(owner):
            raise AttributeError(self.name)
        del vars_of(owner)[self.name]

    def _original(self, owner: Any) -> Any:
        own = vars_of(owner)
        if self.name in own:
            return own[self.name]
        try:
            return getattr(super(_child_of(owner), owner), self.name)  # type: ignore[misc]
        except AttributeError:
            return self.kind.__getattr__(owner, self.name)  # type: ignore[attr-defined]


class _WatchedCall:
    """A method that is watched, bound; what is asked of it is the original's."""

    __slots__ = ("__wrapped__", "_stepwell")

    def __init__(self, watched: _Watched, owner: Any, original: Any) -> None:
        self._stepwell = (watched, owner)
        self.__wrapped__ = original

    def __call__(self, /, *args: Any, **keywords: Any) -> Any:
        watched = self._stepwell[0]
        if not watched.may_enter():
            return self.__wrapped__(*args, **keywords)
        return watched.enter(watched.call, self.__wrapped__, *args, **keywords)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    @property
    def __doc__(self) -> Any:  # type: ignore[override]
        return self.__wrapped__.__doc__

    def __eq__(self, other: Any) -> Any:
        return self.__wrapped__ == (other.__wrapped__ if isinstance(other, _WatchedCall) else other)

    def __hash__(self) -> int:
        return hash(self.__wrapped__)

    def __reduce__(self) -> Any:
        watched, owner = self._stepwell
        if not isinstance(owner, types.ModuleType):
            return getattr, (owner, watched.name)
        is_its_own = getattr(self.__wrapped__, "__module__", "") == owner.__name__
        return watched.name if is_its_own else (functools.partial, (self.__wrapped__,))

    def __deepcopy__(self, memo: Any) -> Any:
        watched, owner = self._stepwell
        return self if isinstance(owner, types.ModuleType) else getattr(copy.deepcopy(owner, memo), watched.name)


def vars_of(owner: Any) -> dict[str, Any]:
    """Without what it has of its own to say of that."""
    try:
        own: dict[str, Any] = object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return {}
    return own


def _child_of(owner: Any) -> type:
    """The class that is ours: others make further children."""
    return next(kind for kind in type(owner).__mro__ if "_stepwell_watched" in vars(kind))


def _plainly(owner: Any, watched: type, kind: type, function: Callable[[], Any]) -> Any:
    """Calls while it is no more than it was."""
    if type(owner) is not watched:
        return function()
    _CLASS.__set__(owner, kind)
    try:
        return function()
    finally:
        _CLASS.__set__(owner, watched)


def _without_check(reduced: Any) -> Any:
    """The same object by another call: pickle compares the class in these with that of the object."""
    if isinstance(reduced, tuple) and reduced[0] is copyreg.__newobj__:  # type: ignore[attr-defined]
        return (reduced[1][0].__new__, reduced[1], *reduced[2:])
    if isinstance(reduced, tuple) and reduced[0] is copyreg.__newobj_ex__:  # type: ignore[attr-defined]
        kind, args, keywords = reduced[1]
        return (functools.partial(kind.__new__, kind, *args, **keywords), (), *reduced[2:])
    return reduced


def _quiet_child(kind: Any, inside: dict[str, Any]) -> Any:
    """Without a word to its class, which may keep a list of its children, or refuse ours: neither its __init_subclass__
    nor a metaclass of Python's is called."""
    own = vars(kind).get("__init_subclass__")
    is_heard = any("__init_subclass__" in vars(one) for one in kind.__mro__ if one is not object)
    if is_heard:
        type.__setattr__(kind, "__init_subclass__", classmethod(lambda *_, **__: None))
    try:
        if type(kind) in (type, abc.ABCMeta):
            return type(kind)(kind.__name__, (kind,), inside)
        try:
            return type.__new__(type(kind), kind.__name__, (kind,), inside)
        except TypeError:  # a metaclass of C's
            return type(kind.__name__, (kind,), inside)
    finally:
        if own is not None:
            type.__setattr__(kind, "__init_subclass__", own)
        elif is_heard:
            type.__delattr__(kind, "__init_subclass__")


def _watched_kind(owner: Any) -> type:
    """Makes it one of a child of its class, unless it is one. What copy and pickle make of it is not watched, and
    loads where we are not installed."""
    kind: Any = type(owner)
    if getattr(kind, "_stepwell_watched", None) is not None:
        return _child_of(owner)

    def reduce(self: Any, protocol: Any) -> Any:
        return _without_check(_plainly(self, watched, kind, lambda: kind.__reduce_ex__(self, protocol)))

    def deep_copy(self: Any, memo: Any) -> Any:
        return _plainly(self, watched, kind, lambda: kind.__deepcopy__(self, memo))

    def shallow_copy(self: Any) -> Any:
        return _plainly(self, watched, kind, lambda: kind.__copy__(self))

    inside = {"__slots__": (), "__reduce_ex__": reduce, "_stepwell_watched": kind, "_stepwell_restores": {},
              "__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}  # fmt: skip
    if hasattr(kind, "__deepcopy__"):
        inside["__deepcopy__"] = deep_copy
    if hasattr(kind, "__copy__"):
        inside["__copy__"] = shallow_copy
    watched = _quiet_child(kind, inside)
    _CLASS.__set__(owner, watched)
    return watched  # type: ignore[no-any-return]


def _forget_lost(watched: type) -> None:
    """An interrupt came between a watch's begin and who was to end it: nobody has what ends it."""
    for name, restore in list(vars(watched)["_stepwell_restores"].items()):
        if restore() is None:
            if name in vars(watched):
                delattr(watched, name)
            vars(watched)["_stepwell_restores"].pop(name, None)


def _put(owner: Any, name: str, value: Any, what: str) -> Callable[[], None] | None:
    """Into the class of this one alone, until what it hands out is called, or nobody has that any longer and another
    thing of it is put or left. None where it cannot be: one of C."""

    # The data may be large, and who has this be left by an exception.
    found = _weakly(owner)

    def restore() -> None:
        inside, owner = vars(watched), found()
        if inside.get(name) is put:
            delattr(watched, name)
        _forget_lost(watched)
        is_used = any(isinstance(it, _Watched) for it in inside.values()) or bool({"__iter__", "__call__"} & inside.keys())
        if type(owner) is watched and not is_used:
            _CLASS.__set__(owner, inside["_stepwell_watched"])

    try:
        with _making:
            watched = _watched_kind(owner)
        _forget_lost(watched)
        if name in vars(watched):
            return None
        put = value(vars(watched)["_stepwell_watched"])
        vars(watched)["_stepwell_restores"][name] = weakref.ref(restore)
        setattr(watched, name, put)
    except Exception as error:
        tell_once(what, error)
        return None
    return restore


def _weakly(owner: Any) -> Callable[[], Any]:
    """What hands it out while it is there; where its class allows that no other way, it is held."""
    try:
        return weakref.ref(owner)
    except TypeError:
        return lambda: owner


def watch_loader(
    loader: Any, begin: Begin, end: End, anew: Callable[[], None] = lambda: None
) -> Callable[[], None] | None:  # fmt: skip
    """Its iterators are watched from now on, until what this hands out is called; anew() is told of each that begins. It
    stays the object that it is, of a class that is its own's child. None where it cannot be."""
    anew = guarded(anew)

    def of(kind: type) -> Any:
        def iterate(self: Any) -> WatchedItems:
            anew()
            return watch_items(kind.__iter__(self), begin, end)  # type: ignore[attr-defined]

        return iterate

    return _put(loader, "__iter__", of, f"dataloader_next of a {type(loader).__name__}")


def _watch(owner: Any, name: str, call: Callable[..., Any]) -> Callable[[], None] | None:
    """call(original, ...) in place of owner.name(...)."""
    if not isinstance(owner, types.ModuleType):
        if not callable(getattr(owner, name, None)):
            return None
        return _put(owner, name, lambda kind: _Watched(kind, name, call), name)
    # The newest alone is told: who has the one before may have been left by an exception. That is there again after it.
    before = getattr(owner, name, None)
    original = before.__wrapped__ if isinstance(before, _WatchedCall) else before
    if not callable(original):
        return None
    watched = _Watched(type(owner), name, call)
    watched.before = _living(before) if isinstance(before, _WatchedCall) else None
    there = _WatchedCall(watched, owner, original)

    def restore() -> None:
        watched.is_over = True
        if vars(owner).get(name) is there:  # else another's lies over it
            setattr(owner, name, _living(watched.before) or original)
        watched.before = None

    held = weakref.ref(restore)
    watched.is_lost = lambda: held() is None
    setattr(owner, name, there)
    return restore


def _living(watched: _WatchedCall | None) -> _WatchedCall | None:
    """This one, or the next before it, that has not ended."""
    while watched is not None and (watched._stepwell[0].is_over or watched._stepwell[0].is_lost()):
        watched = watched._stepwell[0].before
    return watched


def watch_call(
    owner: Any, name: str, begin: Callable[..., None], end: Callable[[], None]
) -> Callable[[], None] | None:  # fmt: skip
    """owner.name(...) has begin(...) called before and end() after, however it ends; one within another, or on another
    thread than the first, is the original's alone. None = no such thing."""
    begin, end = guarded(begin), guarded(end)

    def call(original: Any, /, *args: Any, **keywords: Any) -> Any:
        begin(*args, **keywords)
        try:
            return original(*args, **keywords)
        finally:
            end()

    return _watch(owner, name, call)


def watch_model(model: Any, begin: Callable[..., None], end: Callable[[], None]) -> Callable[[], None] | None:
    """As watch_call(), of model(...). What compiles a model looks for plain functions in its class, and compiles them as
    they are: it takes the way past the watch."""
    if not callable(model):
        return watch_call(model, "forward", begin, end)
    torch: Any = sys.modules.get("torch")
    is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or bool  # bool() is False
    watched = _Watched(type(model), "__call__", lambda *_: None)
    begin, end = guarded(begin), guarded(end)

    def timed(kind: Any, self: Any, /, *args: Any, **keywords: Any) -> Any:
        begin(*args, **keywords)
        try:
            return kind.__call__(self, *args, **keywords)
        finally:
            end()

    def of(kind: Any) -> Any:
        hooked = kind.__call__
        plain = hooked.__wrapped__ if core.Hooked is not None and isinstance(hooked, core.Hooked) else hooked

        def call(self: Any, /, *args: Any, **keywords: Any) -> Any:
            if is_compiling():
                return plain(self, *args, **keywords)
            if not watched.may_enter():
                return kind.__call__(self, *args, **keywords)
            return watched.enter(timed, kind, self, *args, **keywords)

        return call

    return _put(model, "__call__", of, "forward")


def watch_result(owner: Any, name: str, found: Callable[..., None]) -> Callable[[], None] | None:
    """What owner.name(...) hands out is shown to found(), before what it was called with."""
    found = guarded(found)

    def call(original: Any, /, *args: Any, **keywords: Any) -> Any:
        result = original(*args, **keywords)
        found(result, *args, **keywords)
        return result

    return _watch(owner, name, call)


def watch_iterable(owner: Any, name: str, begin: Begin, end: End) -> Callable[[], None] | None:
    """What owner.name(...) hands out is handed out as an iterator of it, whose fetches are seen."""

    def call(original: Any, /, *args: Any, **keywords: Any) -> Any:
        return watch_items(iter(original(*args, **keywords)), begin, end)

    return _watch(owner, name, call)


def watch_timed(owner: Any, name: str, begin: Callable[[], None], end: Callable[[Any], None]) -> Callable[[], None] | None:
    """As watch_call(), and end() is shown what it handed out; None where it raised."""
    begin, end = guarded(begin), guarded(end)

    def call(original: Any, /, *args: Any, **keywords: Any) -> Any:
        begin()
        result = None
        try:
            result = original(*args, **keywords)
            return result
        finally:
            end(result)

    return _watch(owner, name, call)


class Watches:
    """What is watched, to be left alone again."""

    def __init__(self) -> None:
        self._restores: list[Callable[[], None]] = []

    def __reduce__(self) -> Any:
        """A copy watches nothing."""
        return Watches, ()

    def add(self, restore: Callable[[], None] | None) -> None:
        if restore is not None:
            self._restores.append(restore)

    def end(self) -> None:
        while self._restores:
            try:
                self._restores[-1]()  # an interrupt leaves it to be called again
            except Exception as error:
                tell_once("the end of a watch", error)
            del self._restores[-1:]
