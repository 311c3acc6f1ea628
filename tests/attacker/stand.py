"""A master with TLS and tokens on a fresh data directory, a victim's trial in it, and who looks at both.

    with Stand(program) as stand:
        stand.master_get("/readyz")
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
from types import TracebackType

import h2
import wire

VICTIM = ("victim", "run")
VICTIM_WRITER = bytes(range(16))


class Stand:
    def __init__(self, program: str) -> None:
        self.program = program
        # Of what gRPC allocates by the thousand a sanitizer keeps several times as much again.
        self.memory_scale = 8 if b"__asan_init" in pathlib.Path(program).read_bytes() else 1
        self.planted = ""  # a secret among what was recorded, once there is one
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="stepwell-attacker-"))
        self.scratch.chmod(0o755)  # PostgreSQL's own user passes through it
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("STEPWELL_")}

    def crowd(self, count: int) -> int:
        """Of connections: a sanitizer's gRPC takes minutes for what many of them leave, and then looks for errors alone."""
        return count if self.memory_scale == 1 else max(3, count // 6)

    def __enter__(self) -> Stand:
        try:
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        master = getattr(self, "master", None)
        if master is not None and master.poll() is None:
            master.send_signal(signal.SIGTERM)
            try:
                master.wait(timeout=30)
            except subprocess.TimeoutExpired:
                master.kill()
                master.wait()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def command(self, *words: str, **environment: str) -> str:
        done = subprocess.run(
            [self.program, *words], env={**self.environment, **environment}, capture_output=True, text=True, timeout=60, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{words}: {done.stderr}")
        return done.stdout

    def start(self) -> None:
        certs = self.scratch / "certs"
        self.command("tls", "init", str(certs))
        log = open(self.scratch / "log", "wb")
        ready = self.scratch / "ready"
        self.master = subprocess.Popen(
            [
                *(self.program, "serve", "--data-dir", str(self.scratch / "data"), "--ready-file", str(ready)),
                # On all of the machine's addresses, as masters are; 127.0.0.2 is one of those, too.
                *("--grpc-listen", "0.0.0.0:0", "--http-listen", "127.0.0.1:0", "--wrong-tokens-per-minute", "60"),
                *("--tls-cert", str(certs / "server.pem"), "--tls-key", str(certs / "server.key")),
                *("--token-file", str(self.scratch / "token")),
            ],
            env=self.environment,
            stdout=log,
            stderr=log,
        )
        for _ in range(600):
            if ready.exists() and self.master.poll() is None:
                break
            if self.master.poll() is not None:
                break
            time.sleep(0.1)
        else:
            raise RuntimeError("the master was not ready within a minute")
        if not ready.exists():
            raise RuntimeError("the master ended: " + self.log()[-2000:])
        addresses = json.loads(ready.read_text())
        self.grpc = ("127.0.0.1", self.address(addresses["grpc"])[1])
        self.http = self.address(addresses["http"])
        self.admin = (self.scratch / "token").read_text().strip()
        self.ca = str(certs / "ca.pem")
        self.tls = ssl.create_default_context(cafile=self.ca)
        self.tls_h2 = ssl.create_default_context(cafile=self.ca)
        self.tls_h2.set_alpn_protocols(["h2"])
        for _ in range(300):
            if self.status_of("GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n") == 200:
                break
            time.sleep(0.1)
        self.reader = self.token("read:attacker")
        self.writer = self.token("write:attacker")
        self.ingester = self.token("ingest:attacker/own")
        self.make_victim()
        self.before = self.victim_state()
        self.resident_before = self.resident_mib()

    def start_another(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Of a master that is expected to end by itself, soon."""
        return subprocess.run(
            [self.program, "serve", "--data-dir", str(self.scratch / "another"), *words], env=self.environment, capture_output=True, text=True, timeout=30, check=False
        )

    @staticmethod
    def address(text: str) -> tuple[str, int]:
        host, port = text.rsplit(":", 1)
        return host, int(port)

    def token(self, grant: str) -> str:
        made = self.command(
            *("token", "create", "attacker", "--grant", grant, "--expires", "1h", "--server", f"{self.grpc[0]}:{self.grpc[1]}"),
            STEPWELL_TOKEN=self.admin,
            STEPWELL_TLS_CA=self.ca,
        )
        found = re.search(r"stepwell_[0-9a-f]{12}_[0-9a-f]{64}", made)
        if found is None:
            raise RuntimeError("no token in: " + re.sub(r"_[0-9a-f]{64}", "", made))
        return found.group()

    def make_victim(self) -> None:
        messages = [wire.open_writer(VICTIM_WRITER, *VICTIM), wire.define(VICTIM_WRITER, "loss"), wire.chunk(VICTIM_WRITER, 1, [0.5] * 500)]
        status, words, answer = self.connect().call("/stepwell.v1.IngestService/WriteChunks", [wire.write_chunks(messages)], self.admin)
        if status != 0 or wire.refusals(answer):
            raise RuntimeError(f"the victim's trial was not stored: {status} {words} {wire.refusals(answer)}")
        events = b'{"traceEvents":[{"ph":"X","name":"secret","ts":1,"dur":2,"pid":4,"tid":5}]}'
        trace = wire.upload_trace(*VICTIM, "theirs.json", len(events), hashlib.sha256(events).digest(), events)
        status, words, _ = self.connect().call("/stepwell.v1.TraceService/UploadTrace", trace, self.admin)
        if status != 0:
            raise RuntimeError(f"the victim's trace was not stored: {status} {words}")
        listed = self.post("TraceService/ListTraces", json.dumps({"trial": {"project": VICTIM[0], "externalId": VICTIM[1]}}), self.admin)[2]
        self.victim_trace_no = int(json.loads(listed)["traces"][0]["traceNo"])

    def connect(self, source: str = "127.0.0.1") -> h2.Connection:
        return h2.Connection(self.grpc, self.tls_h2, source)

    # --- HTTP by hand: nothing is put right on the way

    def raw(self, data: bytes | str, source: str = "127.0.0.1", timeout: float = 15, is_tls: bool = True) -> tuple[int, str, bytes]:
        """The status (0: none came), the header, the body of what is answered."""
        if isinstance(data, str):
            data = data.encode("latin-1")
        answer = b""
        try:
            plain = socket.create_connection(self.http, timeout=timeout, source_address=(source, 0))
            with self.tls.wrap_socket(plain, server_hostname="127.0.0.1") if is_tls else plain as connection:
                try:
                    connection.sendall(data)
                except OSError:
                    pass  # it may have said why already
                while True:
                    more = connection.recv(1 << 16)
                    if not more:
                        break
                    answer += more
                    if is_whole(answer):
                        break
        except OSError:
            pass
        head, _, body = answer.partition(b"\r\n\r\n")
        words = head.split(b" ", 2)
        status = int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
        return status, head.decode("latin-1"), body

    def status_of(self, data: bytes | str, source: str = "127.0.0.1") -> int:
        return self.raw(data, source)[0]

    def get(self, path: str, token: str = "", source: str = "127.0.0.1", more: str = "", method: str = "GET") -> tuple[int, str, bytes]:
        authorization = f"Authorization: Bearer {token}\r\n" if token else ""
        return self.raw(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{authorization}{more}Connection: close\r\n\r\n", source)

    def post(
        self, method: str, body: bytes | str, token: str = "", source: str = "127.0.0.1", kind: str = "application/json", more: str = ""
    ) -> tuple[int, str, bytes]:
        data = body.encode() if isinstance(body, str) else body
        authorization = f"Authorization: Bearer {token}\r\n" if token else ""
        head = f"POST /stepwell.v1.{method} HTTP/1.1\r\nHost: localhost\r\n{authorization}Content-Type: {kind}\r\n"
        return self.raw(head.encode() + f"Content-Length: {len(data)}\r\n{more}Connection: close\r\n\r\n".encode() + data, source)

    # --- what must hold at the end

    def await_calm(self) -> None:
        """Behind a flood the threads of gRPC may be taken for a moment (docs/security.md), which is no answer to what comes next."""
        until = time.monotonic() + 15
        while self.post("QueryService/ListTrials", "{}", self.reader)[0] != 200:
            if time.monotonic() > until:
                raise RuntimeError("15 s behind a flood a token that lives is not let in")
            time.sleep(0.05)

    def victim_state(self) -> dict[str, object]:
        trial = {"trial": {"project": VICTIM[0], "externalId": VICTIM[1]}}
        state: dict[str, object] = {}
        for method, request in (
            ("QueryService/GetTrial", trial),
            ("QueryService/ListSeries", trial),
            ("QueryService/LatestValues", trial),
            ("TraceService/ListTraces", trial),
            ("AdminService/GetCaps", {"place": trial}),
            ("QueryService/ListTrials", {"project": VICTIM[0]}),
        ):
            status, _, body = self.post(method, json.dumps(request), self.admin)
            if status != 200:
                raise RuntimeError(f"{method}: {status} {body[:300]!r}")
            state[method] = without_times(json.loads(body))
        return state

    def resident_mib(self) -> float:
        for line in pathlib.Path(f"/proc/{self.master.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        return -1

    def log(self) -> str:
        return (self.scratch / "log").read_bytes().decode("utf-8", "replace")


def is_whole(answer: bytes) -> bool:
    """By its Content-Length; what is in parts ends with the connection."""
    head, end, body = answer.partition(b"\r\n\r\n")
    if not end:
        return False
    found = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    return found is not None and len(body) >= int(found.group(1))


def without_times(value: object) -> object:
    """What does not change while nobody writes: no completeness, no times at which somebody was heard."""
    if isinstance(value, dict):
        dropped = ("completeness", "seenTimeUs", "answeredTimeUs", "lastSeenTimeUs", "changedTimeUs", "state", "silentSeconds")
        return {name: without_times(each) for name, each in value.items() if name not in dropped}
    if isinstance(value, list):
        return [without_times(each) for each in value]
    return value
