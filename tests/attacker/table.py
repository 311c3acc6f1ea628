"""The table of attacks: what is tried, what each try is answered, and to whom it was done.

    @attack("a name that somebody points at this machine", "403", known="MLflow CVE-2025-14279")
    def rebinding(stand: Stand) -> Answers: ...
"""

from __future__ import annotations

import pathlib
import time
from collections.abc import Callable
from typing import NamedTuple

from stand import VICTIM, Stand

ROOT = pathlib.Path(__file__).resolve().parents[2]
GRPC_CODES = {0: "OK", 2: "UNKNOWN", 3: "INVALID_ARGUMENT", 5: "NOT_FOUND", 7: "PERMISSION_DENIED", 8: "RESOURCE_EXHAUSTED", 12: "UNIMPLEMENTED", 13: "INTERNAL"}
GRPC_CODES |= {9: "FAILED_PRECONDITION", 14: "UNAVAILABLE", 15: "DATA_LOSS", -1: "closed", 16: "UNAUTHENTICATED"}
HEAD = "Host: localhost\r\n"
VICTIM_JSON = {"trial": {"project": VICTIM[0], "externalId": VICTIM[1]}}
# Beyond what it had before: floods of strangers are held while they last, and malloc gives back in steps. 148 to 214 were seen on
# two cores, the most beside compilers.
RESIDENT_GROWTH_MIB_MAX = 300

Answers = list[str]
Attack = Callable[[Stand], Answers]


class Row(NamedTuple):
    name: str
    expected: str
    known: str  # empty: nobody's that we know of
    function: Attack


TABLE: list[Row] = []


def attack(name: str, expected: str, known: str = "") -> Callable[[Attack], Attack]:
    """`expected`: what each answer is, by the words of the table: "401", "404 or 400", "UNAUTHENTICATED". `known`: products that
    it was a hole of, with its number where it has one."""

    def add(function: Attack) -> Attack:
        TABLE.append(Row(name, expected, known, function))
        return function

    return add


def code(status: int) -> str:
    return GRPC_CODES.get(status, f"gRPC {status}")


def patiently(stand: Stand, source: str, token: str, method: str = "QueryService/ListTrials", message: bytes = b"") -> str:
    """What a call is answered, each on a connection of its own. Behind a flood the threads of gRPC may be taken for a moment
    (docs/security.md): then it comes again."""
    until = time.monotonic() + 15 * stand.memory_scale
    while True:
        said = code(stand.connect(source).call(f"/stepwell.v1.{method}", [message], token)[0])
        if said != "RESOURCE_EXHAUSTED" or time.monotonic() > until:
            return said
        time.sleep(0.1)


def told(answer: tuple[int, str, bytes]) -> str:
    """Of HTTP: the status; with what must never be in it."""
    status, head, body = answer
    if b"root:" in body or b"shadow" in body:
        return f"{status} with a file"
    if "\nLocation:" in head or 300 <= status < 400:
        return f"{status} with a redirect"
    if "\naccess-control-allow" in head.lower():
        return f"{status} with leave for pages of others"
    return str(status) if status else "closed"
