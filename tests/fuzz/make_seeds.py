"""What the fuzzers begin with: python3 tests/fuzz/make_seeds.py writes it beside this file, a folder each.

Inputs are written as tests/fuzz/hostile_*.h read them; those of codec, http and trace came about otherwise. What a
fuzzer found is added by hand, under a name that says what it was.
"""

import gzip
import pathlib
import struct

HERE = pathlib.Path(__file__).parent


def seed(noun: str, name: str, data: bytes) -> None:
    folder = HERE / noun
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(data)


def text(payload: bytes) -> bytes:
    return struct.pack("<I", len(payload)) + payload


def record(kind: int, payload: bytes) -> bytes:
    return struct.pack("<BH", kind, len(payload)) + payload


def rings(marks: dict[int, tuple[int, int]], states: dict[int, bytes]) -> bytes:
    parts = [struct.pack("<QQBI", 1, 2, 0, len(marks))]
    parts += [struct.pack("<IQQ", ring, tail, told) for ring, (tail, told) in marks.items()]
    parts.append(struct.pack("<I", len(states)))
    parts += [struct.pack("<I", thread) + text(state) for thread, state in states.items()]
    return b"".join(parts)


SUMS = struct.pack("<IIQQQIIQQ", 1, 4, 3, 900, 100, 1, 5, 200, 0x3FF0000000000000)
CHECKPOINT = rings({0: (7, 0), 1: (2**64 - 1, 0)}, {2: SUMS, 3: b""}) + struct.pack(
    "<IIQB", 2, 0, 55, 1) + rings({0: (9, 1)}, {}) + struct.pack("<IQB", 1, 56, 0)


def frame(sequence: int, continues: int = 0, body: bytes = b"body") -> bytes:
    return struct.pack("<QqIQqqB", sequence, 1_700_000_000_000_000, 0, 3, 10, 20, continues) + text(CHECKPOINT) + body


def segment(writer: bytes, following: int, acked: int) -> bytes:
    return struct.pack("<I", 1) + writer + struct.pack("<QQ", following, acked)


def gap(first: int, last: int) -> bytes:
    return struct.pack("<QQIQqq", first, last, 6, 4, 10, 20) + text(b"the spool was full")


def spool() -> None:
    own = b"0123456789abcdef"
    whole = (record(1, segment(own, 1, 0)) + record(2, b"definition") + record(3, frame(1)) + record(3, frame(2, 1)) +
             record(3, frame(3)) + record(4, gap(4, 6)) + record(5, CHECKPOINT) + record(6, struct.pack("<QQ", 2, 1)))
    seed("spool", "records", b"\1" + whole)
    seed("spool", "spool", b"\2" + whole + b"\xff" + record(1, segment(own, 7, 2)) + record(3, frame(7)))
    seed("spool", "spool_open_group", b"\2" + record(1, segment(own, 1, 0)) + record(3, frame(1, 1)))
    seed("spool", "spool_hole", b"\2" + record(1, segment(own, 1, 0)) + record(3, frame(1)) + record(3, frame(9)))
    seed("spool", "spool_damaged", b"\2" + record(1, segment(own, 1, 0)) + record(0x83, frame(1)) + b"\x30\0" +
         record(3, frame(2)))
    seed("spool", "spool_other", b"\2" + record(1, segment(b"x" * 16, 1, 0)) + record(3, frame(1)) + b"\xff" + whole)
    seed("spool", "spool_acked_more", b"\2" + record(1, segment(own, 3, 9)) + record(3, frame(3)))
    seed("spool", "spool_last_sequence", b"\2" + record(1, segment(own, 2**64 - 2, 0)) + record(3, frame(2**64 - 1)))
    seed("spool", "spool_last_gap", b"\2" + record(1, segment(own, 1, 0)) + record(4, gap(1, 2**64 - 1)))
    seed("spool", "sums", b"\3" + SUMS)
    def file(path: str, content: bytes) -> bytes:
        return path.encode() + b"\n" + struct.pack("<H", len(content)) + content

    # A writer with a process's header, a ring and a worker, and beside its spools what is none.
    ring_header = struct.pack("<8sIIIIII", b"SWELLRG1", 4, 256, 0, 2**32 - 1, 0, 2**32 - 1).ljust(64, b"\0") + struct.pack(
        "<QQ", 90, 4).ljust(64, b"\0") + struct.pack("<Q", 30).ljust(64, b"\0")
    header = struct.pack("<8sIIQQQ", b"SWELLHD1", 1, 2, 5, 0, 0).ljust(256, b"\0")
    seed("spool", "survey", b"\4" + file("writer.json", WRITER) + file("spool/0/0000000001.seg", whole[:-3]) +
         file("header", header) + file("ring-0", ring_header) + file("w0-1/header", header) +
         file("refused", b"TRIAL_LIMIT: \x1b[2J too many"))
    seed("spool", "survey_spools", b"\4" + file("writer.json", WRITER) + file("spool/0/1.seg", whole) +
         file("spool/00/1.seg", whole) + file("spool/4294967295/1.seg", whole) + file("spool/3/1.seg", whole) + file(
             "spool/+7/1.seg", whole))
    seed("spool", "survey_sampler", b"\4" + file("writer.json", WRITER.replace(b'"rank": 1', b'"is_sampler": true')) +
         file("sampler.closed", b"5 6 7") + file("done", b"") + file("spool/1/1.seg", record(1, segment(own, 1, 9))))
    seed("spool", "survey_token", b"\4" + file("writer.json", WRITER.replace(b'"token": ""', b'"token": "stepwell_a_b"')))
    seed("spool", "survey_none", b"\4" + file("spool", b"a file") + file("writer.json", b"[]") + file("../x", b"y"))
    seed("spool", "raw", b"\0SWRC" + struct.pack("<III", 4, 0, 3) + b"body")
    # Each of them claims what is behind it, whose checksum is work; and one more than a record holds.
    claims = (b"SWRC" + struct.pack("<III", 2048, 0, 3)) * 256
    seed("spool", "raw_claims", b"\0" + claims + b"SWRC" + struct.pack("<III", (8 << 20) + 1, 0, 3))
    # Each gap beside one that is only jumped over.
    gaps = b"".join(record(4, gap(2 * i, 2 * i)) for i in range(1, 40))
    seed("spool", "spool_gaps", b"\2" + record(1, segment(own, 1, 0)) + gaps + record(4, gap(3, 70)) + record(4, gap(1, 5)))


