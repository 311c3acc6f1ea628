"""Rules on clocks: what waits, or lasts, goes by a clock that nobody sets."""

import re
from collections.abc import Iterator

from tree import Finding, Tree

_ROOMS = ("base/", "server/", "storage/", "client/")
# It holds abseil's own waits to the monotonic clock.
_HOLDS_WAITS = ("base/monotonic_waits.cc", "base/monotonic_waits.h")

_STEADY = "SteadyTime of base/steady_time.h"
_UNTIL_WALL_TIME = re.compile(r"\b\w*(?:WithDeadline|_timed(?:wait|lock|rdlock|wrlock))\s*\(")
# A stamp, or a clock's answer.
_STAMP = re.compile(r"absl::ToUnix\w+\(absl::Now\(\)\)|\breturn absl::Now\(\);")
_WALL_NOW = re.compile(r"absl::Now\(\)|\bsystem_clock::now\(\)")


def check_clocks(tree: Tree) -> Iterator[Finding]:
    """A wait until a time of the wall clock, or a duration by it, lasts as long as that clock is set."""
    for name in tree.ending(".cc", ".h"):
        if not name.startswith(_ROOMS):
            continue
        for number, line in tree.lines(name):
            if name not in _HOLDS_WAITS and (match := _UNTIL_WALL_TIME.search(line)):
                yield Finding(name, number, "wall clock",
                              f"{match.group(0)}...) waits until a time of it: wait for what is left of a {_STEADY}")
            elif match := _WALL_NOW.search(_STAMP.sub("", line)):
                yield Finding(name, number, "wall clock",
                              f"{match.group(0)} is for stamps, absl::ToUnixMicros(); what lasts is a {_STEADY}")
