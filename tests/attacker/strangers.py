"""What somebody without a token tries, or with one that he guesses, or by a browser of the machine."""

from __future__ import annotations

import json
import time

import h2
from contract import methods
from stand import Stand
from table import ROOT, VICTIM_JSON, Answers, attack, code, told

# --- paths

TRAVERSALS = (
    "/../../../../etc/passwd",
    "/..%2f..%2f..%2fetc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/%252e%252e%252f%252e%252e%252fetc/passwd",
    "/..%5c..%5c..%5cetc%5cpasswd",
    "/..\\..\\..\\etc\\passwd",
    "/assets/../../../etc/passwd",
    "/assets/..;/..;/etc/passwd",
    "//etc/passwd",
    "/./metrics",
    "/metrics;.css",
    "/metrics/",
    "/metrics%00",
    "/index.html%00.png",
    "/%c0%ae%c0%ae/etc/passwd",
    "/stepwell.v1.QueryService/../TokenService/ListTokens",
    "/STEPWELL.V1.QUERYSERVICE/GETTRIAL",
    "/file:///etc/passwd",
)


@attack("paths that leave the page's folder (`..`, decoded twice, `\\`, `;`, `%00`), by a stranger", "401", known="MLflow CVE-2023-1177, CVE-2023-2356, CVE-2023-2780, CVE-2024-1560, CVE-2024-1593, CVE-2026-2614; Aim CVE-2024-8769; ClearML CVE-2024-24591; Grafana CVE-2021-43798")
def traversal_stranger(stand: Stand) -> Answers:
    return [told(stand.get(path)) for path in TRAVERSALS]


@attack("the same, by who may do everything", "404 or 400", known="the same")
def traversal_admin(stand: Stand) -> Answers:
    return [told(stand.get(path, stand.admin)) for path in TRAVERSALS]


@attack("redirects elsewhere (`//evil.example/`, `/\\evil.example`, `?next=`)", "404 or 200", known="Grafana CVE-2025-4123")
def redirects(stand: Stand) -> Answers:
    paths = ("//evil.example/", "/\\evil.example", "/%2f%2fevil.example", "/http://evil.example/", "/?next=//evil.example", "/?redirect=http://evil")
    return [told(stand.get(path, stand.admin)) for path in paths]


@attack("pages for debugging and control that others leave open (`/debug/pprof/`, `/-/reload`, `/graphql`, …), by who may do everything", "404 or 400", known="MLflow CVE-2026-0545 (`/api/jobs/`); Ray CVE-2023-48022; Prometheus' pprof")
def debug_pages(stand: Stand) -> Answers:
    paths = ("/debug/pprof/", "/debug/pprof/heap", "/debug/vars", "/-/reload", "/-/quit", "/graphql", "/ajax-api/2.0/mlflow/experiments/list", "/api/jobs/")
    paths += ("/get-artifact?path=/etc/passwd", "/model-versions/get-artifact?path=..%2f..%2fetc%2fpasswd", "/public/plugins/text/../../../../etc/passwd")
    return [told(stand.get(path, stand.admin)) for path in paths]


@attack("a master that is to listen everywhere without TLS or without tokens", "refused to start", known="Ray CVE-2023-48022; TensorBoard before 2.0 (tensorboard#2387); Aim")
def open_binds(stand: Stand) -> Answers:
    answers = []
    certs = ("--tls-cert", str(stand.scratch / "certs/server.pem"), "--tls-key", str(stand.scratch / "certs/server.key"))
    for words in (("--grpc-listen", "0.0.0.0:0"), ("--http-listen", "0.0.0.0:0"), ("--http-listen", "[::]:0"), ("--grpc-listen", "0.0.0.0:0", *certs, "--token-file", "none")):
        done = stand.start_another(*words)
        answers.append("refused to start" if done.returncode not in (0, None) and "--insecure-allow-remote" in done.stderr else f"{done.returncode}: {done.stderr[-300:]}")
    return answers


# --- browsers of others

@attack("a page of others that asks whether it may call (a preflight with `Origin`): by a stranger, and with a token that it found", "401 or 403 or 405", known="Aim (CORS `*`)")
def preflight(stand: Stand) -> Answers:
    wish = "Origin: https://evil.example\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization\r\n"
    paths = ("/stepwell.v1.QueryService/ListTrials", "/metrics", "/")
    return [told(stand.get(path, token, more=wish, method="OPTIONS")) for path in paths for token in ("", stand.admin)]