def event(kind: int, name: int, flags: int, time: int, value: int, batch: int = -1) -> bytes:
    return struct.pack("<QQIiBBHI", time, value, name, batch, kind, flags, 0, 0)


def ring_file(lies: int, head: int, behind: int, events: list[bytes], words: bytes = b"") -> bytes:
    return b"\0" + bytes([lies, 3, behind]) + words + struct.pack("<QII", head, 1, 0xFFFFFFFF) + b"".join(events)


def name(kind: int, parent: int, texts: list[bytes]) -> bytes:
    return bytes([kind, parent, 1, 0, len(texts)]) + b"".join(bytes([len(t)]) + t for t in texts)


WRITER = (b'{"format": 1, "writer": "9f7a4f1e-6f5c-4c3e-9d8e-0123456789ab", "server": "", "project": "default",'
          b' "trial": "run", "attempt_key": "", "rank": 1, "world_size": 4, "token": "", "boot_id": "b", "labels":'
          b' {"a": "b"}, "placement": {"pod": "p"}, "rings": "", "path": "", "recorder_version": "0.1.0",'
          b' "opened_time_us": 1700000000000000, "opened_monotonic_ns": 5, "sampling": {"on": true, "interval_us":'
          b' 250000, "groups": ["cpu"], "without": [], "with": []}, "tracing": {"directory": "/t", "kept_max": 3}}')


def ring() -> None:
    step = [event(5, 0, 0, 100, 50, 7), event(2, 2, 1, 120, 0x3FF0000000000000, -2), event(1, 1, 1, 110, 20),
            event(4, 0, 0, 100, 0), event(3, 2, 0, 1_700_000_000_000_000, 0), event(1, 1, 0, 50, 10)]
    seed("ring", "step", ring_file(0, 6, 6, step))
    seed("ring", "wrapped", ring_file(0, 2**32 + 3, 6, step))
    seed("ring", "last_position", ring_file(0, 2**64 - 1, 6, step))
    seed("ring", "wrong_capacity", b"\0\1\3\6" + struct.pack("<I", 1 << 20) + struct.pack("<QII", 6, 1, 0))
    seed("ring", "cut", ring_file(4, 6, 6, step) + b"\x20\0")
    seed("ring", "names", b"\1\7\0" + name(1, 0, [b"forward", b"k", b"v"]) + name(1, 1, [b"attention"]) +
         name(2, 0, [b"training", b"loss", b"1", b"rank", b"0", b"split", b"eval"]))
    seed("ring", "writer_json", b"\2" + WRITER)
    seed("ring", "text", b"\3\x10plain \xe2\x82\xac and \xff\xc3 and long enough to be cut")
    seed("ring", "text_c1", b"\3\x40a\xc2\x85b")
    seed("ring", "names_c1", b"\1\7\0" + name(1, 0, [b"a\xc2\x9bb"]))
    seed("ring", "times", b"\4" + struct.pack("<qQQ", 1_700_000_000_000_000, 5, 105))
    seed("ring", "times_far", b"\4" + struct.pack("<qQQ", 2**63 - 1, 0, 2**63 - 1))


