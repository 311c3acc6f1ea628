"""The page of a trial that is stored: asked of the master, so that a link is never one to another's trial."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

_WAIT_S = 0.5  # in all
_ANSWER_BYTES_MAX = 1 << 20
_LOOPBACKS = ("", "127.0.0.1:7817", "localhost:7817")
_DEFAULT = "http://127.0.0.1:7818"


def link(trial: str | None, project: str | None, server: str | None) -> str:
    """Empty where none is known. Never raises."""
    base = os.environ.get("STEPWELL_PAGE", "").rstrip("/")
    named_server = server or os.environ.get("STEPWELL_SERVER", "")
    if trial is None or (not base and named_server not in _LOOPBACKS):
        return ""
    try:
        number = _trial_number(base or _DEFAULT, trial, project or os.environ.get("STEPWELL_PROJECT") or "")
    except Exception:
        number = ""
    return f"{base or _DEFAULT}/#/trial/{number}/timings" if number else ""


def _trial_number(base: str, trial: str, project: str) -> str:
    import json

    known = {"trialId": trial[3:]} if trial.startswith("id:") else {"externalId": trial, "project": project}
    answer = json.loads(_ask(base, "/stepwell.v1.QueryService/GetTrial", json.dumps({"trial": known}).encode()))
    number = str(answer["trial"]["trialId"])
    return number if number.isascii() and number.isdigit() else ""


def _ask(base: str, path: str, body: bytes) -> bytes:
    """What http.client would do, without the 20 ms that its import takes."""
    import socket
    import time

    deadline_s = time.monotonic() + _WAIT_S
    scheme, _, authority = base.partition("://")
    host, _, port = authority.rpartition(":")
    if scheme != "http" or not port.isdigit():
        raise ValueError(base)
    head = (f"POST {path} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n").encode()  # fmt: skip
    with socket.create_connection((host.strip("[]"), int(port)), _WAIT_S) as connection:
        connection.sendall(head + body)
        answer = _read(connection, deadline_s)
    said, _, content = answer.partition(b"\r\n\r\n")
    if b" 200 " not in said.partition(b"\r\n")[0] or b"transfer-encoding" in said.lower():
        raise ValueError(said)
    return content


def _read(connection: socket.socket, deadline_s: float) -> bytes:
    """To its end."""
    import time

    answer = b""
    while len(answer) < _ANSWER_BYTES_MAX:
        connection.settimeout(max(0.001, deadline_s - time.monotonic()))
        part = connection.recv(65536)
        if not part:
            break
        answer += part
    return answer