@attack("a name that somebody points at this machine (DNS rebinding)", "403", known="MLflow CVE-2025-14279")
def rebinding(stand: Stand) -> Answers:
    hosts = ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "2130706433", "localhost@evil.example")
    return [
        told(stand.raw(f"{line}Host: {host}\r\nAuthorization: Bearer {stand.admin}\r\nConnection: close\r\n\r\n"))
        for host in hosts
        for line in ("GET /index.html HTTP/1.1\r\n", "GET /metrics HTTP/1.1\r\n")
    ]


@attack("a page of another site calls (`Origin`, `Sec-Fetch-Site`), with a token that lives", "403", known="ClearML CVE-2024-24593")
def cross_origin(stand: Stand) -> Answers:
    more = ("Origin: http://evil.example\r\n", "Origin: null\r\n", "Sec-Fetch-Site: cross-site\r\n", "Origin: https://localhost.evil.example\r\n")
    answers = [told(stand.post("QueryService/ListTrials", "{}", stand.admin, more=each)) for each in more]
    return answers + [told(stand.get("/metrics", stand.admin, more=each)) for each in more]


@attack("what a form of another site can send (`text/plain`, a form's own)", "415", known="ClearML CVE-2024-24593")
def forms(stand: Stand) -> Answers:
    kinds = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x")
    return [told(stand.post("AdminService/DeleteTrial", json.dumps(VICTIM_JSON), stand.admin, kind=kind)) for kind in kinds]


# --- without a token, and with a wrong one

@attack("every path of HTTP without a token, `/metrics` and `/sd` among them", "401", known="MLflow CVE-2026-0545; ClearML CVE-2024-24592; Prometheus and its exporters")
def http_without(stand: Stand) -> Answers:
    answers = []
    for path in http_paths():
        # What is not there would be refused as well.
        there = stand.get(path, stand.admin)[0]
        answers.append(told(stand.get(path)) + ("" if there == 200 else f", and {there} by who may do everything: {path}"))
    answers += [told(stand.get(path)) for path in ("/metrics?trial=1", "/no/such")]
    calls = [f"/stepwell.v1.{method.path}" for method in methods()]
    answers += [told(stand.get(path)) for path in calls]
    return answers + [told(stand.post(method.path, "{}")) for method in methods()]


def http_paths() -> list[str]:
    """All that are no calls, but for those that are open to everybody. RouteDoorsTest holds the list against the router's own table."""
    lines = (ROOT / "tests/attacker/http_paths.txt").read_text().splitlines()
    paths = [line for line in lines if line.startswith("/") and not line.endswith(" open")]
    return paths + [f"/{file.name}" for file in sorted((ROOT / "client/web/dist").iterdir())]


@attack("every method of gRPC without a token; health, reflection and none such", "UNAUTHENTICATED", known="Aim (aim#3412); Ray CVE-2023-48022; Dynolog, xpu_timer")
def grpc_without(stand: Stand) -> Answers:
    connection = stand.connect()
    paths = [f"/stepwell.v1.{method.path}" for method in methods()]
    paths += ["/grpc.health.v1.Health/Check", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "/no.Such/Method"]
    return [code(connection.call(path, [b""])[0]) for path in paths]


FORGED = "2026-01-01T00:00:00.000000Z info forged by=attacker"


@attack("every method of gRPC without a token, with bytes that are no message: gRPC answers those itself, of what is there", "INVALID_ARGUMENT or UNAUTHENTICATED")
def grpc_without_message(stand: Stand) -> Answers:
    connection = stand.connect()
    return [code(connection.call(f"/stepwell.v1.{method.path}", [], raw_body=h2.grpc_frame(b"\xff\xff"))[0]) for method in methods()]