def varint(number: int) -> bytes:
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def zigzag(number: int) -> int:
    return number * 2 if number >= 0 else -number * 2 - 1


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value % 2**64)
    return varint(number << 3 | 2) + varint(len(value)) + value


def table(group: int, deltas: list[int], columns: list[bytes], batch: int = -1) -> bytes:
    return (field(1, group) + field(2, 1_700_000_000_000_000) + field(3, b"".join(varint(zigzag(d)) for d in deltas)) +
            field(4, zigzag(batch)) + b"".join(field(6, column) for column in columns))


def doubles(ref: int, values: list[float]) -> bytes:
    return field(1, ref) + field(2, struct.pack(f"<{len(values)}d", *values))


def integers(ref: int, values: list[int], presence: bytes = b"") -> bytes:
    packed = field(1, ref) + field(3, b"".join(varint(zigzag(v)) for v in values))
    return packed + (field(4, presence) if presence else b"")


def chunk() -> None:
    sealed = struct.pack("<q", 1_700_000_000_000_000)
    body = field(1, table(1, [1000, 1000], [doubles(1, [1.5, -0.0, float("nan")]), doubles(2, [0, 1, 2])])) + field(
        1, table(2, [5], [integers(3, [10, -20]), integers(4, [7], b"\x02")], batch=3))
    loss = field(1, 1) + field(2, b"gpu") + field(4, 5) + field(5, 10) + field(6, 20) + field(7, b"full")
    seed("chunk", "body", b"\0" + sealed + body)
    seed("chunk", "losses", b"\0" + sealed + field(2, loss))
    seed("chunk", "refused_ref", b"\0" + sealed + field(1, table(1, [], [doubles(5, [1.0])])))
    seed("chunk", "far_times", b"\0" + struct.pack("<q", -2**63) + body)
    seed("chunk", "chunk", b"\1" + field(1, b"w" * 16) + field(2, 7) + field(3, 9) + varint(4 << 3 | 5) + b"\0\0\0\0" +
         field(5, body))
    definition = field(1, 9) + field(2, 1) + field(3, b"gpu") + field(4, b"util") + field(
        5, field(1, b"device") + field(2, b"0")) + field(6, b"percent") + field(7, 1) + field(8, 100)
    seed("chunk", "definitions", b"\2" + field(1, definition) + field(1, definition))
    seed("chunk", "open", b"\3" + field(1, b"w" * 16) + field(2, b"agent") + field(3, 1))
    seed("chunk", "gap", b"\4" + field(1, b"w" * 16) + field(2, 3) + field(3, 5) + field(4, 6) + field(5, 9) + field(
        6, 10) + field(7, 20) + field(8, b"full"))
    ticks = varint(1) + varint(2) + varint(zigzag(100)) + b"\0" + varint(zigzag(10)) + varint(zigzag(-1)) + b"\0\0" + (
        b"\1" + varint(11) + b"\x20" + struct.pack("<dd", 1.5, 2.5))
    seed("chunk", "ticks", b"\6" + ticks)
    seed("chunk", "journal", b"\5" + b"\2" + varint(7) + b"\0\1" + varint(zigzag(9)) + varint(5) + b"\0")
    targets = varint(2) + varint(1) + varint(2) + varint(11) + b"\1" + varint(12) + b"\1"
    old = field(1, table(1, [10], [doubles(1, [1, 2]), doubles(2, [3, 4])]))
    ranges = [b"\2" + varint(7) + b"\0\1" + varint(zigzag(9)) + varint(5) + b"\0", b"", b"any"]
    seed("chunk", "row", b"\10\3" + b"".join(text(each) for each in ranges))
    seed("chunk", "row_none", b"\10\0")
    seed("chunk", "row_too_few", b"\10\3" + text(ranges[0]))
    seed("chunk", "row_cut", b"\10\1" + text(b"any more")[:-2])
    seed("chunk", "row_long", b"\10\1\xff\xff\xff\xffany")
    # A text that is none in a label of Open, a chunk that is cut, what nests deeper than the contract, and no message at all.
    label = field(11, field(1, b"host") + field(2, b"\xc3("))
    seed("chunk", "malformed_label", b"\11" + field(1, field(1, b"w" * 16) + field(4, b"run") + label))
    seed("chunk", "malformed_project", b"\11" + field(1, field(1, b"w" * 16) + field(3, b"\xff")))
    seed("chunk", "malformed_cut", b"\11" + field(3, field(1, b"w" * 16) + b"\x2a\x7f"))
    seed("chunk", "malformed_none", b"\11\xff\xff\xff")
    deep = b"x"
    for _ in range(120):
        deep = field(2, field(1, deep))
    seed("chunk", "malformed_deep", b"\11" + deep + b"\x0f")
    seed("chunk", "malformed_groups", b"\11" + b"\x0b" * 120)
    seed("chunk", "malformed_whole", b"\11" + field(1, field(1, b"w" * 16) + field(4, b"run")))
    seed("chunk", "old_body", b"\7" + bytes([len(targets)]) + targets + old)


