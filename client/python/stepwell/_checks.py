"""What options may be. Each check names the field, what it was and what is allowed."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NAME_BYTES_MAX = 256  # of the wire contract, for names of trials, projects and attempts
_SERIES_BYTES_MAX = 200
_LABEL_VALUE_BYTES_MAX = 1024
_TOKEN_BYTES_MAX = 1024
_RUN_LABEL_COUNT_MAX = 30
_SERIES_LABEL_COUNT_MAX = 32
_RESERVED_LABELS = ("rank", "agent", "device", "worker", "clock")
KINDS = {"gauge": 1, "counter": 2, "duration": 3}


def _is_text(value: object, bytes_max: int) -> bool:
    if not isinstance(value, str) or any(ord(c) < 0x20 or ord(c) == 0x7F for c in value):
        return False
    try:
        return len(value.encode()) <= bytes_max
    except UnicodeEncodeError:  # half of a surrogate pair
        return False


def _refuse(field: str, value: object, allowed: str) -> None:
    wrong = TypeError if not isinstance(value, (str, int, float)) or isinstance(value, bool) else ValueError
    raise wrong(f"stepwell: {field} is {value!r}; allowed: {allowed}")


def name(field: str, value: str | None, bytes_max: int = _NAME_BYTES_MAX) -> str | None:
    if value is not None and (not value or not _is_text(value, bytes_max)):
        _refuse(field, value, f"1 ... {bytes_max} bytes of text without control characters")
    return value


def token(value: str | None) -> str | None:
    """What it is stays unsaid: errors lie in logs."""
    if value is not None and (not value or not _is_text(value, _TOKEN_BYTES_MAX)):
        wrong = ValueError if isinstance(value, str) else TypeError
        raise wrong(f"stepwell: token is not shown; allowed: 1 ... {_TOKEN_BYTES_MAX} bytes of text without control "
                    "characters")  # fmt: skip
    return value


def trial(value: str | None) -> str | None:
    number = value[3:] if isinstance(value, str) and value.startswith("id:") else None
    if number is not None and not (number.isascii() and number.isdigit() and 0 < int(number) < 2**63):
        _refuse("trial", value, "a name, or id: and a number from 1")
    return name("trial", value)


def server(value: str | None) -> str | None:
    if value is None or value == "offline":
        return value
    host, colon, port = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    is_named = host and colon and " " not in host and (":" not in host or (host[0] == "[" and host[-1] == "]"))
    if not (is_named and _is_text(value, 1024) and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        _refuse("server", value, "HOST:PORT, [IPV6]:PORT or offline")
    return value


def path(field: str, value: object) -> str | None:
    if value is None:
        return None
    import os

    try:
        text = os.fspath(value)  # type: ignore[call-overload]
        os.fsencode(text)
    except (TypeError, UnicodeEncodeError):  # half of a surrogate pair
        text = None
    if not isinstance(text, str) or not text or "\0" in text:
        _refuse(field, value, "a path")
    return str(text)


def number(field: str, value: int | None, low: int, high: int) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high):
        _refuse(field, value, f"a number of {low} ... {high}")
    return value


def flag(field: str, value: bool) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"stepwell: {field} is {value!r}; allowed: True or False")
    return value


def interval_us(value: float | None) -> int:
    """Seconds as microseconds; 0 = the agent's own."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.01 <= value <= 3600:
        _refuse("interval", value, "0.01 ... 3600 seconds")
    return round(value * 1_000_000)


def seconds(field: str, value: float) -> int:
    """As milliseconds."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 86400:
        _refuse(field, value, "0 ... 86400 seconds")
    return round(value * 1000)


def words(field: str, value: str | Iterable[str] | None) -> str | None:
    """With commas between; None = all."""
    if value is None:
        return None
    allowed = "names, as a list or with commas between"
    try:
        listed = value.split(",") if isinstance(value, str) else list(value)
    except TypeError:
        listed = []
    listed = [word.strip() if isinstance(word, str) else word for word in listed]
    if not listed or not all(word and _is_text(word, _SERIES_BYTES_MAX) and "," not in word for word in listed):
        _refuse(field, value, allowed)
    return ",".join(listed)


def labels(value: Mapping[str, str] | None, *, of_series: bool) -> dict[str, str]:
    count_max = _SERIES_LABEL_COUNT_MAX if of_series else _RUN_LABEL_COUNT_MAX
    reserved = _RESERVED_LABELS if of_series else ("rank", "agent")
    if value is None:
        return {}
    try:
        found = dict(value)
    except (TypeError, ValueError):
        raise TypeError(f"stepwell: labels is {value!r}; allowed: a dict of names and values") from None
    if len(found) > count_max:
        raise ValueError(f"stepwell: labels has {len(found)} entries; allowed: {count_max}")
    for key, text in found.items():
        if not key or not _is_text(key, _SERIES_BYTES_MAX) or key in reserved:
            _refuse("a name in labels", key, f"1 ... {_SERIES_BYTES_MAX} bytes of text, none of {', '.join(reserved)}")
        if not _is_text(text, _LABEL_VALUE_BYTES_MAX):
            _refuse(f"labels[{key!r}]", text, f"text of at most {_LABEL_VALUE_BYTES_MAX} bytes")
    return found


def series(given: str, *, group: str, unit: str, kind: str) -> int:
    """The number of `kind`."""
    name("name", "" if given is None else given, _SERIES_BYTES_MAX)
    name("group", "" if group is None else group, _SERIES_BYTES_MAX)
    if not _is_text(unit, _SERIES_BYTES_MAX):
        _refuse("unit", unit, f"text of at most {_SERIES_BYTES_MAX} bytes")
    if kind not in KINDS:
        _refuse("kind", kind, ", ".join(KINDS))
    return KINDS[kind]


def ignored(given: Mapping[str, object], in_use: Mapping[str, object]) -> list[str]:
    """What was given to init() and is not so of the run that is open, as its options are called: a token is not shown."""

    def is_given(key: str, value: object) -> bool:
        return not (value is None or value is True or value == {} or (key, value) == ("interval_us", 0))

    shown = {"interval_us": "interval", "trial": f"trial {given['trial']!r}"}
    return [shown.get(key, key) for key, value in given.items() if is_given(key, value) and value != in_use[key]]
