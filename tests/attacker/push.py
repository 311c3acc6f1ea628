"""Many messages of one connection at once, each as fast as the master's windows allow, none of which ends.

    push(connection, {1: first_bytes, 3: first_bytes}, 7 << 20, over)   # until `over` is set, or the master hangs up
"""

from __future__ import annotations

import struct
import threading

from h2 import ACK, DATA, HEADERS, PING, RST_STREAM, SETTINGS, WINDOW_UPDATE, Connection, frame

PIECE = b"A" * 16_384
# Of one stream, before the next has its turn.
TURN = 1 << 20


class Windows:
    """What may be sent: in all, and of each stream that the master has not ended."""

    def __init__(self, streams: list[int]) -> None:
        self.room = self.first = 65_535
        self.rooms = dict.fromkeys(streams, self.first)

    def take(self, count: int, stream: int) -> None:
        self.room -= count
        self.rooms[stream] -= count

    def has(self, count: int, stream: int) -> bool:
        return min(self.room, self.rooms[stream]) >= count

    def hear(self, kind: int, flags: int, stream: int, payload: bytes) -> bytes:
        """What is to be answered."""
        if kind == SETTINGS and not flags & ACK:
            for at in range(0, len(payload), 6):
                name, value = struct.unpack_from(">HI", payload, at)
                if name == 4:
                    self.rooms = {each: room + value - self.first for each, room in self.rooms.items()}
                    self.first = value
            return frame(SETTINGS, ACK, 0, b"")
        if kind == PING and not flags & ACK:
            return frame(PING, ACK, 0, payload)
        if kind == WINDOW_UPDATE and stream == 0:
            self.room += struct.unpack(">I", payload)[0]
        elif kind == WINDOW_UPDATE and stream in self.rooms:
            self.rooms[stream] += struct.unpack(">I", payload)[0]
        elif kind in (RST_STREAM, HEADERS):
            self.rooms.pop(stream, None)
        return b""


def push(connection: Connection, begins: dict[int, bytes], byte_count: int, over: threading.Event) -> None:
    """Raises OSError once the master hangs up."""
    windows = Windows(list(begins))
    for stream, begin in begins.items():
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
            answer = windows.hear(heard[3], heard[4], int.from_bytes(heard[5:9], "big"), heard[9 : 9 + size])
            heard = heard[9 + size :]
            if answer:
                connection.send(answer)