def json() -> None:
    for number, body in enumerate([b"{}", b'{"page_size": 5}', b'{"trial":{"trialId":"7"}}', b'{"nonsense":1}',
                                   b'{"trial": {"name": "\\u00e9"}, "labels": {"a": "b"}}', b'[1,2', b"[" * 200,
                                   b'{"pageToken": "\xff\xfe"}', b'{"rawAgeSeconds": 1e400}', b'{"a\x01": null}']):
        seed("json", f"text_{number}", bytes([number * 6]) + body)
    seed("json", "bytes", b"\5" + field(1, b"x") + field(2, 7))
    seed("json", "bytes_open", b"\1" + field(1, field(1, b"w" * 16)))
    seed("json", "bytes_credential", b"\1" + field(8, field(1, b"w" * 16) + field(2, b"stepwell_0123456789ab_secret")))


def metric(group: int, name_of: int, unit: int, value: float, labels: list[tuple[int, int]], history: list[float]) -> bytes:
    return (struct.pack("<BBBdB", group, name_of, unit, value, len(labels)) + b"".join(bytes(pair) for pair in labels) +
            struct.pack("<QIB", 1_700_000_000_000_000, 1_000_000, len(history)) + struct.pack(f"<{len(history)}d", *history))


CONFIG = b"""# of a lab
grpc-listen = "0.0.0.0:7817"   # all
http-get = true
fold-interval = 20s
queue-bytes = 67108864
log-format = "json"
"""


def words() -> None:
    seeds = {
        "text": b"0plain \xe2\x82\xac \xf0\x9f\x98\x80", "text_c1": b"0a\xc2\x85", "text_surrogate": b"0\xed\xa0\x80",
        "text_overlong": b"0\xc0\xaf\xe0\x80\xaf", "project": b"0my-project_1.0", "token": b"1AQAAAAAAAAAA",
        "place": b"2" + struct.pack("<Iqqq", 7, 3, 1_700_000_000_000_000, 2),
        "place_wide": b"2" + struct.pack("<Iqqq", 7, 2**32 + 3, 5, 2),
        "place_far": b"2" + struct.pack("<Iqqq", 7, 3, 5, 2**63 - 1),
        "place_below": b"2" + struct.pack("<Iqqq", 7, 3, 5, -1),
        "cursor": b"3" + struct.pack("<QQq", 9, 4, 5) + b"\3\5\0\7", "cursor_many": b"3" + bytes(24) + b"\xff\x7f",
        "config": b"4" + CONFIG, "config_quotes": b'4data-dir = /srv/a"b\n', "config_behind": b'4data-dir = "a" b\n',
        "config_open": b'4data-dir = "a\n', "config_hash": b'4data-dir = "a#b"\n', "config_nonsense": b"4nonsense\n",
        "setting_time": b"5\x1310s", "setting_number": b"5\x161048576", "setting_text": b'5\1/srv/"x',
        "caps": b"61h30m", "caps_bytes": b"61.5TB", "caps_samples": b"61M", "caps_none": b"6none", "caps_far": b"6106751991167300d",
        "names": b"7a.example, b.example", "names_address": b"7[::1]:7817", "names_version": b"70.1.0",
        "names_viewer": b"7https://ui.perfetto.dev/x", "names_groups": b"7cpu,gpu", "names_interval": b"7250ms",
        "names_gzip": b"7gzip;q=0.5, *;q=0", "bearer": b"8Bearer stepwell_admin_0123456789abcdef",
        "basic": b"8Basic YW55OnRva2Vu", "token_plain": b"8stepwell_admin_0123", "url": b"9http://host:80/a?b=c&d=%20",
        "url_bad": b"9/a?b=%2", "retry": b":" + field(3, field(1, b"type.googleapis.com/google.rpc.RetryInfo") + field(
            2, field(1, field(1, 5) + field(2, 250_000_000)))), "retry_none": b":", "retry_info": b":" + field(1, field(1, 7)),
        "top": b";\x20\2" + metric(6, 7, 0, 1.5, [(2, 1)], [1.0, float("nan"), 3.0]) + metric(0, 0, 2, 93.0, [(0, 3), (1, 2)], [0.0] * 9) +
        metric(2, 5, 3, 2.0**36, [(0, 3)], []) + metric(2, 4, 3, 2.0**38, [(0, 3)], []),
        "top_far": b";\0\3" + metric(6, 6, 1, 1e308, [], [-1e308, 1e308, 1e308]), "top_same": b";\xff\2" + metric(6, 6, 0, 1.7e18, [], [1.7e18] * 4),
        "top_names": b";\5\0" + b"\x0e\x1b[2J\xc2\x9b1" + b"\x0f\xed\xa0\x80\xf0\x80\x80\x9b" + bytes(40),
        "retry_far": b":" + struct.pack("<qi", 2**63 - 1, 2**31 - 1), "retry_below": b":" + struct.pack("<qi", -2**63, -1),
    }
    for name_of, data in seeds.items():
        seed("words", name_of, data)


