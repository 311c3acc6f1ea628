"""The page of a trial that is stored. A master whose address is a number is asked, so that the link is the very trial's;
a name is not looked up, for that may take longer than an exit should: its link is a search.
"""

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
        if _is_name(base or _DEFAULT):
            return _search(base, trial)
        number = _trial_number(base or _DEFAULT, trial, project or os.environ.get("STEPWELL_PROJECT") or "")
    except Exception:
        number = ""
    return f"{base or _DEFAULT}/#/trial/{number}/timings" if number else ""


def _is_name(base: str) -> bool:
    """https counts as one: who speaks it is not asked."""
    scheme, _, authority = base.partition("://")
    host = authority.rpartition(":")[0] or authority
    if scheme not in ("http", "https") or not host or not authority.isprintable() or " " in authority:
        raise ValueError(base)
    return scheme == "https" or not (host == "localhost" or "[" in host or host.replace(".", "").isdigit())


def _search(base: str, trial: str) -> str:
    from urllib.parse import quote

    return f"{base}/#/trial/{trial[3:]}/timings" if trial.startswith("id:") else f"{base}/#/trials?q={quote(trial, '')}"


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
    authority = base.partition("://")[2]
    host, _, port = authority.rpartition(":")
    address = "127.0.0.1" if host == "localhost" else host.strip("[]")
    family, kind, _, _, place = socket.getaddrinfo(address, int(port), type=socket.SOCK_STREAM,
                                                   flags=socket.AI_NUMERICHOST)[0]  # fmt: skip
    head = (f"POST {path} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n").encode()  # fmt: skip
    with socket.socket(family, kind) as connection:
        connection.settimeout(_WAIT_S)
        connection.connect(place)
        connection.settimeout(max(0.001, deadline_s - time.monotonic()))
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
