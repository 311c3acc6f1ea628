#!/usr/bin/env python3
"""Compares what gpu_probe reads with what nvidia-smi says, and writes both into docs/metrics.md."""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time
import typing

_BEGIN = "<!-- device: written by tests/device/run.sh -->\n"
_END = "<!-- device: end -->"
_MIB = 1 << 20


class Field(typing.NamedTuple):
    """What both say. The two do not read at one instant, and what they read moves."""

    ours: str
    theirs: str  # nvidia-smi's field
    scale: float  # what one of its units is in ours
    apart: float  # so far apart they may be,
    share: float = 0  # or by so much of nvidia-smi's value, where that is more

    @property
    def is_reason(self) -> bool:
        """Whether clocks are lower for one reason, in each reading."""
        return self.theirs.startswith(_REASONS)


# As drivers from 535 on name them, and as those before.
_REASONS, _REASONS_OLD = "clocks_event_reasons.", "clocks_throttle_reasons."
_FIELDS = [
    Field("gpu_util", "utilization.gpu", 1, 15),
    Field("gpu_memory_util", "utilization.memory", 1, 15),
    Field("gpu_free_memory", "memory.free", _MIB, 64 * _MIB),
    Field("gpu_used_memory", "memory.used", _MIB, 64 * _MIB),
    Field("gpu_total_memory", "memory.total", _MIB, _MIB),
    Field("gpu_power", "power.draw", 1, 10, 0.08),
    Field("gpu_power_limit", "enforced.power.limit", 1, 0.01),
    Field("gpu_temperature", "temperature.gpu", 1, 4),
    Field("gpu_memory_temperature", "temperature.memory", 1, 4),
    Field("gpu_sm_clock", "clocks.sm", 1e6, 300e6),
    Field("gpu_memory_clock", "clocks.mem", 1e6, 300e6),
    # Of all readings the part in which it held.
    *[
        Field(f"gpu_throttle{{reason={ours}}}", _REASONS + theirs, 1, 0.25)
        for ours, theirs in (
            ("power_cap", "sw_power_cap"),
            ("hw_slowdown", "hw_slowdown"),
            ("sync_boost", "sync_boost"),
            ("sw_thermal", "sw_thermal_slowdown"),
            ("hw_thermal", "hw_thermal_slowdown"),
            ("power_brake", "hw_power_brake_slowdown"),
        )
    ],
]
_ACTIVE = {"Active": 1.0, "Not Active": 0.0}

Values = dict[str, dict[str, list[float]]]


def query_smi(reasons: str) -> subprocess.CompletedProcess[str]:
    """nvidia-smi's answer, where the fields of reasons are named so."""
    fields = ",".join(field.theirs.replace(_REASONS, reasons) for field in _FIELDS)
    return subprocess.run(
        ["nvidia-smi", f"--query-gpu=uuid,driver_version,name,{fields}", "--format=csv,noheader,nounits"],
        check=False, capture_output=True, text=True)  # fmt: skip


def ask_smi(values: Values) -> str:
    """Adds a reading by device and field; the driver's version."""
    answer = query_smi(_REASONS)
    if answer.returncode != 0:
        answer = query_smi(_REASONS_OLD)
    answer.check_returncode()
    told = ""
    for line in answer.stdout.splitlines():
        uuid, version, name, *texts = [part.strip() for part in line.split(",")]
        told = f"{name}, driver {version}"
        for field, text in zip(_FIELDS, texts, strict=True):
            try:
                value = _ACTIVE[text] if field.is_reason else float(text) * field.scale
            except (KeyError, ValueError):
                continue  # "[N/A]"
            values.setdefault(uuid, {}).setdefault(field.ours, []).append(value)
    return told


def run_probe(probe: str, seconds: int) -> tuple[Values, Values, list[dict[str, object]], str]:
    """Ours and theirs, read beside each other, all lines of the probe, and what the device is called."""
    ours: Values = {}
    theirs: Values = {}
    lines = []
    device = ask_smi({})
    with subprocess.Popen([probe, str(seconds)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for text in process.stdout:
            line = json.loads(text)
            lines.append(line)
            for sample in line.get("samples", []):
                # A metric of several series on one device: each by itself.
                name = sample["name"] + (f"{{reason={sample['reason']}}}" if "reason" in sample else "")
                ours.setdefault(sample["device"], {}).setdefault(name, []).append(sample["value"])
            if "samples" in line:
                ask_smi(theirs)
    if process.returncode != 0:
        raise RuntimeError(f"{probe} failed with exit {process.returncode}")
    return ours, theirs, lines, device


def compare(ours: Values, theirs: Values) -> tuple[list[str], bool]:
    """Rows of a table, and whether all agree."""
    rows, agree = [], True
    for number, device in enumerate(theirs):
        for field in _FIELDS:
            mine = ours.get(device, {}).get(field.ours, [])
            smi = theirs[device].get(field.ours, [])
            middle = statistics.fmean if field.is_reason else statistics.median
            fits = bool(mine) == bool(smi)
            texts = ["there" if values else "absent" for values in (mine, smi)]
            if mine and smi:
                fits = abs(middle(mine) - middle(smi)) <= max(field.apart, field.share * abs(middle(smi)))
                texts = [f"{middle(values):.6g}" for values in (mine, smi)]
            agree = agree and fits
            rows.append(f"| {number} | `{field.ours}` | {texts[0]} | `{field.theirs}` | {texts[1]} | "
                        f"{'yes' if fits else '**no**'} |")  # fmt: skip
    return rows, agree


def alone(ours: Values, theirs: Values) -> list[str]:
    """Rows of what nvidia-smi has no field for; slices (MIG) are numbered after the GPUs."""
    known = {field.ours for field in _FIELDS}
    devices = [*theirs, *sorted(set(ours) - set(theirs))]
    return [f"| {number} | `{name}` | {statistics.median(values):.6g} |"
            for number, device in enumerate(devices) if device in ours for name, values in sorted(ours[device].items()) if name not in known]  # fmt: skip


def write_page(page: pathlib.Path, lines: list[str]) -> None:
    """Between the two marks."""
    text = page.read_text()
    head, rest = text.split(_BEGIN, 1)
    tail = rest.split(_END, 1)[1]
    page.write_text(head + _BEGIN + "\n".join(lines) + "\n" + _END + tail)


def main() -> int:
    """Exit 0 where both agree, 1 where they do not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probe", required=True)
    parser.add_argument("--page", required=True, type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=20)
    arguments = parser.parse_args()
    ours, theirs, lines, device = run_probe(arguments.probe, arguments.seconds)
    rows, agree = compare(ours, theirs)
    cost = lines[-1]
    absences = sorted({reason for line in lines for reason in line.get("absences", [])})
    write_page(arguments.page, [
        f"On {time.strftime('%Y-%m-%d', time.gmtime())}, {device}: medians of {arguments.seconds} readings (of reasons to "
        "throttle the part in which each held), a second apart, of the agent's sensors and of `nvidia-smi` beside them.", "",
        "| GPU | ours | value | `nvidia-smi` | value | agree |", "|---|---|---|---|---|---|", *rows, "",
        "Without a field of `nvidia-smi`:", "", "| GPU | ours | value |", "|---|---|---|", *alone(ours, theirs), "",
        f"A tick took {cost['tick_ms']:.3g} ms and {cost['tick_processor_ms']:.3g} ms of processor time.", "",
        *[f"- absent: {reason}" for reason in absences]])  # fmt: skip
    print("\n".join(rows))
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
