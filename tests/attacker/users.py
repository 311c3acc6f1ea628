"""What somebody with a token of his own tries: against others' trials, and by what he names his."""

from __future__ import annotations

import json

import wire
from stand import VICTIM, VICTIM_WRITER, Stand
from table import HEAD, VICTIM_JSON, Answers, attack, code, told

# --- a user against another one

READS = ("GetTrial", "ListSeries", "LatestValues", "SummarizeTimings")


@attack("another project's trial: read, archive, delete, switch, flush, its traces, its caps and a token for it, by a token that writes its own", "404 or 403", known="MLflow CVE-2024-4263; Aim (aim#3422)")
def others_trial(stand: Stand) -> Answers:
    calls = [f"QueryService/{name}" for name in READS] + ["TraceService/ListTraces", "AdminService/ArchiveTrial", "AdminService/DeleteTrial"]
    calls += ["TokenService/FetchIngestToken", "AdminService/SetProfiling"]
    of_trace = ["TraceService/SummarizeTrace", "TraceService/DeleteTrace"]
    trial_id = stand.before["QueryService/GetTrial"]["trial"]["trialId"]  # type: ignore[index]
    answers = []
    for method in calls + of_trace:
        for request in (VICTIM_JSON, {"trial": {"trialId": trial_id}}):
            if method in of_trace:
                request = {**request, "traceNo": stand.victim_trace_no}
            answers.append(told(stand.post(method, json.dumps(request), stand.writer)))
    answers.append(told(stand.post("AdminService/Flush", json.dumps({"trialId": trial_id}), stand.writer)))
    answers.append(told(stand.post("AdminService/GetCaps", json.dumps({"place": VICTIM_JSON}), stand.writer)))
    answers.append(told(stand.post("AdminService/GetCaps", json.dumps({"place": {"project": VICTIM[0]}}), stand.writer)))
    return answers


@attack("the same as streams, over gRPC", "NOT_FOUND", known="the same")
def others_streams(stand: Stand) -> Answers:
    request = wire.field(1, wire.trial_ref(*VICTIM))
    requests = dict.fromkeys(("QueryService/ReadSamples", "QueryService/FollowSamples", "TraceService/MergeTraces", "TraceService/CaptureTrace"), request)
    requests["TraceService/GetTrace"] = request + wire.field(2, stand.victim_trace_no)
    return [code(stand.connect().call("/stepwell.v1." + path, [each], stand.writer)[0]) for path, each in requests.items()]


@attack("what is an admin's: tokens, caps, sweeps, the master's state", "403", known="MLflow CVE-2024-4263, CVE-2026-0545")
def admins(stand: Stand) -> Answers:
    calls = {
        "TokenService/CreateToken": {"name": "x", "grants": ["admin"]},
        "TokenService/ListTokens": {},
        "TokenService/RevokeToken": {"tokenId": "000000000000"},
        "AdminService/SetCaps": {"place": {"project": VICTIM[0]}, "caps": {"rawAgeSeconds": "1"}},
        "AdminService/PreviewCaps": {"place": {"project": VICTIM[0]}},
        "AdminService/SweepCaps": {},
        "AdminService/GetStatus": {},
        "AdminService/Flush": {},
    }
    return [told(stand.post(method, json.dumps(request), token)) for method, request in calls.items() for token in (stand.writer, stand.reader, stand.ingester)]


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


@attack("JSON that is deep, doubled, huge in numbers, or none", "400")
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
