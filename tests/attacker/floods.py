"""Sizes, lengths, floods and traces that are none."""

from __future__ import annotations

import functools
import gzip
import hashlib
import json
import os
import re
import socket
import struct
import threading
import time
import zlib

import h2
import wire
from push import push_again
from stand import VICTIM, Stand
from table import HEAD, RESIDENT_GROWTH_MIB_MAX, Answers, attack, code, patiently, told

# Two thousand of them would be 16 GB.
ENDLESS_GROWTH_MIB_MAX = 400

# --- floods and lengths

def bomb_of(mib: int, begin: bytes = b"", fill: bytes = b" ") -> bytes:
    """gzip of so many MiB: one packed MiB again and again, so that it costs us nothing."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    head = packer.compress(begin) + packer.flush(zlib.Z_FULL_FLUSH)
    one = packer.compress(fill * (1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    crc = zlib.crc32(begin)
    for _ in range(mib):
        crc = zlib.crc32(fill * (1 << 20), crc)
    size = len(begin) + (mib << 20) & 0xFFFFFFFF
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + head + one * mib + packer.flush() + struct.pack("<II", crc, size)


@attack("a body that unpacks to a thousand times its size (gzip)", "429")
def gzip_bomb(stand: Stand) -> Answers:
    bomb = bomb_of(256)
    return [told(stand.post("QueryService/ListTrials", bomb, stand.reader, more="Content-Encoding: gzip\r\n")) for _ in range(4)]


@attack("lengths of bodies that lie: huge, negative, doubled, with chunks beside", "400 or 429 or 501", known="cpp-httplib CVE-2025-46728, CVE-2026-45352")
def lengths(stand: Stand) -> Answers:
    start = f"POST /stepwell.v1.QueryService/ListTrials HTTP/1.1\r\n{HEAD}Authorization: Bearer {stand.reader}\r\nContent-Type: application/json\r\n"
    ends = (
        "Content-Length: 999999999999999\r\n\r\n{}",
        "Content-Length: -1\r\n\r\n{}",
        "Content-Length: 18446744073709551617\r\n\r\n{}",
        "Content-Length: 2\r\nContent-Length: 40\r\n\r\n{}",
        "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}",
        "Transfer-Encoding: xchunked\r\n\r\n{}",
    )
    return [told(stand.raw(start + end, timeout=3)) for end in ends]


@attack("envelopes of Connect whose length lies", "invalid_argument or resource_exhausted or unimplemented or internal", known="Dynolog, xpu_timer, TraceML")
def envelopes(stand: Stand) -> Answers:
    answers = []
    for head in (b"\x00\xff\xff\xff\xff", b"\x00\x00\x00\x00\x09", b"\xff\x00\x00\x00\x02", b"\x00\x00", b"\x01\x00\x00\x00\x02"):
        status, _, body = stand.post("QueryService/ReadSamples", head + b"{}", stand.reader, kind="application/connect+json")
        found = re.search(rb'"code":"(\w+)"', body)
        answers.append(found.group(1).decode() if found else str(status))
    return answers


@attack("messages of gRPC whose length lies, packed ones, and bytes that are none", "INTERNAL or INVALID_ARGUMENT", known="Dynolog, xpu_timer, TraceML")
def grpc_lengths(stand: Stand) -> Answers:
    answers = []
    for body in (
        h2.grpc_frame(b"x", 0xFFFFFFFF),
        h2.grpc_frame(b"x", 0x7FFFFFFF),
        h2.grpc_frame(b"x" * 10, 3),
        b"\x01" + h2.grpc_frame(gzip.compress(b"x"))[1:],
        h2.grpc_frame(b"\xff" * 1000),
        h2.grpc_frame(wire.varint(1 << 3 | 2) + wire.varint(1 << 62)),
        h2.grpc_frame(b"\x0b" * 20_000),
    ):
        answers.append(code(stand.connect().call("/stepwell.v1.QueryService/GetTrial", [], stand.reader, raw_body=body)[0]))
    return answers


@attack("headers: ten thousand, one of a megabyte, one that never ends, of HTTP", "431 or 400", known="cpp-httplib CVE-2025-52887, CVE-2025-53628")
def header_floods(stand: Stand) -> Answers:
    return [
        told(stand.raw(f"GET / HTTP/1.1\r\n{HEAD}" + "".join(f"X-{i}: {i}\r\n" for i in range(10_000)) + "\r\n")),
        told(stand.raw(f"GET / HTTP/1.1\r\n{HEAD}X: " + "x" * (1 << 20) + "\r\n\r\n")),
        told(stand.raw("GET /" + "a" * (1 << 20) + " HTTP/1.1\r\n\r\n")),
        told(stand.raw(f"GET / HTTP/1.1\r\n{HEAD}X: a\r\n b: " + "\x00" * 100 + "\r\n\r\n")),
    ]


@attack("headers of HTTP/2: a megabyte of them, and blocks that never end", "closed or RESOURCE_EXHAUSTED or UNAUTHENTICATED or UNAVAILABLE", known="gRPC CVE-2023-33953")
def h2_headers(stand: Stand) -> Answers:
    answers = [code(stand.connect().call("/x.Y/Z", [b""], more=[(f"x-{i}", "v" * 100) for i in range(100)])[0])]
    connection = stand.connect()
    try:
        # HEADERS without its end, and CONTINUATIONs.
        connection.send(h2.frame(h2.HEADERS, 0, 1, h2.call_headers("/x.Y/Z", "")))
        for _ in range(2000):
            connection.send(h2.frame(9, 0, 1, h2.header("x", "v" * 1000)))
        connection.socket.settimeout(5)
        answers.append(code(connection.answer(1)[0]))
    except OSError:
        answers.append(code(-1))
    return answers


@attack("streams of HTTP/2 that are opened and reset at once, three thousand", "UNAUTHENTICATED", known="HTTP/2 CVE-2023-44487")
def rapid_reset(stand: Stand) -> Answers:
    connection = stand.connect("127.0.2.7")
    try:
        block = h2.call_headers("/stepwell.v1.QueryService/ListTrials", "")
        for at in range(3000):
            number = 1 + 2 * at
            connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, number, block) + h2.frame(h2.RST_STREAM, 0, number, struct.pack(">I", 8)))
    except OSError:
        pass  # it was hung up on
    # It is hung up on, by what gRPC counts of it; others are not.
    connection.socket.settimeout(10)
    try:
        while connection.socket.recv(1 << 16):
            pass
    except TimeoutError:
        return ["nobody counted them"]
    except OSError:
        pass
    return [patiently(stand, "127.0.2.8", "")]


@attack("messages of gRPC that begin and do not end, without a token: a hundred on each of twenty connections; others are answered meanwhile", "OK, 200, bounded")
def endless_messages(stand: Stand) -> Answers:
    """What they may make the master hold is told by how large it grows; each would take megabytes, and all of them gigabytes."""
    before = stand.resident_mib()
    over = threading.Event()
    # As fast as the master's windows allow.
    connects = [functools.partial(stand.connect, f"127.0.3.{1 + at % 4}") for at in range(stand.crowd(20))]
    strangers = [threading.Thread(target=push_again, args=(connect, 100, 7 << 20, over)) for connect in connects]
    for stranger in strangers:
        stranger.start()
    answers, largest = [], 0.0
    for _ in range(20):
        reading = patiently(stand, "127.0.3.9", stand.reader)
        page = told(stand.get("/livez", source="127.0.3.9"))
        largest = max(largest, stand.resident_mib() - before)
        bounded = "bounded" if largest < ENDLESS_GROWTH_MIB_MAX * stand.memory_scale else f"{largest:.0f} MiB"
        answers.append(f"{reading}, {page}, {bounded}")
        over.wait(0.25)
    over.set()
    for stranger in strangers:
        stranger.join()
    return answers


@attack("a hundred clients that send a byte now and then (slow loris); others are answered meanwhile", "200")
def slow_loris(stand: Stand) -> Answers:
    held = []
    for at in range(100):
        plain = socket.create_connection(stand.http, timeout=10, source_address=("127.0.2.1", 0))
        connection = stand.tls.wrap_socket(plain, server_hostname="127.0.0.1")
        connection.sendall(b"GET / HTTP/1.1\r\nHost: loc" if at % 2 else f"POST /stepwell.v1.QueryService/ListTrials HTTP/1.1\r\n{HEAD}Authorization: Bearer {stand.reader}\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{{".encode())
        held.append(connection)
    stand.await_calm()  # of the floods before
    begin = time.monotonic()
    answers = [told(stand.get("/livez")), told(stand.post("QueryService/ListTrials", "{}", stand.reader))]
    took = time.monotonic() - begin
    for connection in held:
        connection.close()
    return answers if took < 5 else [f"after {took:.1f} s"]


@attack("more connections than one address may hold, on either port; others find a place", "up to 256 held, others 200", known="gRPC CVE-2023-4785")
def many_connections(stand: Stand) -> Answers:
    answers = []
    for at, port in enumerate((stand.http, stand.grpc)):
        connections = []
        for _ in range(400):
            try:
                connections.append(socket.create_connection(port, timeout=5, source_address=(f"127.0.2.{2 + 2 * at}", 0)))
            except OSError:
                break
        held = 0
        until = time.monotonic() + 2  # less than a handshake may take
        for connection in connections:
            connection.settimeout(max(0.001, until - time.monotonic()) if held == 0 else 0.001)
            held += is_open(connection)
        elsewhere = told(stand.get("/livez", source=f"127.0.2.{3 + 2 * at}"))
        # Strangers of other addresses may have a few of the places.
        answers.append(f"{'up to 256' if 200 <= held <= 256 else held} held, others {elsewhere}")
        for connection in connections:
            connection.close()
    return answers


def is_open(connection: socket.socket) -> bool:
    """Nobody has hung up on it within its timeout."""
    try:
        return connection.recv(1) != b""
    except TimeoutError:
        return True
    except OSError:
        return False


@attack("plain bytes on ports that speak TLS", "400 or closed")
def plain_bytes(stand: Stand) -> Answers:
    answers = [told(stand.raw(f"GET / HTTP/1.1\r\n{HEAD}\r\n", is_tls=False))]
    for data in (b"\x00" + os.urandom(4000), h2.PREFACE, b"GET / HTTP/1.1\r\n\r\n"):
        answer = b""
        try:
            with socket.create_connection(stand.grpc, timeout=15) as connection:
                connection.sendall(data)
                while more := connection.recv(4096):
                    answer += more
        except TimeoutError:
            answers.append("left open")
            continue
        except OSError:
            pass  # it hung up on what it had not read
        # It may say why, in an alert of TLS.
        is_alert = len(answer) >= 3 and answer[:2] == b"\x15\x03"
        answers.append("closed" if not answer or is_alert else f"answered {answer[:20]!r}")
    return answers


# --- traces

def upload(stand: Stand, name: str, data: bytes, byte_count: int | None = None, digest: bytes | None = None, token: str = "", trial: tuple[str, str] = ("attacker", "own")) -> str:
    messages = wire.upload_trace(*trial, name, len(data) if byte_count is None else byte_count, hashlib.sha256(data).digest() if digest is None else digest, data)
    return code(stand.connect().call("/stepwell.v1.TraceService/UploadTrace", messages, token or stand.writer)[0])


@attack("traces: into another's trial, with a wrong digest, a size that lies, a name that is a path", "PERMISSION_DENIED or INVALID_ARGUMENT or DATA_LOSS", known="MLflow CVE-2024-1560; Aim (aim#3327, aim#3424); ClearML CVE-2024-24591")
def hostile_traces(stand: Stand) -> Answers:
    data = b'{"traceEvents":[]}'
    return [
        upload(stand, "theirs.json", data, trial=VICTIM),
        upload(stand, "digest.json", data, digest=b"\x00" * 32),
        upload(stand, "short.json", data, digest=b"\x00"),
        upload(stand, "huge.json", data, byte_count=1 << 62),
        upload(stand, "negative.json", data, byte_count=(1 << 64) - 5),
        upload(stand, "more.json", data, byte_count=3),
        upload(stand, "../../../../tmp/x", data),
        upload(stand, "a\x00b", data),
    ]


@attack("a trace that unpacks to a thousand times its size, read by the master", "bounded")
def trace_bomb(stand: Stand) -> Answers:
    answers = []
    before = stand.resident_mib()
    bombs = {"bomb.json.gz": bomb_of(200, b'{"traceEvents":['), "deep.json.gz": bomb_of(20, b'{"traceEvents":', b"[")}
    for name, bomb in bombs.items():
        said = upload(stand, name, bomb)
        if said != "OK":
            answers.append(f"upload {said}")
            continue
        request = {"trial": {"project": "attacker", "externalId": "own"}}
        _, _, listed = stand.post("TraceService/ListTraces", json.dumps(request), stand.writer)
        numbers = [each["traceNo"] for each in json.loads(listed).get("traces", [])]
        begin = time.monotonic()
        stand.post("TraceService/SummarizeTrace", json.dumps({**request, "traceNo": numbers[-1]}), stand.writer)
        took = time.monotonic() - begin
        grown = stand.resident_mib() - before
        answers.append("bounded" if took < 15 and grown < RESIDENT_GROWTH_MIB_MAX else f"{took:.0f} s, {grown:.0f} MiB")
    return answers