def kernel() -> None:
    def part(letter: str, content: str) -> bytes:
        return letter.encode() + content.encode() + b"~"

    stat = "cpu  100 0 50 800 10 0 5 0 0 0\ncpu0 100 0 50 800 10 0 5 0 0 0\nintr 5\n"
    later = stat.replace("100 0 50 800", "200 0 90 900")
    meminfo = "MemTotal: 1000 kB\nMemAvailable: 400 kB\nCached: 5 kB\nSwapTotal: 10 kB\nSwapFree: 4 kB\n"
    net = "Inter-|\n face |\n  lo: 1 2 3 4 5 6 7 8 9\neth0: 100 2 3 4 5 6 7 8 900\n"
    pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n"
    process = "7 (a) b) R 1 7 7 0 -1 0 0 0 0 0 50 20 0 0 20 0 3 0 99 0 0\n"
    mounts = ("30 20 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n"
              "1 1 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:9 / /n\\040fs rw - nfs4 host:/x rw\n")
    mounts1 = ("31 30 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
               "32 30 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n")
    seed("kernel", "machine", part("a", stat) + part("b", "0.1 0.2 0.3 1/2 3\n") + part("c", meminfo) + part("e", net) +
         part("f", pressure) + part("g", pressure) + b"A" + part("a", later) + part("e", net.replace("900", "990")))
    seed("kernel", "group_v2", part("i", "0::/a\n") + part("j", mounts) + part("n", "0-3,8\n") + part(
        "o", "usage_usec 500\nnr_periods 9\nnr_throttled 3\n") + part("p", "50000 100000\n") + part("q", "1000\n") +
         part("r", "inactive_file 10\n") + part("s", "max\n"))
    seed("kernel", "group_v1", part("i", "4:memory:/a\n3:cpu,cpuacct:/a\n") + part("j", mounts1) + part("t", "100\n") +
         part("u", "total_inactive_file 5\nhierarchical_memory_limit 200\n") + part("v", "5000\n") + part("w", "-1\n") +
         part("x", "100000\n"))
    seed("kernel", "process", part("k", process) + part("l", "1 2 3\n") + part("m", "read_bytes: 5\nwrite_bytes: 6\n") +
         b"A" + part("k", process.replace("50 20", "60 30")) + part("m", "read_bytes: 9\nwrite_bytes: 9\n"))
    seed("kernel", "infiniband", part("y", "5\n") + part("z", "6\n") + b"A" + part("y", "18446744073709551615\n"))
    seed("kernel", "swap_more_free", part("c", "MemTotal: 1 kB\nSwapTotal: 1 kB\nSwapFree: 2 kB\n"))
    seed("kernel", "load_below", part("b", "-1 nan 1e999 1/2 3\n"))
    seed("kernel", "group_of_no_path", part("i", "0::\n"))
    def amd(revision: int, words: dict[int, int], size: int = 480) -> bytes:
        table = bytearray(b"\xff" * size)
        table[:4] = bytes([size & 0xFF, size >> 8, 1, revision])
        for at, word in words.items():
            struct.pack_into("<Q", table, at, word)
        return b"B" + struct.pack("<H", size) + bytes(table)

    cycles = {424 + 8 * i: 1000 * (i == 0) for i in range(6)}
    seed("kernel", "amd_throttlers", amd(3, {112: 1 << 44 | 1}))
    seed("kernel", "amd_links", amd(5, {184: 7, 248: 9, 304: 2**64 - 2}))
    seed("kernel", "amd_cycles", amd(6, cycles) + amd(6, cycles | {424: 2000, 440: 30}) + amd(6, cycles | {424: 2001, 440: 900}))
    seed("kernel", "amd_cycles_far", amd(6, cycles) + amd(6, cycles | {424: 2**64 - 2, 448: 2**63}))
    seed("kernel", "amd_cut", b"B\3\0\0\0\1" + b"B\4\0\0\0\1\7" + b"B\0\0")
    seed("kernel", "amd_processor", b"B\4\0\0\0\2\1")
    seed("kernel", "disks", part("d", "8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n"))


