"""The lines that a run ends with: how many steps, what they consisted of, where to read more."""

from __future__ import annotations

_SHOWN = 5


def duration(seconds: float) -> str:
    """Three digits: 8.80 ms."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            value = seconds / size
            digits = 2 if value < 10 else 1 if value < 100 else 0
            return f"{value:,.{digits}f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def own_times(paths: dict[str, tuple[int, int]]) -> dict[str, int]:
    """Nanoseconds of each path without what lies inside of it."""
    own = {path: ns for path, (ns, _) in paths.items()}
    for path, (ns, _) in paths.items():
        parent = path.rpartition("/")[0]
        if parent in own:
            own[parent] -= ns
    # Scopes that overlap, as tasks do, may hold more than what they lie in.
    return {path: max(0, ns) for path, ns in own.items()}


def lines(steps: int, steps_ns: int, paths: dict[str, tuple[int, int]], ending: str, dropped: int = 0) -> list[str]:
    """`ending` is where to read more."""
    given_up = [f"stepwell: {dropped:,} dropped, for want of room"] if dropped > 0 else []
    if steps == 0:
        return [*given_up, f"stepwell: no steps; {ending}"]
    shown = [f"stepwell: {steps:,} steps of {duration(steps_ns / steps / 1e9)}, {duration(steps_ns / 1e9)} in all"]
    if paths and steps_ns > 0:
        own = own_times(paths)
        # Of the rest nothing was said; clocks that are read one after the other may make it less than none.
        outermost = sum(ns for path, (ns, _) in paths.items() if path.rpartition("/")[0] not in paths)
        own["unaccounted"] = max(0, steps_ns - outermost)
        largest = sorted(own, key=lambda path: own[path], reverse=True)
        shares = [f"{path} {100 * own[path] / steps_ns:.1f} %" for path in largest[:_SHOWN]]
        if len(largest) > _SHOWN:
            shares.append(f"{len(largest) - _SHOWN} more")
        shown.append("stepwell: " + ", ".join(shares))
    return [*shown, *given_up, f"stepwell: {ending}"]


def ending(trial: str | None, stored: bool, message: str, page: str = "", *, unknown_count: int = 0, absent: str = "",
           spool_dir: str = "", server: str = "", has_traces: bool = False) -> str:  # fmt: skip
    """Where to read more. `message` is the recorder's, from before it was closed; `page` is the trial's; of so many windows
    nobody knows whether they are stored, as all others are; `absent` is the address of a master that does not answer;
    `server` the one that somebody named; `has_traces`: some are to be uploaded, too."""
    import shlex

    report = f"stepwell report {shlex.quote(trial)}" if trial else "stepwell trials"
    if stored:
        return f"stored: {report}, or {page}" if page else f"stored: {report}"
    if "offline: '" in message:
        # Other remarks may stand before it, and behind.
        command = message.rpartition("offline: '")[2].partition("' sends it")[0]
        return f"no master: stepwell serve, then {command}, then {report}"
    # Not "no agent is started: DIRECTORY is gone": then nothing waits.
    if spool_dir and (message.startswith("no agent: ") or "; no agent: " in message):
        # Where the spool directory could not be used, one of its own was made, which the message names.
        place = message.partition("records into ")[2].partition("; no agent: ")[0] or spool_dir
        return f"not stored: {message}; it waits in {place}: {_upload(place, server, has_traces)}, then {report}"
    if message:
        return f"not stored: {message}"
    if unknown_count > 0:
        return f"not known to be stored, {unknown_count:,} windows before the last: stepwell agent status, then {report}"
    if absent:
        upload = _upload(spool_dir, absent, has_traces)
        return f"no master at {absent} (STEPWELL_SERVER names another): {_first_at(absent)} (later {upload}), then {report}"
    return f"not stored yet, its agent goes on: {report}, or stepwell agent status"


def _upload(spool_dir: str, server: str, has_traces: bool) -> str:
    """The command. Traces lie outside of the spool."""
    import shlex

    words = ["stepwell", "upload", *(["--named-files"] if has_traces else []), *(["--server", server] if server else [])]
    return " ".join(map(shlex.quote, [*words, spool_dir]))


def _first_at(address: str) -> str:
    """The agent of a run stays for some minutes; no upload is taken as long as it does."""
    host, _, port = address.rpartition(":")
    if host not in ("localhost", "[::1]") and not host.startswith("127."):
        return "its agent sends it to one that comes"
    listen = "" if port == "7817" else f" --grpc-listen {address}"
    return f"stepwell serve{listen}, and its agent sends it"
