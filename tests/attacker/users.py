"""What somebody with a token of his own tries: against others' trials, and by what he names his."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable

import wire
from contract import Json, Method, about_trial, about_trial_bytes, fields, methods
from stand import VICTIM, VICTIM_WRITER, Stand
from table import TABLE, VICTIM_JSON, Answers, attack, code, told

# --- a user against another one

# What names no trial, and is asked for as an admin's.
ADMINS: dict[str, Json] = {
    "TokenService/CreateToken": {"name": "x", "grants": ["admin"]},
    "TokenService/ListTokens": {},
    "TokenService/RevokeToken": {"tokenId": "000000000000"},
    "AdminService/SetCaps": {"place": {"project": VICTIM[0]}, "caps": {"rawAgeSeconds": "1"}},
    "AdminService/PreviewCaps": {"place": {"project": VICTIM[0]}},
    "AdminService/SweepCaps": {},
    "AdminService/GetStatus": {},
    "AdminService/Flush": {},
}
# Methods whose request names no trial in a field of its own: which row tries them.
ELSEWHERE = {
    "IngestService/StreamChunks": "another's writer",
    "IngestService/WriteChunks": "another's writer",
    "QueryService/ListTrials": "lists, scrapes and targets",
    "TraceService/UploadTrace": "traces: into another's trial",
    "ClockService/ReadClock": "the master's time",
}
# Those that are refused whether there is such a trial or not; of all others it is not there.
REFUSED = ("AdminService/SetCaps", "AdminService/PreviewCaps", "AdminService/SweepCaps", "TokenService/FetchIngestToken")


def others_requests(stand: Stand, method: Method) -> list[Json]:
    """By name and by number; none where the method names no trial."""
    trial_id = stand.before["QueryService/GetTrial"]["trial"]["trialId"]  # type: ignore[index]
    requests = [about_trial(method, trial) for trial in (VICTIM_JSON["trial"], {"trialId": trial_id})]
    if any(field.name == "trace_no" for field in fields(method.request)):
        requests = [request and {**request, "traceNo": stand.victim_trace_no} for request in requests]
    # Flush knows no names: without its number it is an admin's.
    return [request for request in requests if request]


def not_tried(known: Iterable[Method]) -> Answers:
    """New methods that nobody has thought of, and exceptions that are none any more."""
    tried = {method.path for method in known}
    paths = {method.path for method in methods()}
    elsewhere = {*ELSEWHERE, *ADMINS}
    answers = [f"{path} names no trial, and no row is said to try it" for path in sorted(paths - tried - elsewhere)]
    answers += [f"{path} is no method" for path in sorted(elsewhere - paths)]
    return answers + [f"no row begins with {row!r}" for row in sorted(set(ELSEWHERE.values())) if not any(each.name.startswith(row) for each in TABLE)]


@attack("another project's trial, by its name and its number: each method whose request names one (read, archive, delete, switch, flush, compare, its traces, its caps, a token for it), by a token that writes its own", "404 or 403", known="MLflow CVE-2024-4263; Aim (aim#3422)")
def others_trial(stand: Stand) -> Answers:
    tried = [method for method in methods() if others_requests(stand, method)]
    answers = not_tried(tried)
    for method in tried:
        if method.streams_out:
            continue  # below
        for request in others_requests(stand, method):
            answer = told(stand.post(method.path, json.dumps(request), stand.writer))
            right = "403" if method.path in REFUSED else "404"
            answers.append(answer if answer == right else f"{answer} of {method.path}")
    answers.append(told(stand.post("AdminService/GetCaps", json.dumps({"place": {"project": VICTIM[0]}}), stand.writer)))
    return answers


@attack("the same as streams, over gRPC", "NOT_FOUND", known="the same")
def others_streams(stand: Stand) -> Answers:
    trial_id = stand.before["QueryService/GetTrial"]["trial"]["trialId"]  # type: ignore[index]
    answers = []
    for method in methods():
        if not method.streams_out or method.path in ELSEWHERE:
            continue
        for trial in (wire.trial_ref(*VICTIM), wire.field(1, int(trial_id))):
            request = about_trial_bytes(method, trial)
            for field in fields(method.request):
                if request is not None and field.name == "trace_no":
                    request += wire.field(field.number, stand.victim_trace_no)
            status = stand.connect().call(f"/stepwell.v1.{method.path}", [request or b""], stand.writer)[0]
            answers.append(code(status) if status == 5 else f"{code(status)} of {method.path}")
    return answers


@attack("what is an admin's: tokens, caps, sweeps, the master's state", "403", known="MLflow CVE-2024-4263, CVE-2026-0545")
def admins(stand: Stand) -> Answers:
    return [told(stand.post(method, json.dumps(request), token)) for method, request in ADMINS.items() for token in (stand.writer, stand.reader, stand.ingester)]


@attack("the master's time, by a token that may ingest nothing", "403", known="none: so that it is asked like all others")
def time_of_reader(stand: Stand) -> Answers:
    return [told(stand.post("ClockService/ReadClock", "{}", stand.reader))]


@attack("one's own trial archived, deleted, switched, a trace of it deleted, by tokens that read its project or write it samples alone", "403 or 404", known="MLflow CVE-2024-4263")
def own_trial(stand: Stand) -> Answers:
    status, words, _ = stand.connect().call("/stepwell.v1.IngestService/WriteChunks", [wire.write_chunks([wire.open_writer(b"o" * 16, "attacker", "own")])], stand.ingester)
    if status != 0:
        return [f"{code(status)} {words}"]
    request = {"trial": {"project": "attacker", "externalId": "own"}}
    calls = ("AdminService/ArchiveTrial", "AdminService/DeleteTrial", "AdminService/SetProfiling", "TraceService/DeleteTrace")
    answers = []
    for method in calls:
        body = json.dumps({**request, "traceNo": 1} if method.endswith("DeleteTrace") else request)
        # Who may read the trial knows that it is there.
        answer = told(stand.post(method, body, stand.reader))
        answers.append(answer if answer == "403" else f"{answer} to who reads it")
        answers.append(told(stand.post(method, body, stand.ingester)))
    return answers


@attack("another's writer: opened, written, closed as died, its heartbeat and its gaps forged", "GRANT_MISSING or NOT_OPEN", known="Aim (aim#3423)")
def others_writer(stand: Stand) -> Answers:
    gap = wire.field(4, wire.message([(1, VICTIM_WRITER), (2, 2), (3, 1 << 40), (4, 1)]))
    messages = [
        wire.open_writer(VICTIM_WRITER, *VICTIM),
        wire.define(VICTIM_WRITER, "loss"),
        wire.chunk(VICTIM_WRITER, 2, [9.0]),
        gap,
        wire.heartbeat(VICTIM_WRITER),
        wire.close(VICTIM_WRITER, 1, died=True),
    ]
    answers = []
    for token in (stand.writer, stand.ingester, stand.reader):
        status, _, answer = stand.connect().call("/stepwell.v1.IngestService/WriteChunks", [wire.write_chunks(messages)], token)
        reasons = wire.refusals(answer)
        answers += reasons if status == 0 and len(reasons) >= 2 else [f"{code(status)} {reasons}"]
    return answers


@attack("another's writer under a name of one's own: an Open that is allowed, for the same UUID", "OK")
def same_writer(stand: Stand) -> Answers:
    messages = [wire.open_writer(VICTIM_WRITER, "attacker", "own"), wire.define(VICTIM_WRITER, "loss"), wire.chunk(VICTIM_WRITER, 1, [9.0] * 10)]
    status, _, answer = stand.connect().call("/stepwell.v1.IngestService/WriteChunks", [wire.write_chunks(messages)], stand.ingester)
    return [code(status)] + wire.refusals(answer)


@attack("lists, scrapes and targets: names of others in them", "200")
def others_names(stand: Stand) -> Answers:
    answers = []
    for answer in (
        stand.get("/metrics", stand.writer),
        stand.get("/sd", stand.writer),
        stand.post("QueryService/ListTrials", "{}", stand.writer),
        stand.post("AdminService/GetCaps", '{"place":{}}', stand.writer),
    ):
        answers.append(told(answer) + (" with the victim's name" if VICTIM[0].encode() in answer[2] else ""))
    return answers


@attack("a secret that a training puts into its labels, and into the names of a metric, its group and its machine: who finds it", "its project's readers alone", known="Prometheus (secrets in labels)")
def secrets_in_labels(stand: Stand) -> Answers:
    secret = stand.planted = "hunter2-" + secrets.token_hex(8)
    named = ("attacker", "leaky")
    ingester, stranger = stand.token("ingest:attacker/leaky"), stand.token("write:elsewhere")
    writer = b"l" * 16
    definition = wire.message([(1, 1), (2, 1), (3, secret), (4, secret), (5, wire.message([(1, "api_key"), (2, secret)])), (7, 1)])
    messages = [
        wire.open_writer(writer, *named, {"password": secret}, agent=secret),
        wire.field(2, wire.message([(1, writer), (2, definition)])),
        wire.chunk(writer, 1, [1.0] * 10),
    ]
    status, words, answer = stand.connect().call("/stepwell.v1.IngestService/WriteChunks", [wire.write_chunks(messages)], ingester)
    if status != 0 or wire.refusals(answer):
        return [f"it was not stored: {code(status)} {words} {wire.refusals(answer)}"]

    def asked(token: str) -> dict[str, bytes]:
        trial = {"trial": {"project": named[0], "externalId": named[1]}}
        told_by = {path: stand.get(path, token)[2] for path in ("/metrics", "/sd")}
        for method in methods():
            request = about_trial(method, trial["trial"]) if method.path.startswith("QueryService/") and not method.streams_out else None
            if request is not None:
                told_by[method.path] = stand.post(method.path, json.dumps(request), token)[2]
        told_by["QueryService/ListTrials"] = stand.post("QueryService/ListTrials", "{}", token)[2]
        told_by["AdminService/GetStatus"] = stand.post("AdminService/GetStatus", "{}", token)[2]
        return told_by

    finds = {who: [path for path, body in asked(token).items() if secret.encode() in body] for who, token in (("a reader", stand.reader), ("a stranger", stranger), ("its own ingester", ingester))}
    answers = [f"{who} by {paths}" for who, paths in finds.items() if who != "a reader" and paths]
    if secret in stand.log():
        answers.append("who reads the log")
    answers.append("its project's readers alone" if "QueryService/ListSeries" in finds["a reader"] else f"nobody: {finds}")
    return answers


# --- SQL, script, forms

NASTY = (
    "'; drop table stepwell.trials; --",
    "\" or \"\"=\"",
    "$1); delete from stepwell.series; --",
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "{{7*7}}${7*7}#{7*7}",
    "__import__('os').system('id')",
    "%s%s%n",
    "../../../etc/passwd",
    "\u202egnp.exe",
    "\x1b[31mred\x1b]0;title\x07",
    "name\r\n2026-01-01T00:00:00Z info forged",
    "\u009b31mred",
)


@attack("SQL, script, templates and code as names, labels and filters of one's own", "200 or 400 or 404", known="Aim CVE-2025-5321, GHSA-mxvw-cj37-8g2h; Grafana CVE-2024-9264; ClearML CVE-2024-24594")
def nasty_names(stand: Stand) -> Answers:
    answers = []
    connection = stand.connect()
    for at, nasty in enumerate(NASTY):
        writer = bytes([at + 1]) * 16
        messages = [wire.open_writer(writer, "attacker", nasty, {"label": nasty}), wire.define(writer, nasty, {"label": nasty}), wire.chunk(writer, 1, [1.0])]
        status, words, _ = connection.call("/stepwell.v1.IngestService/WriteChunks", [wire.write_chunks(messages)], stand.writer)
        if status != 0:
            answers.append(f"{code(status)} {words}")
        for method, request in (
            ("QueryService/ListTrials", {"project": "attacker", "nameContains": nasty}),
            ("QueryService/GetTrial", {"trial": {"project": "attacker", "externalId": nasty}}),
            ("QueryService/ListSeries", {"trial": {"project": "attacker", "externalId": nasty}, "selector": {"name": nasty}}),
        ):
            answer = stand.post(method, json.dumps(request), stand.writer)
            # A browser that opens it must not take it for a page.
            is_data = "application/json" in answer[1] and "nosniff" in answer[1]
            answers.append(told(answer) + ("" if is_data else " as a page"))
    return answers


@attack("other verbs, and headers that claim one", "405")
def verbs(stand: Stand) -> Answers:
    path = "/stepwell.v1.AdminService/DeleteTrial"
    answers = [told(stand.get(path, stand.admin, method=verb)) for verb in ("GET", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "HEAD", "BREW")]
    answers.append(told(stand.get(path, stand.admin, more="X-HTTP-Method-Override: POST\r\n")))
    answers.append(told(stand.get("/livez", stand.admin, method="POST")))
    return answers


@attack("JSON that is deep, doubled, huge in numbers, or none", "400 or 429")
def hostile_json(stand: Stand) -> Answers:
    bodies = (
        "[" * 200_000,
        '{"trial":' * 50_000,
        '{"trial":{"trialId":"99999999999999999999999"}}',
        '{"trial":{"trialId":1e400}}',
        "\x00\x01",
        b"\xff\xfe{}",
        '{"__proto__":{"x":1}}',
        '{"@type":"type.googleapis.com/google.protobuf.Any"}',
    )
    return [told(stand.post("QueryService/GetTrial", body, stand.reader)) for body in bodies]