CHROME = (b'{"schemaVersion": 1, "deviceProperties": [{"id": 0, "a": [1, {"b": "]}\\""}]}], "traceEvents": [\n'
          b'{"ph": "X", "name": "a {[", "ts": 1.5, "dur": 2, "pid": 7, "args": {"k": "\\\\"}},\n'
          b'{"ph": "M", "name": "process_name", "args": {"name": "x"}}, 5, "text", [1, 2], null\n], "baseTimeNanoseconds": 17}')


STEPS = (b'{"schemaVersion": 1, "distributedInfo": {"rank": 0}, "baseTimeNanoseconds": 1700000000000000000, "traceEvents": [\n'
         b'{"ph":"M","name":"process_name","pid":7,"args":{"name":"python"}},{"ph":"M","name":"thread_name","pid":7,"tid":"s 7","args":{"name":"a\\n"}},\n'
         b'{"ph":"X","cat":"user_annotation","name":"ProfilerStep#7","pid":7,"tid":7,"ts":10,"dur":90},\n'
         b'{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":7,"tid":7,"ts":20,"dur":5,"args":{"correlation":3}},\n'
         b'{"ph":"X","cat":"cpu_op","name":"nccl:all","pid":7,"tid":7,"ts":30,"dur":9,"args":{"External id":5,"f":1.5,"t":true,"l":[1]}},\n'
         b'{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":"s 7","ts":25.5,"dur":100,"args":{"correlation":3,"External id":5}},\n'
         b'{"ph":"X","cat":"gpu_memcpy","name":"m","pid":0,"tid":"s 7","ts":40,"dur":100,"bind_id":"0x9","flow_in":true}]}')
PARTS = (b'[{"ph":"B","name":"a","ts":1,"pid":1,"tid":1,"args":{"x":"\\ud83d\\ude00"}},{"ph":"B","name":"b","ts":2,"pid":1,"tid":1},'
         b'{"ph":"E","name":"a","ts":3,"pid":1,"tid":1},{"ph":"b","cat":"c","name":"n","id":"0x5","ts":2,"pid":1},'
         b'{"ph":"n","cat":"c","id":"0x5","ts":2.5,"pid":1},{"ph":"e","cat":"c","id":"0x5","ts":4,"pid":1},'
         b'{"ph":"i","s":"p","name":"i","ts":4,"pid":1,"tid":1},{"ph":"C","name":"v","ts":4,"pid":1,"args":{"u":1,"w":"2"}},'
         b'{"ph":"s","id":7,"ts":1.5,"pid":1,"tid":1},{"ph":"f","id":7,"ts":2.5,"pid":1,"tid":1,"id2":{"local":"0x1"}},'
         b'{"ph":"S","cat":"c","name":"o","id2":{"local":"0x1"},"ts":1,"pid":"p","tid":-5}]')


def clocked(sync: int, ahead: int) -> bytes:
    return (b'[{"ph":"M","name":"clock_sync_timestamp_us","args":{"value":%d}},'
            b'{"ph":"M","name":"clock_sync_error_bound","args":{"value":30}},'
            b'{"ph":"M","name":"master_clock","args":{"at_ns":1000,"ahead_ns":%d,"error_ns":50,"trial":"t"}},'
            b'{"ph":"X","name":"a","ts":%d,"dur":2,"pid":1,"tid":1}]') % (sync, ahead, sync + 5)


