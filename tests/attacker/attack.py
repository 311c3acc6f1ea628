#!/usr/bin/env python3
"""Plays the attacker against a master of its own: attack.py PROGRAM [--table]

One table: what is tried, what is answered. Then the master must be alive, healthy and small, its log clean, and the victim's
trial as it was. Exits 0 if all is so, 1 with what is not. --table prints the rows as they stand in docs/security.md.
"""

from __future__ import annotations

import json
import pathlib
import re
import sys
import time

import wire
from stand import VICTIM, VICTIM_WRITER, Stand
from table import RESIDENT_GROWTH_MIB_MAX, ROOT, TABLE, Answers, code, told

# In the order in which they are tried.
import strangers, users, crowds, floods  # noqa: E401, E402, F401, I001 isort: skip


# A hundred times of what all of this takes where each line that a stranger causes is sparing.
LOG_BYTES_MAX = 4 << 20


def after(stand: Stand) -> list[str]:
    """What is not as it has to be."""
    wrong = []
    if stand.master.poll() is not None:
        return [f"the master ended: {stand.master.returncode}\n{stand.log()[-3000:]}"]
    if told(stand.get("/readyz")) != "200":
        wrong.append("it is not ready")
    # What floods took is given back once it is calm.
    until = time.monotonic() + 20
    allowed = RESIDENT_GROWTH_MIB_MAX * stand.memory_scale
    while (grown := stand.resident_mib() - stand.resident_before) > allowed and time.monotonic() < until:
        time.sleep(0.2)
    if grown > allowed:
        wrong.append(f"it grew by {grown:.0f} MiB, allowed are {allowed}")
    state = stand.victim_state()
    for method, before in stand.before.items():
        if state[method] != before:
            wrong.append(f"{method} of the victim was {json.dumps(before)}\nand is {json.dumps(state[method])}")
    # And it takes the victim's next chunk as if nothing had been.
    messages = [wire.open_writer(VICTIM_WRITER, *VICTIM), wire.define(VICTIM_WRITER, "loss"), wire.chunk(VICTIM_WRITER, 2, [0.25])]
    status, words, answer = stand.connect().call("/stepwell.v1.IngestService/WriteChunks", [wire.write_chunks(messages)], stand.admin)
    if status != 0 or wire.refusals(answer):
        wrong.append(f"the victim's next chunk: {code(status)} {words} {wire.refusals(answer)}")
    log = stand.log()
    for secret in (stand.admin, stand.reader, stand.writer, stand.ingester):
        if secret[-40:] in log:
            wrong.append("a token stands in the log")
    if not stand.planted or stand.planted in log:
        wrong.append("what a training put into its labels stands in the log, or was never there")
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", log):
        wrong.append("the log has control characters")
    if re.search(r"^\S+ info forged", log, re.MULTILINE):
        wrong.append("the log has a line that a client made")
    if len(log) > LOG_BYTES_MAX:
        wrong.append(f"the log has {len(log)} bytes, allowed are {LOG_BYTES_MAX}")
    return wrong


def judge(answers: Answers, expected: str) -> str:
    """Nothing, or what was answered otherwise."""
    allowed = expected.split(" or ")
    other = sorted({each for each in answers if each not in allowed})
    if not answers:
        return "nothing was answered"
    return ", ".join(other)


def rows() -> list[str]:
    return [f"| {row.name} | {row.expected} | {row.known} |" for row in TABLE]


def missing_rows() -> list[str]:
    """Of the table in docs/security.md."""
    page = (ROOT / "docs/security.md").read_text()
    return [row for row in rows() if row not in page]


def main() -> int:
    if "--table" in sys.argv:
        print("| attack | answer | was a hole of |", "|---|---|---|", *rows(), sep="\n")
        return 0
    failed = 0
    for row in missing_rows():
        failed += 1
        print(f"FAIL docs/security.md has not: {row}")
    begin = time.monotonic()
    with Stand(str(pathlib.Path(sys.argv[1]).resolve())) as stand:
        for name, expected, _, function in TABLE:
            since = time.monotonic()
            try:
                other = judge(function(stand), expected)
            except Exception as error:  # an attack that cannot be made has shown nothing
                other = f"{type(error).__name__}: {error}"
            failed += bool(other)
            took = time.monotonic() - since
            print(f"{'ok  ' if not other else 'FAIL'} {took:5.1f} s  {name}: {expected}" + (f"; BUT {other}" if other else ""), flush=True)
        for wrong in after(stand):
            failed += 1
            print(f"FAIL afterwards: {wrong}")
        print(f"{len(TABLE)} attacks in {time.monotonic() - begin:.0f} s; the master grew by {stand.resident_mib() - stand.resident_before:.0f} MiB; {failed} failed")
        if failed and "--log" in sys.argv:
            print(stand.log()[-6000:])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
