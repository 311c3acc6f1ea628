"""Reads what deploy/quickstart.sh printed and says what is missing: check_quickstart.py FILE.

Looks at the meaning, not at the layout: both ranks are reported, each rank's shares add up to 100 %,
all timings of the training and metrics of the machine are there, psql showed arrays, and nobody but the
training started the agent.
"""

import re
import sys

RANKS = 2
TIMINGS = ["dataloader_next", "to_device", "train_batch", "step_lr_schedulers", "from_device", "reduce_metrics"]
MACHINE = ["cpu_util_simple", "memory_free", "disk_throughput_read", "net_throughput_sent"]
_RANK = re.compile(r"^Where a step's time goes, rank (\d+)")
_SHARE = re.compile(r"^\s+(\S+)\s+(-?\d+\.\d+) %")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def shares_by_rank(text: str) -> dict[int, dict[str, float]]:
    """rank -> {scope: percent}, `unaccounted` and `step` included."""
    ranks: dict[int, dict[str, float]] = {}
    current = None
    for line in text.splitlines():
        title = _RANK.match(line)
        if title:
            current = ranks.setdefault(int(title.group(1)), {})
        elif not line.strip():
            current = None
        elif current is not None and (share := _SHARE.match(line)):
            current[share.group(1)] = float(share.group(2))
    return ranks


def complaints(text: str) -> list[str]:
    """What a first user would miss in `text`; empty if nothing."""
    text = _COLOURS.sub("", text)
    found = []
    ranks = shares_by_rank(text)
    if sorted(ranks) != list(range(RANKS)):
        found.append(f"timings of ranks {sorted(ranks)}, expected {list(range(RANKS))}")
    for rank, shares in ranks.items():
        missing = [name for name in [*TIMINGS, "unaccounted"] if name not in shares]
        if missing:
            found.append(f"rank {rank}: no share of {', '.join(missing)}")
        total = sum(percent for name, percent in shares.items() if name != "step")
        if abs(total - 100.0) > 0.051:
            found.append(f"rank {rank}: shares add up to {total:.1f} %")
    found += [f"no machine metric {name}" for name in MACHINE if not re.search(rf"\b{name}\b", text)]
    if not re.search(r"^the training started its agent by itself \(pid \d+", text, re.MULTILINE):
        found.append("the training started no agent")
    if not re.search(r"\{[-+0-9.e]+(,[-+0-9.e]+)+\}", text):
        found.append("psql showed no array of values")
    return found


def main() -> int:
    with open(sys.argv[1], encoding="utf-8", errors="replace") as file:
        found = complaints(file.read())
    for complaint in found:
        print(complaint)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