def chrome() -> None:
    packed = gzip.compress(CHROME, 9, mtime=0)
    seeds = {
        "object": b"0" + CHROME, "array": b'0[{"ph":"B","ts":1},\n{"ph":"E","ts":2},{}]', "cut": b"0" + CHROME[:150],
        "empty": b"0", "no_list": b'0{"a": {"traceEvents": [{}]}, "b": 1}', "not_a_list": b'0{"traceEvents": {"a": 1}}',
        "behind": b"0[{}] x", "mark": b"0\xef\xbb\xbf[{}]", "deep": b'0[{"a":' + b"[" * 80 + b"]" * 80 + b"},{}]",
        "twice": b'0{"traceEvents": [{}], "traceEvents": [{"a": 1}]}', "escaped": b'0{"trace\\u0045vents": [{}]}',
        "unclosed": b'0[{"a": "b', "escape_at_end": b'0[{"a": "\\', "closed_wrongly": b'0[{"a": [}]}]',
        "gzip": b"1" + packed, "gzip_two": b"1" + packed + packed, "gzip_cut": b"1" + packed[:60],
        "gzip_damaged": b"1" + packed[:40] + b"\xff\xff" + packed[42:], "gzip_sum": b"1" + packed[:-8] + bytes(8),
        "gzip_far": b"1" + gzip.compress(bytes(1 << 20), 9, mtime=0), "gzip_behind": b"1" + packed + b"garbage",
        "magic": b"1\x1f", "plain": b"1\x1f\x8a plain", "pack": b"2\x00\x07" + CHROME, "pack_none": b"2\x05\x00",
        "merge_steps": b"3" + STEPS, "merge_parts": b"3" + PARTS, "merge_two": b"3" + PARTS + b"\x1e" + STEPS,
        "merge_packed": b"3" + packed + b"\x1e" + gzip.compress(PARTS, 9, mtime=0),
        "merge_barriers": b"3" + clocked(1000, 7) + b"\x1e" + clocked(5000, -900),
        "merge_apart": b"3" + PARTS + b"\x1e" + clocked(10**15, 0),
        "merge_far": b'3[{"ph":"i","ts":-7e15,"pid":1},{"ph":"X","ts":9e15,"dur":1e14,"pid":1,"tid":1},{"ph":"C","ts":9e15,"args":{"a":1}}]',
        "merge_base_far": b'3{"baseTimeNanoseconds":9223372036854775807,"traceEvents":[{"ph":"i","ts":-5e15},{"ph":"i","ts":1}]}',
    }
    for name_of, data in seeds.items():
        seed("chrome", name_of, data)


