"""Reads traces in Perfetto's form by the descriptors that Perfetto publishes, without a line of ours: perfetto_reader.py FILE...

For an interpreter that has the packages of perfetto.txt. Prints for each file, as JSON, what it has (slices, moments, counters by
their names, rows by theirs) and its troubles: fields that the descriptors do not know, at any depth, and what Perfetto's own
documents ask of TrackEvents (docs/reference/synthetic-track-event.md there) and the file has not.
"""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as published

_Event = published.TrackEvent
_REALTIME = published.BUILTIN_CLOCK_REALTIME
# Who unpacks a block in Perfetto's reader bounds it so.
_BLOCK_BYTES_MAX = 512 << 10


def messages_within(message: Message, path: str = "") -> Iterator[tuple[str, Message]]:
    yield path or message.DESCRIPTOR.name, message
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for one in value if field.is_repeated else [value]:
            yield from messages_within(one, f"{path or message.DESCRIPTOR.name}.{field.name}")


class Sequence:
    """What packets of one writer lean on."""

    def __init__(self) -> None:
        self.is_begun = False
        self.clock = 0
        self.clocks: dict[int, int] = {}  # what of CLOCK_REALTIME is a clock's zero
        self.texts: dict[str, dict[int, str]] = defaultdict(dict)


class Reader:
    def __init__(self) -> None:
        self.troubles: list[str] = []
        self._sequences: dict[int, Sequence] = defaultdict(Sequence)
        self._tracks: dict[int, Any] = {}
        self._events: list[tuple[int, int, Any, Sequence]] = []
        self._flows: dict[int, list[str]] = defaultdict(list)
        self.packet_count = 0
        self.block_count = 0
        self.slices: list[dict[str, Any]] = []
        self.moments: list[dict[str, Any]] = []
        self.counts: Counter[str] = Counter()

    def read(self, data: bytes) -> None:
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        try:
            trace = published.Trace.FromString(data)
        except DecodeError as error:
            self.troubles.append(f"no Trace: {error}")
            return
        self._check_known(trace, whole=False)
        for packet in trace.packet:
            self._take(packet)
        self._join()

    def _trouble(self, text: str) -> None:
        self.troubles.append(f"packet {self.packet_count}: {text}")

    def _check_known(self, message: Message, *, whole: bool = True) -> None:
        for path, each in messages_within(message) if whole else [("Trace", message)]:
            for field, value in each.ListFields() if whole else []:
                texts = value if field.is_repeated else [value]
                if field.type == field.TYPE_STRING and not all(isinstance(text, str) for text in texts):
                    self._trouble(f"{path}.{field.name} is no UTF-8")  # the package gives its bytes then
            for unknown in UnknownFieldSet(each):
                self._trouble(f"{path} has field {unknown.field_number}, or a value of it, that is not published")

    def _take(self, packet: Any) -> None:
        if packet.HasField("compressed_packets"):
            unpacked = zlib.decompress(packet.compressed_packets)
            block = published.Trace.FromString(unpacked)
            self.block_count += 1
            if len(unpacked) > _BLOCK_BYTES_MAX:
                self._trouble(f"a block of {len(unpacked)} bytes")
            self._check_known(block, whole=False)
            for each in block.packet:
                if each.HasField("compressed_packets"):
                    self._trouble("a block within a block")
                self._take(each)
            return
        self.packet_count += 1
        before = len(self.troubles)
        self._check_known(packet)
        if len(self.troubles) > before:
            return
        sequence = self._sequences[packet.trusted_packet_sequence_id]
        if packet.trusted_packet_sequence_id == 0:
            self._trouble("it is of no sequence")
        if packet.sequence_flags & published.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED:
            if not sequence.is_begun and not packet.first_packet_on_sequence:
                self._trouble("a sequence that does not say where it begins")
            sequence.is_begun = True
            sequence.texts.clear()
        elif packet.sequence_flags & published.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE and not sequence.is_begun:
            self._trouble("it leans on a state that was not begun")
        if packet.HasField("clock_snapshot"):
            self._take_clocks(packet.clock_snapshot, sequence)
        if packet.HasField("trace_packet_defaults"):
            sequence.clock = packet.trace_packet_defaults.timestamp_clock_id
        self._take_texts(packet, sequence)
        if packet.HasField("track_descriptor"):
            self._take_track(packet.track_descriptor)
        if packet.HasField("track_event"):
            self._take_event(packet, sequence)

    def _take_clocks(self, snapshot: Any, sequence: Sequence) -> None:
        times = {each.clock_id: each.timestamp for each in snapshot.clocks}
        if _REALTIME not in times:
            self._trouble("a snapshot of clocks without that of 1970")
            return
        for clock, time in times.items():
            sequence.clocks[clock] = times[_REALTIME] - time

    def _take_texts(self, packet: Any, sequence: Sequence) -> None:
        for field, entries in packet.interned_data.ListFields():
            known = sequence.texts[field.name]
            for entry in entries:
                if entry.iid == 0:
                    self._trouble(f"{field.name} has a text with number 0")
                if known.setdefault(entry.iid, entry.name) != entry.name:
                    self._trouble(f"{field.name} {entry.iid} is two texts")

    def _take_track(self, track: Any) -> None:
        if track.uuid == 0:
            self._trouble("a track without a number")
        if track.HasField("parent_uuid") and track.parent_uuid not in self._tracks:
            self._trouble(f"track {track.uuid} is below {track.parent_uuid}, which is not described before")
        if track.HasField("thread") and not (track.thread.HasField("pid") and track.thread.HasField("tid")):
            self._trouble(f"track {track.uuid} is of a thread without its numbers")
        if track.HasField("thread") and track.thread.tid == 0:
            self._trouble(f"track {track.uuid} is of thread 0, which readers take for the process")
        self._tracks[track.uuid] = track

    def _take_event(self, packet: Any, sequence: Sequence) -> None:
        event = packet.track_event
        clock = packet.timestamp_clock_id or sequence.clock
        if not packet.HasField("timestamp") or clock not in sequence.clocks:
            self._trouble(f"an event without a time, or of clock {clock}, which no snapshot has")
            return
        track = self._tracks.get(event.track_uuid)
        if track is None:
            self._trouble(f"an event on track {event.track_uuid}, which is not described before")
            return
        if (event.type == _Event.TYPE_COUNTER) != track.HasField("counter"):
            self._trouble(f"a counter's value on a row of slices, or the other way round, on track {event.track_uuid}")
        if event.type == _Event.TYPE_COUNTER and not (event.HasField("counter_value") or event.HasField("double_counter_value")):
            self._trouble("a counter without a value")
        self._events.append((packet.timestamp + sequence.clocks[clock], len(self._events), event, sequence))
        # Now: a text must be known before it is named by its number.
        if event.type in (_Event.TYPE_SLICE_BEGIN, _Event.TYPE_INSTANT) and not self._name(event, sequence):
            self._trouble(f"a slice or moment without a name, on track {event.track_uuid}")
        for number in event.category_iids:
            self._text("event_categories", number, sequence)
        self._args(event, sequence)

    def _text(self, kind: str, number: int, sequence: Sequence) -> str:
        if number not in sequence.texts[kind]:
            self._trouble(f"{kind} {number} is named and no text")
        return sequence.texts[kind].get(number, "")

    def _name(self, event: Any, sequence: Sequence) -> str:
        return self._text("event_names", event.name_iid, sequence) if event.HasField("name_iid") else event.name

    def _args(self, event: Any, sequence: Sequence) -> dict[str, Any]:
        found = {}
        for arg in event.debug_annotations:
            name = arg.name if arg.HasField("name") else self._text("debug_annotation_names", arg.name_iid, sequence)
            value = arg.WhichOneof("value")
            if not name or value is None:
                self._trouble(f"an argument without a name or a value: {name!r}")
                continue
            found[name] = getattr(arg, value)
            if value == "legacy_json_value":
                found[name] = json.loads(arg.legacy_json_value)
        return found

    def _join(self) -> None:
        """As who reads it does: in order of times, what is of one time as it was written."""
        open_ones: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for time, _, event, sequence in sorted(self._events, key=lambda each: each[:2]):
            if event.type == _Event.TYPE_COUNTER:
                self.counts[self._tracks[event.track_uuid].name] += 1
                continue
            if event.type == _Event.TYPE_SLICE_END:
                if not open_ones[event.track_uuid]:
                    self.troubles.append(f"track {event.track_uuid}: an end without a begin")
                    continue
                open_ones[event.track_uuid].pop()["end"] = time
                continue
            found = {"name": self._name(event, sequence), "row": self._row(event.track_uuid), "begin": time,
                     "args": self._args(event, sequence)}  # fmt: skip
            for flow in [*event.flow_ids, *event.terminating_flow_ids]:
                self._flows[flow].append(found["name"])
            if event.type == _Event.TYPE_SLICE_BEGIN:
                found["depth"] = len(open_ones[event.track_uuid])
                open_ones[event.track_uuid].append(found)
                self.slices.append(found)
            elif event.type == _Event.TYPE_INSTANT:
                self.moments.append(found)
            else:
                self.troubles.append(f"an event of type {event.type}")
        for uuid, left in open_ones.items():
            self.troubles.extend(f"track {uuid}: {each['name']} has no end" for each in left)
        self.troubles.extend(f"flow {flow} has one end alone" for flow, ends in self._flows.items() if len(ends) < 2)
        self._check_rows()

    def _row(self, uuid: int) -> list[str]:
        """The process, and the thread or the row below it."""
        track, names = self._tracks[uuid], []
        while track.HasField("parent_uuid"):
            names.append(track.name)
            track = self._tracks[track.parent_uuid]
        if track.HasField("thread"):
            names.append(track.thread.thread_name)
            names.append(next((each.process.process_name for each in self._tracks.values()
                               if each.HasField("process") and each.process.pid == track.thread.pid), ""))  # fmt: skip
        elif track.HasField("process"):
            names.append(track.process.process_name)
        return names[::-1]

    def _check_rows(self) -> None:
        processes = Counter(each.process.pid for each in self._tracks.values() if each.HasField("process"))
        threads = Counter((each.thread.pid, each.thread.tid) for each in self._tracks.values() if each.HasField("thread"))
        for row, count in [*processes.items(), *threads.items()]:
            if count > 1:
                self.troubles.append(f"{count} tracks are of process or thread {row}; there should only be one")
        self.troubles.extend(f"thread {thread} is of a process that no track describes"
                             for thread in threads if thread[0] not in processes)  # fmt: skip

    def told(self) -> dict[str, Any]:
        processes = [each.process.process_name for each in self._tracks.values() if each.HasField("process")]
        return {"troubles": self.troubles[:50], "packets": self.packet_count, "blocks": self.block_count,
                "processes": sorted(processes), "slices": self.slices, "moments": self.moments, "counts": self.counts,
                "flows": list(self._flows.values())}  # fmt: skip


def main() -> int:
    found = []
    for path in sys.argv[1:]:
        reader = Reader()
        with open(path, "rb") as file:
            reader.read(file.read())
        found.append(reader.told())
    json.dump(found, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
