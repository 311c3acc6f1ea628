"""gRPC over frames of HTTP/2 made by hand, so that lengths, resets and headers may be anything.

    status, message, answer = Connection(address, tls).call("/stepwell.v1.QueryService/GetTrial", [request], token)
"""

from __future__ import annotations

import socket
import ssl
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def integer(value: int, bits: int, first: int) -> bytes:
    top = (1 << bits) - 1
    if value < top:
        return bytes([first | value])
    out = bytearray([first | top])
    value -= top
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return integer(len(data), 7, 0) + data


def header(name: str, value: str | bytes) -> bytes:
    """A literal that no table keeps."""
    return b"\x00" + text(name) + text(value)


def grpc_frame(body: bytes, length: int | None = None) -> bytes:
    return b"\x00" + struct.pack(">I", len(body) if length is None else length) + body


def call_headers(path: str, token: str, more: list[tuple[str, str]] | None = None) -> bytes:
    fields = [(":method", "POST"), (":scheme", "https"), (":path", path), (":authority", "localhost")]
    fields += [("content-type", "application/grpc"), ("te", "trailers")]
    if token:
        fields.append(("authorization", "Bearer " + token))
    return b"".join(header(name, value) for name, value in fields + (more or []))


class Windows:
    """What may be sent: in all, and on each stream that is open."""

    def __init__(self) -> None:
        self.room = self.first = 65_535
        self.rooms: dict[int, int] = {}

    def open(self, stream: int) -> None:
        self.rooms[stream] = self.first

    def close(self, stream: int) -> None:
        self.rooms.pop(stream, None)

    def has(self, count: int, stream: int) -> bool:
        return min(self.room, self.rooms[stream]) >= count

    def take(self, count: int, stream: int) -> None:
        self.room -= count
        self.rooms[stream] -= count

    def hear(self, kind: int, flags: int, stream: int, payload: bytes) -> bytes:
        """What is to be answered to a frame of the connection's own."""
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
        return b""


class Connection:
    def __init__(self, address: tuple[str, int], tls: ssl.SSLContext, source: str = "127.0.0.1") -> None:
        self.begin(socket.create_connection(address, timeout=10, source_address=(source, 0)), tls, address[0])

    @classmethod
    def over(cls, plain: socket.socket, tls: ssl.SSLContext, name: str) -> Connection:
        """Of a connection that is there already, to a server of that name."""
        made = cls.__new__(cls)
        made.begin(plain, tls, name)
        return made

    def begin(self, plain: socket.socket, tls: ssl.SSLContext, name: str) -> None:
        self.socket = tls.wrap_socket(plain, server_hostname=name)
        self.stream = -1
        self.windows = Windows()
        self.answered: list[tuple[int, int, int, bytes]] = []
        # No table of theirs: all that they answer is literal.
        table_size = struct.pack(">HI", 1, 0)
        window = struct.pack(">HI", 4, 1 << 30)
        self.send(PREFACE + frame(SETTINGS, 0, 0, table_size + window))
        self.send(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 29)))

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def read_exactly(self, count: int) -> bytes:
        out = b""
        while len(out) < count:
            more = self.socket.recv(count - len(out))
            if not more:
                raise ConnectionError("closed")
            out += more
        return out

    def read_frame(self) -> tuple[int, int, int, bytes]:
        head = self.read_exactly(9)
        size = struct.unpack(">I", b"\0" + head[:3])[0]
        return head[3], head[4], struct.unpack(">I", head[5:])[0], self.read_exactly(size)

    def call(
        self,
        path: str,
        messages: list[bytes],
        token: str = "",
        raw_body: bytes | None = None,
        more: list[tuple[str, str]] | None = None,
    ) -> tuple[int, str, bytes]:
        """The status, its words, the first answer; -1 and why where there is none."""
        self.stream += 2
        stream = self.stream
        body = b"".join(grpc_frame(each) for each in messages) if raw_body is None else raw_body
        try:
            self.send(frame(HEADERS, END_HEADERS, stream, call_headers(path, token, more)))
            self.windows.open(stream)
            for at in range(0, max(len(body), 1), 16_000):
                piece = body[at : at + 16_000]
                last = at + 16_000 >= len(body)
                # It may be refused before it is all sent.
                while not self.windows.has(len(piece), stream) and not self.answered:
                    self.take(stream)
                if self.answered:
                    break
                self.windows.take(len(piece), stream)
                self.send(frame(DATA, END_STREAM if last else 0, stream, piece))
            return self.answer(stream)
        except (ConnectionError, TimeoutError, ssl.SSLError, OSError) as error:
            return -1, f"{type(error).__name__}", b""
        finally:
            self.windows.close(stream)

    def answer(self, stream: int) -> tuple[int, str, bytes]:
        fields: dict[str, str] = {}
        body = b""
        while True:
            while not self.answered:
                self.take(stream)
            kind, flags, _, payload = self.answered.pop(0)
            if kind == RST_STREAM:
                self.answered.clear()
                return -1, f"reset {struct.unpack('>I', payload)[0]}", body[5:]
            elif kind == DATA:
                body += payload
            elif kind == HEADERS:
                fields.update(literals(payload))
            if kind in (DATA, HEADERS) and flags & END_STREAM:
                self.answered.clear()
                return int(fields.get("grpc-status", "-1")), fields.get("grpc-message", ""), body[5:]

    def take(self, stream: int) -> None:
        """One frame: what is of `stream` waits for answer(), the rest is dealt with."""
        kind, flags, number, payload = self.read_frame()
        if kind == GOAWAY:
            raise ConnectionError("GOAWAY")
        if number == stream and kind in (DATA, HEADERS, RST_STREAM):
            self.answered.append((kind, flags, number, payload))
        elif answer := self.windows.hear(kind, flags, number, payload):
            self.send(answer)

    def close(self) -> None:
        self.socket.close()


def literals(block: bytes) -> dict[str, str]:
    """Names and values that stand there as they are; what is of the static table or packed counts for nothing here."""
    fields: dict[str, str] = {}
    at = 0

    def read_integer(bits: int) -> int:
        nonlocal at
        top = (1 << bits) - 1
        value = block[at] & top
        at += 1
        if value < top:
            return value
        shift = 0
        while True:
            byte = block[at]
            at += 1
            value += (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    def read_text() -> str:
        nonlocal at
        is_packed = bool(block[at] & 0x80)
        size = read_integer(7)
        data = block[at : at + size]
        at += size
        return "" if is_packed else data.decode("latin-1")

    while at < len(block):
        first = block[at]
        if first & 0x80:
            read_integer(7)
            continue
        if first & 0xE0 == 0x20:  # the table's size
            read_integer(5)
            continue
        index = read_integer(6 if first & 0x40 else 4)
        name = read_text() if index == 0 else f"static {index}"
        fields[name] = read_text()
    return fields
