"""Many messages of one connection at once, each as fast as the master's windows allow, none of which ends.

    push(connection, {1: first_bytes, 3: first_bytes}, 7 << 20, over)   # until `over` is set, or the master hangs up
"""

from __future__ import annotations

import threading

from h2 import DATA, HEADERS, RST_STREAM, Connection, frame

PIECE = b"A" * 16_384
# Of one stream, before the next has its turn.
TURN = 1 << 20


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