@attack("headers that gRPC cannot read, or cannot write out again, and lines for the log in them", "UNAUTHENTICATED or INTERNAL or UNKNOWN or UNAVAILABLE or closed", known="gRPC CVE-2023-1428")
def odd_headers(stand: Stand) -> Answers:
    usual = [(":method", "POST"), (":scheme", "https"), (":path", "/stepwell.v1.QueryService/ListTrials"), (":authority", "localhost")]
    usual += [("content-type", "application/grpc"), ("te", "trailers")]
    evil = f"x\x1b[31m\n{FORGED}"
    answers = []
    for name, value in (
        ("grpclb_client_stats", "x"), ("grpclb_client_stats", ""), ("te", evil), (":scheme", evil), (":method", evil), ("grpc-timeout", evil),
        ("grpc-encoding", evil), ("content-type", evil), ("x-bin", "!" + evil), ("lb-token", evil), ("lb-cost-bin", "AAAA"),
        ("grpc-previous-rpc-attempts", evil), ("grpc-retry-pushback-ms", evil), ("grpc-tags-bin", "!!"), ("user-agent", evil), ("", evil), ("A\0B", evil),
    ):  # fmt: skip
        fields = [each for each in usual if each[0] != name] + [(name, value)]
        connection = stand.connect()
        try:
            connection.socket.settimeout(5)
            block = b"".join(h2.header(*each) for each in sorted(fields, key=lambda each: not each[0].startswith(":")))
            connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, block) + h2.frame(h2.DATA, h2.END_STREAM, 1, h2.grpc_frame(b"")))
            answers.append(code(connection.answer(1)[0]))
        except OSError:
            answers.append(code(-1))
        if stand.master.poll() is not None:
            return answers + [f"the master ended at {name!r}"]
    return answers


@attack("a log to fill: two thousand calls with a header of 8 KB that gRPC complains of", "UNKNOWN or closed")
def noise(stand: Stand) -> Answers:
    connection = stand.connect()
    fields = [(":method", "POST"), (":scheme", "https"), (":path", "/x/y"), (":authority", "localhost"), ("content-type", "application/grpc"), ("te", "A" * 8000)]
    block = b"".join(h2.header(*each) for each in fields)
    answers = []
    try:
        for at in range(2000):
            connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, 1 + 2 * at, block))
            if at % 50 == 49:
                answers.append(code(connection.answer(1 + 2 * at)[0]))
    except OSError:
        answers.append(code(-1))
    return answers


@attack("tokens guessed, cut, too long, in other forms, or several", "401")
def wrong_tokens(stand: Stand) -> Answers:
    other = stand.reader[:-1] + ("0" if stand.reader[-1] != "0" else "1")
    tokens = [other, stand.reader[:-1], stand.reader[:30], stand.reader + "0", "stepwell__", "stepwell_admin_" + "0" * 64, "x" * 9000, "' or 1=1 --"]
    answers = [told(stand.get("/metrics", token, "127.0.1.1")) for token in tokens]
    forms = ("Basic " + stand.reader, "bearer", "Bearer\t", "Negotiate x", "Bearer " + "\xff" * 40, "Inside_\x80", "Inside_\t")
    answers += [told(stand.get("/metrics", "", "127.0.1.1", f"Authorization: {form}\r\n")) for form in forms]
    twice = f"Authorization: Bearer {stand.admin}\r\n"
    return answers + [told(stand.get("/metrics", "", "127.0.1.1", twice + twice))]


@attack("bodies announced where there is none (`/livez`, which asks for no token), to take the room of others", "400")
def bodies_of_livez(stand: Stand) -> Answers:
    lengths = ("Content-Length: 4194304\r\n", "Content-Length: 1\r\n")
    return [told(stand.get(path, more=length, method=method)) for path in ("/livez", "/readyz") for method in ("GET", "HEAD") for length in lengths]


@attack("more guesses than an address may make in a minute", "429")
def guesses(stand: Stand) -> Answers:
    found: Answers = []
    # One more is allowed each second: where that passes just now, once more from somewhere else.
    for attempt in range(5):
        source = f"127.0.1.{20 + attempt}"
        for i in range(300):
            found = [told(stand.get("/metrics", f"stepwell_{i:012x}_{i:064x}", source))]
            if found[0].startswith("429"):
                break
        found.append(told(stand.get("/metrics", stand.admin, source)))
        if found[1].startswith("429"):
            break
    return found


@attack("meanwhile, from another address, a token that lives", "200")
def guesses_elsewhere(stand: Stand) -> Answers:
    return [told(stand.get("/metrics", stand.admin, "127.0.1.3"))]


@attack("more guesses than an address may make in a minute, by gRPC", "RESOURCE_EXHAUSTED")
def grpc_guesses(stand: Stand) -> Answers:
    found: Answers = []
    for attempt in range(5):  # as above
        connection = stand.connect(f"127.0.1.{40 + attempt}")
        for i in range(300):
            found = [code(connection.call("/stepwell.v1.QueryService/ListTrials", [b""], f"stepwell_{i:012x}_{i:064x}")[0])]
            if found[0] == "RESOURCE_EXHAUSTED":
                break
        found.append(code(connection.call("/stepwell.v1.QueryService/ListTrials", [b""], stand.reader)[0]))
        connection.close()
        if found[1] == "RESOURCE_EXHAUSTED":
            break
    return found
