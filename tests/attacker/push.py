"""Many messages of one connection at once, each as fast as the master's windows allow, none of which ends.

    begin_calls(connection, 100, b"A")                                   # a stranger's, each with a message that hardly begins
    push_calls(connection, 100, 7 << 20, over)                          # the same, and so much of each message
    push_again(lambda: stand.connect(source), 100, 7 << 20, over)       # anew wherever the master hangs up
    push(connection, {1: first_bytes, 3: first_bytes}, 7 << 20, over)   # until `over` is set, or the master hangs up
    connection.send(reset_calls(9_000))                                  # a stranger's, each reset at once
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable

from h2 import DATA, END_HEADERS, HEADERS, RST_STREAM, Connection, call_headers, frame, grpc_frame, text

PIECE = b"A" * 16_384
# Of one stream, before the next has its turn.
TURN = 1 << 20
LIST = "/stepwell.v1.QueryService/ListTrials"
# As long as a message may be.
MESSAGE_BYTES = 8 << 20


def begin_calls(connection: Connection, count: int, message: bytes) -> None:
    """Without a token; all that is sent of a message is its length and `message`, for which no windows are asked."""
    block = call_headers(LIST, "")
    body = grpc_frame(b"", MESSAGE_BYTES) + message
    connection.send(b"".join(frame(HEADERS, END_HEADERS, at, block) + frame(DATA, 0, at, body) for at in range(1, 2 * count, 2)))


def reset_calls(count: int) -> bytes:
    """Each without a token, and reset at once: 28 bytes, for a header is sent once and named by its number from then on."""
    names = [(":path", LIST), (":authority", "localhost"), ("content-type", "application/grpc"), ("te", "trailers")]
    # POST, https; then each with its name, to be remembered, and from then on as what was remembered.
    first = b"\x83\x87" + b"".join(b"\x40" + text(name) + text(value) for name, value in names)
    again = b"\x83\x87" + bytes(0x80 | (62 + len(names) - 1 - at) for at in range(len(names)))
    cancel = struct.pack(">I", 8)
    return b"".join(
        frame(HEADERS, END_HEADERS, at, first if at == 1 else again) + frame(RST_STREAM, 0, at, cancel) for at in range(1, 2 * count, 2)
    )


def push_calls(connection: Connection, count: int, byte_count: int, over: threading.Event) -> None:
    """Raises OSError once the master hangs up."""
    block = call_headers(LIST, "")
    streams = range(1, 2 * count, 2)
    connection.send(b"".join(frame(HEADERS, END_HEADERS, at, block) for at in streams))
    push(connection, dict.fromkeys(streams, grpc_frame(b"", MESSAGE_BYTES)), byte_count, over)


def push_again(connect: Callable[[], Connection], count: int, byte_count: int, over: threading.Event) -> None:
    while not over.is_set():
        try:
            push_calls(connect(), count, byte_count, over)
        except OSError:
            over.wait(0.05)


def push(connection: Connection, begins: dict[int, bytes], byte_count: int, over: threading.Event) -> None:
    """Raises OSError once the master hangs up."""
    windows = connection.windows
    for stream, begin in begins.items():
        windows.open(stream)
        connection.send(frame(DATA, 0, stream, begin))
        windows.take(len(begin), stream)
    left = dict.fromkeys(begins, byte_count)
    heard = b""
    while not over.is_set():
        has_sent = False
        for stream in list(windows.rooms):
            turn = TURN
            while turn > 0 and left[stream] >= len(PIECE) and windows.has(len(PIECE), stream):
                connection.send(frame(DATA, 0, stream, PIECE))
                windows.take(len(PIECE), stream)
                left[stream] -= len(PIECE)
                turn -= len(PIECE)
                has_sent = True
        connection.socket.settimeout(0.01 if has_sent else 0.2)
        try:
            more = connection.socket.recv(1 << 16)
            if not more:
                raise ConnectionError("closed")
            heard += more
        except TimeoutError:
            pass
        connection.socket.settimeout(10)
        while len(heard) >= 9:
            size = int.from_bytes(heard[:3], "big")
            if len(heard) < 9 + size:
                break
            kind, stream = heard[3], int.from_bytes(heard[5:9], "big")
            answer = windows.hear(kind, heard[4], stream, heard[9 : 9 + size])
            if kind in (RST_STREAM, HEADERS):
                windows.close(stream)
            heard = heard[9 + size :]
            if answer:
                connection.send(answer)
