#!/usr/bin/env python3
"""Compares what gpu_probe reads with what nvidia-smi says, and writes both into docs/metrics.md."""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

_BEGIN = "<!-- device: written by tests/device/run.sh -->\n"
_END = "<!-- device: end -->"
_MIB = 1 << 20
# Ours, nvidia-smi's field, what one of its units is in ours, how far apart they may be: the two do not read
# at one instant, and power is an average.
_FIELDS = [
    ("gpu_util", "utilization.gpu", 1, 30),
    ("gpu_memory_util", "utilization.memory", 1, 30),
    ("gpu_free_memory", "memory.free", _MIB, 64 * _MIB),
    ("gpu_used_memory", "memory.used", _MIB, 64 * _MIB),
    ("gpu_total_memory", "memory.total", _MIB, _MIB),
    ("gpu_power", "power.draw", 1, 60),
    ("gpu_power_limit", "enforced.power.limit", 1, 0.01),
    ("gpu_temperature", "temperature.gpu", 1, 4),
    ("gpu_memory_temperature", "temperature.memory", 1, 4),
    ("gpu_sm_clock", "clocks.sm", 1e6, 300e6),
    ("gpu_memory_clock", "clocks.mem", 1e6, 300e6),
]

Values = dict[str, dict[str, list[float]]]


def ask_smi(values: Values) -> str:
    """Adds a reading by device and field; the driver's version."""
    fields = ",".join(field for _, field, _, _ in _FIELDS)
    answer = subprocess.run(
        ["nvidia-smi", f"--query-gpu=uuid,driver_version,name,{fields}", "--format=csv,noheader,nounits"],
        check=True, capture_output=True, text=True)  # fmt: skip
    told = ""
    for line in answer.stdout.splitlines():
        uuid, version, name, *texts = [part.strip() for part in line.split(",")]
        told = f"{name}, driver {version}"
        for (ours, _, scale, _), text in zip(_FIELDS, texts, strict=True):
            try:
                values.setdefault(uuid, {}).setdefault(ours, []).append(float(text) * scale)
            except ValueError:
                pass  # "[N/A]"
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
        for name, field, _, apart_max in _FIELDS:
            mine = ours.get(device, {}).get(name, [])
            smi = theirs[device].get(name, [])
            if not mine and not smi:
                rows.append(f"| {number} | `{name}` | absent | `{field}` | absent | yes |")
                continue
            if not mine or not smi:
                agree = False
                rows.append(f"| {number} | `{name}` | {'absent' if not mine else 'there'} | `{field}` | "
                            f"{'absent' if not smi else 'there'} | **no** |")  # fmt: skip
                continue
            apart = abs(statistics.median(mine) - statistics.median(smi))
            fits = apart <= apart_max
            agree = agree and fits
            rows.append(f"| {number} | `{name}` | {statistics.median(mine):.6g} | `{field}` | {statistics.median(smi):.6g} | "
                        f"{'yes' if fits else '**no**'} |")  # fmt: skip
    return rows, agree


def alone(ours: Values, theirs: Values) -> list[str]:
    """Rows of what nvidia-smi has no field for; slices (MIG) are numbered after the GPUs."""
    known = {name for name, *_ in _FIELDS}
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
        f"On {time.strftime('%Y-%m-%d', time.gmtime())}, {device}: medians of {arguments.seconds} readings, a second "
        "apart, of the agent's sensors and of `nvidia-smi` beside them.", "",
        "| GPU | ours | value | `nvidia-smi` | value | agree |", "|---|---|---|---|---|---|", *rows, "",
        "Without a field of `nvidia-smi`:", "", "| GPU | ours | value |", "|---|---|---|", *alone(ours, theirs), "",
        f"A tick took {cost['tick_ms']:.3g} ms and {cost['tick_processor_ms']:.3g} ms of processor time.", "",
        *[f"- absent: {reason}" for reason in absences]])  # fmt: skip
    print("\n".join(rows))
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
