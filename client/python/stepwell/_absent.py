"""In place of the extension: the same names, which record nothing. Loops and functions go on as they are."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeVar

    _Recording = TypeVar("_Recording", bound="Recording")

version = "0.1.0"
_STATE_CLOSED = 0


class Scope:
    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> Scope:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        from stepwell._decorator import timed

        return timed(self, function)

    async def __aenter__(self) -> Scope:
        return self

    async def __aexit__(self, *exception: object) -> None:
        pass

    def _apart(self) -> Scope:
        return self


class Around:
    def __enter__(self) -> Around:
        return self

    def __exit__(self, *exception: object) -> None:
        pass


class Series:
    def record(self, value: object, /) -> None:
        pass


class Steps:
    _next_batch = 0

    def __init__(self, loader: Any, start: int | None) -> None:
        self._loader = loader
        self._start = start

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        if self._start is not None:
            Steps._next_batch, self._start = self._start, None
        for batch in self._loader:
            index = Steps._next_batch
            Steps._next_batch += 1
            yield index, batch

    def __len__(self) -> int:
        return len(self._loader)

    def __bool__(self) -> bool:
        return True


class Loop:
    _batch = -1

    def begin(self, of: object = None, is_hooked: bool = False, /) -> bool:
        return True

    def upcoming(self) -> int:
        return Steps._next_batch

    def behind_trained(self) -> int:
        return Steps._next_batch

    def count(self, batch: int | None = None, /) -> int:
        self._batch = Steps._next_batch if batch is None else batch
        Steps._next_batch = self._batch + 1
        return self._batch

    def next(self) -> bool:
        return True

    def fetching(self, is_begun: bool, /) -> None:
        pass

    def fetch(self, items: Iterator[Any], /) -> Any:
        return next(items)

    def ends_dropped(self) -> None:
        pass

    def leave(self) -> None:
        pass


_NO_SERIES = Series()
Hooked = TimedCall = FetchCall = TransferCall = None  # nothing is hooked


def await_hooks(is_waiting: bool) -> None:
    pass


def ask_for_worker(question: Callable[[], bool | None], /) -> None:
    pass


def hooked_loop(of: object, /) -> object:
    return None


def next_by(loop: object, original: Callable[[Any], Any], iterator: Any, /) -> Any:
    return original(iterator)


def begin_step(loop: object, is_anew: bool = False, /) -> int | None:
    return None


def fetch_step(loop: object, original: Callable[[Any], Any], iterator: Any, /) -> Any:
    return original(iterator)


def leave_loop(loop: object, /) -> None:
    pass


def follow_schedule(is_following: bool, /) -> None:
    pass


def fetch_by(function: Callable[[Any], Any], items: Any, /) -> Any:
    return function(items)


def call_within(watched: Any, function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any], /) -> Any:
    return function(*args, **keywords)


def own_calls(recording: type[_Recording], /) -> type[_Recording]:
    return recording


def is_innermost(scope: Scope, /) -> bool:
    return False


def is_fetching() -> bool:
    return False


def batch() -> int:
    return -1


def scope_path() -> int:
    return 0


def begin_work() -> None:
    pass


def end_work() -> None:
    pass


class Recording:
    """With wrong arguments, too: that nothing is recorded was said."""

    def scope(self, *args: Any, **keywords: Any) -> Scope:
        return Scope(keywords.get("name", args[0] if args else ""))

    def record(self, *args: object, **keywords: object) -> None:
        pass

    def instant(self, *args: object, **keywords: object) -> None:
        pass

    def steps(self, loader: Any, *, start: int | None = None) -> Steps:
        return Steps(loader, start)


def open(*options: object) -> int:
    return _STATE_CLOSED


def close_begin(into: list[object], /) -> bool:
    return False


def switch_off_begin(into: list[object], /) -> bool:
    return False


def close_ease(closing: object, /) -> None:
    return None


def close_await(closing: object, timeout_ms: int, /) -> int:
    return -1


def state() -> int:
    return _STATE_CLOSED


def message() -> str:
    return "the extension of the package stepwell cannot be loaded"


def dropped_count() -> int:
    return 0


def exit_wait_ms() -> int:
    return 0


def record_at(series: Series, batch: int, time_us: int, value: float) -> None:
    pass


def define_series(group: str, name: str, unit: str, kind: int, labels: dict[str, str]) -> Series:
    return _NO_SERIES


def mirror_scopes(begin: object, end: object, /) -> None:
    pass


def upload_trace(path: bytes, epoch: int, first_batch: int, last_batch: int, removes_file: bool, /) -> bool:
    return False


def capture_by(function: object, /) -> None:
    pass


def capture_wanted() -> tuple[int, int, int]:
    return 0, 0, 0


def capture_answer(request: int, outcome: int, step_count: int, /) -> None:
    pass


def reset() -> None:
    Steps._next_batch = 0


def after_fork() -> None:
    reset()


def is_main_interpreter() -> bool:
    return True


def take_tally() -> tuple[int, int, list[tuple[str, int, int]]]:
    return 0, 0, []