# Certificates in DER are added by hand: of `stepwell tls init --client`, and of OpenSSL.
def callers() -> None:
    v6 = bytes.fromhex("20010db8000000010000000000000007")
    seeds = {
        "names": b"2dagent-7.lab\nuspiffe://lab/agent/7\ncagent 7\n", "names_odd": b"2d*.lab\nda\0b\ndA.LAB\nuno-scheme\nea@b\n",
        "names_two_common": b"2cone\nctwo\nda.lab\n", "names_many": b"2" + b"da\n" * 65, "names_most": b"2" + b"da\n" * 64,
        "names_utf8": b"2cg\xc3\xb6\nd\xc3\xb6.lab\n", "address": b"3" + v6 + bytes(8) + b"\x07" + b"\x0a\0\0\7",
        "address_mapped": b"3" + bytes(10) + b"\xff\xff\x0a\0\0\7" + bytes(8) + b"\x50" + b"\x7f\0\0\1",
        "address_zero": b"3" + bytes(29), "text": b"410.0.0.7, 2001:db8::1,fe80::1%eth0", "peer": b"4ipv6:%5Bfe80::1%25eth0%5D:51034",
        "peer_v4": b"4ipv4:10.0.0.7:51034", "peer_none": b"4unix:/tmp/x", "octal": b"4010.0.0.7", "short": b"410.7", "zone": b"410.0.0.7%x",
        "pem_none": b"0-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    }
    for name_of, data in seeds.items():
        seed("callers", name_of, data)


def notes() -> None:
    job = b'{"path": "/data/traces/ep0-ba8-rank3.pftrace", "epoch": 0, "first_batch": 0, "last_batch": 7, "removes_file": true, "writer": '
    links = b'{"server": "127.0.0.1:7817", "troubles": {"host:1": "Connection refused", "nohost:2": "not found"}}'
    seeds = {
        "job": b"0" + job + WRITER + b"}", "job_relative": b'0{"path": "x", "writer": ' + WRITER + b"}",
        "job_no_writer": b'0{"path": "/x"}', "job_far": b'0{"path": "/x", "epoch": 4294967296, "first_batch": -9, "writer": ' + WRITER + b"}",
        "job_nul": b'0{"path": "/x\\u0000y", "writer": ' + WRITER + b"}", "job_text": b'0{"path": "/x", "writer": "text"}',
        "deep": b"1\xff\0", "deep_members": b"1\xff\1", "deep_little": b"1\1\0", "deep_none": b"1\0\0" + WRITER,
        "links": b"2" + links, "links_cut": b"2" + links[:50], "links_odd": b'2{"server": 5, "troubles": {"a": 1, "b": "c"}}',
        "links_escaped": b'2{"server": "\\u00e9\\ud83d\\ude00", "troubles": {"\\u0000": "\\n"}}', "links_list": b"2[]",
        "ended": b"41700000000000000 250000 42", "ended_far": b"49223372036854775807 1 32769", "ended_odd": b"4 +7 1\n 0",
        "names": b"5w0-1\nw1023-4294967295\n0\n12\n4294967294", "names_twice": b"500\n0\n+0\n 0\n4294967295\nw00-1\nw0-01\nw1024-0\nw-1",
        "roots": b"6\3u0\n\3u1000\n\1u00\n\3u4294967295\n\3u-1", "roots_open": b"6\1u0\n\3x\n", "roots_none": b"6\2u0\n\2u1000\n",
    }
    for name_of, data in seeds.items():
        seed("notes", name_of, data)


# A byte for how many come at a time, then what a client sends.
def request() -> None:
    host = b"Host: localhost:7818\r\n"
    post = b"POST /stepwell.v1.QueryService/ListTrials HTTP/1.1\r\n" + host
    call = post + b"Content-Type: application/json\r\nConnect-Protocol-Version: 1\r\n"
    chunked = call + b"Transfer-Encoding: chunked\r\n\r\n"
    get = b"GET /livez HTTP/1.1\r\n" + host + b"\r\n"
    seeds = {
        "get": get, "get_query": b"GET /index.html?a=b&c=%20 HTTP/1.1\r\n" + host + b"Sec-Fetch-Site: none\r\n\r\n",
        "absolute": b"GET http://localhost:7818/livez?a HTTP/1.1\r\nHost: other\r\n\r\n",
        "absolute_bare": b"GET HTTPS://localhost HTTP/1.1\r\n\r\n",
        "absolute_hosts": b"GET http://" + b"h" * 99 + b"/ HTTP/1.1\r\n" + b"Host:\r\n" * 20 + b"\r\n",
        "call": call + b"Content-Length: 2\r\n\r\n{}", "head": get.replace(b"GET", b"HEAD"),
        "chunked": chunked + b'1;a=b;c="d"\r\n{\r\n1\r\n}\r\n0\r\nX-After: y\r\n\r\n' + get,
        "chunked_host": chunked + b"0\r\nHost: evil\r\nConnection: close\r\n\r\n" + get,
        "chunked_far": chunked + b"ffffffffffffffff\r\n{", "chunked_long": chunked + b"1;" + b"a" * 900 + b"\r\n{\r\n0\r\n\r\n",
        "coding_odd": post + b"Transfer-Encoding: chunked, identity\r\n\r\n" + get,
        "coding_gzip": post + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "coding_tab": post + b"Transfer-Encoding:\tchunked \r\n\r\n0\r\n\r\n",
        "coding_twice": post + b"Transfer-Encoding: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "coding_and_length": post + b"Transfer-Encoding: x\r\nContent-Length: 3\r\n\r\nabc",
        "coding_behind": chunked + b"0\r\nTransfer-Encoding: x\r\n\r\n", "length_twice": post + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc" + get,
        "length_list": post + b"Content-Length: 3, 3\r\n\r\nabc", "length_far": post + b"Content-Length: 18446744073709551616\r\n\r\n",
        "fold": b"GET /livez HTTP/1.1\r\n" + host + b"X-A: one\r\n two\r\n\tthree\r\n\r\n",
        "huge": b"GET /livez HTTP/1.1\r\nX-A: " + b"a" * 17000 + b"\r\n\r\n", "old": b"GET /livez HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + get,
        "two": get + get, "expect": call + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}", "bare_lines": get.replace(b"\r", b""),
        "http2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "tls": b"\x16\3\1\2\0\1\0\1\xfc\3\3", "cut": get[:-3], "star": b"OPTIONS * HTTP/1.1\r\n" + host + b"\r\n",
        "control": b"GET /\x80\xff HTTP/1.1\r\nHost: a\x7fb\r\n\r\n", "nul": b"GET /livez HTTP/1.1\r\nHost: a\0b\r\n\r\n",
    }
    for number, (name_of, data) in enumerate(seeds.items()):
        seed("request", name_of, bytes([(1, 7, 64)[number % 3]]) + data)
    # Each field whole, and one byte of the next, which says that it does not go on.
    fields = b"GET /" + b"a" * 83 + b" HTTP/1.1\r\n" + 200 * (b"X-A: " + b"a" * 93 + b"\r\n") + b"\r\n"
    seed("request", "fields_one_by_one", bytes([100]) + fields)
    # The end of a body byte by byte: the parser is asked again with four bytes of it.
    seed("request", "chunked_end_by_byte", b"\1" + chunked + b"0\r\n\r\n" + get)


if __name__ == "__main__":
    for make in (spool, ring, chunk, json, words, kernel, chrome, callers, notes, request):
        make()
