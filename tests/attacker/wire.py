"""Messages of the wire contract by hand, as an attacker writes them: fields in any order, with any bytes.

    open_writer(writer, project="victim", external_id="run")   # a StreamChunksRequest
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable

Value = int | bytes | str


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number: int, value: Value) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def fixed32(number: int, value: int) -> bytes:
    return varint(number << 3 | 5) + struct.pack("<I", value)


def message(fields: Iterable[tuple[int, Value]]) -> bytes:
    return b"".join(field(number, value) for number, value in fields)


def fields_of(data: bytes) -> list[tuple[int, Value]]:
    """The fields of an answer; of numbers, texts and messages alone."""
    found: list[tuple[int, Value]] = []
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    while at < len(data):
        tag = number()
        if tag & 7 == 0:
            found.append((tag >> 3, number()))
        elif tag & 7 == 2:
            size = number()
            found.append((tag >> 3, data[at : at + size]))
            at += size
        else:
            at += 4 if tag & 7 == 5 else 8
    return found


def trial_ref(project: str, external_id: str) -> bytes:
    return message([(2, project), (3, external_id)])


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def open_writer(writer: bytes, project: str, external_id: str, labels: dict[str, str] | None = None, token: str = "", agent: str = "attacker-machine") -> bytes:
    open_fields: list[tuple[int, Value]] = [(1, writer), (3, project), (4, external_id), (6, agent)]
    for name, value in (labels or {}).items():
        open_fields.append((11, message([(1, name), (2, value)])))
    if token:
        open_fields.append((14, token))
    return field(1, message(open_fields))


def define(writer: bytes, name: str, labels: dict[str, str] | None = None) -> bytes:
    definition: list[tuple[int, Value]] = [(1, 1), (2, 1), (3, "test"), (4, name), (7, 1)]
    for label, value in (labels or {}).items():
        definition.append((5, message([(1, label), (2, value)])))
    return field(2, message([(1, writer), (2, message(definition))]))


def chunk(writer: bytes, sequence: int, values: list[float]) -> bytes:
    """One column of ref 1, a millisecond apart, from now."""
    now_us = int(time.time() * 1e6)
    deltas = b"".join(varint(2000) for _ in values[1:])  # zigzag of 1000
    column = message([(1, 1), (2, struct.pack(f"<{len(values)}d", *values))])
    # first_batch -1 in zigzag is 1
    table = message([(1, 1), (2, now_us), (3, deltas), (4, 1), (6, column)])
    body = message([(1, table)])
    checksum = crc32c(struct.pack("<Qq", sequence, now_us) + body)
    inner = message([(1, writer), (2, sequence), (3, now_us)]) + fixed32(4, checksum) + field(5, body)
    return field(3, inner)


def heartbeat(writer: bytes) -> bytes:
    return field(5, message([(1, writer)]))


def close(writer: bytes, final_sequence: int, died: bool = False) -> bytes:
    return field(6, message([(1, writer), (2, final_sequence), (3, int(died))]))


def write_chunks(messages: list[bytes]) -> bytes:
    return message([(1, each) for each in messages])


def refusals(answer: bytes) -> list[str]:
    """Of a WriteChunksResponse: the reasons of what was refused."""
    reasons = []
    for _, each in fields_of(answer):
        for kind, inner in fields_of(bytes(each)) if isinstance(each, bytes) else []:
            if kind == 2 and isinstance(inner, bytes):
                reasons += [str(value, "utf-8") for number, value in fields_of(inner) if number == 3 and isinstance(value, bytes)]
    return reasons


def upload_trace(project: str, external_id: str, name: str, byte_count: int, sha256: bytes, data: bytes) -> list[bytes]:
    """The messages of an upload in one part."""
    header = message([(1, name), (2, 1), (3, byte_count), (4, sha256)])
    upload = message([(1, trial_ref(project, external_id)), (2, header)])
    return [field(1, upload), field(2, message([(1, 0), (2, data)]))]
