// HostileRing: any bytes as what an agent reads of a recording process, which may be another user's: a
// ring's file, the names of its events, its writer.json. What is read stays within its bounds, is the same
// however it came, and makes samples that a master's rules take. Header only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "absl/numeric/int128.h"
#include "base/check.h"
#include "client/agent/clock_anchor.h"
#include "client/agent/name_table.h"
#include "client/agent/ring_reader.h"
#include "client/agent/step_aggregator.h"
#include "client/agent/writer_identity.h"
#include "server/text_check.h"
#include "tests/fuzz/hostile_bytes.h"
#include "tests/fuzz/hostile_spool.h"

namespace stepwell::testing {

// The first byte of an input.
enum class HostileRingKind : std::uint8_t { kRing, kNames, kWriterJson, kText, kTimes };
inline constexpr std::uint8_t kHostileRingKinds = 5;

// Header: four numbers, then its fields; events are those that follow, with the right stamps unless they
// say otherwise.
inline std::string HostileRingFile(HostileBytes& input) {
  const auto lies = input.Take<std::uint8_t>();
  const std::uint32_t capacity = std::uint32_t{1} << (input.Take<std::uint8_t>() % 7);
  const auto behind = input.Take<std::uint8_t>();
  std::string file(spool::RingFileBytes(capacity), '\0');
  const auto put = [&](std::size_t at, const auto& value) {
    std::memcpy(file.data() + at, &value, sizeof(value));
  };
  put(offsetof(spool::RingHeader, magic), spool::kRingMagic);
  put(offsetof(spool::RingHeader, format_version), spool::kFormatVersion);
  put(offsetof(spool::RingHeader, capacity),
      (lies & 1) != 0 ? input.Take<std::uint32_t>() : capacity);
  const auto head = input.Take<std::uint64_t>();
  put(offsetof(spool::RingHeader, head), head);
  put(offsetof(spool::RingHeader, tail),
      (lies & 2) != 0 ? input.Take<std::uint64_t>() : head - std::min<std::uint64_t>(head, behind));
  put(offsetof(spool::RingHeader, state), input.Take<std::uint32_t>());
  put(offsetof(spool::RingHeader, next_ring), input.Take<std::uint32_t>());
  for (std::uint32_t left = 0; left < capacity && !input.at_end(); ++left) {
    spool::Event event = input.Take<spool::Event>();
    const std::uint64_t position = head - 1 - left;
    if ((event.depth & 0x8000) == 0) event.stamp = static_cast<std::uint32_t>(position + 1);
    put(spool::EventOffset(capacity, position), event);
  }
  if ((lies & 4) != 0) file.resize(file.size() - input.Take<std::uint16_t>() % file.size());
  if ((lies & 8) != 0) file[input.Take<std::uint16_t>() % file.size()] ^= 0x10;
  return file;
}

inline bool IsKnownKind(spool::EventKind kind) {
  return kind >= spool::EventKind::kScope && kind <= spool::EventKind::kInstant;
}

inline void ReadHostileRingFile(HostileBytes& input) {
  static const HostileFolder folder;
  folder.Write("ring-0", HostileRingFile(input));
  const int directory = open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const agent::FileDescriptor closer(directory);
  const auto ring = agent::RingReader::Open(directory, 0);
  if (!ring.ok()) return;
  STEPWELL_CHECK(ring->capacity() > 0 && (ring->capacity() & (ring->capacity() - 1)) == 0);
  const auto now = ring->ReadSnapshot();
  if (!now.ok() || now->tail > now->head) return;
  const auto read = ring->ReadEvents(now->tail, now->head);
  if (!read.ok()) return;
  STEPWELL_CHECK(read->events.size() <= ring->capacity());
  STEPWELL_CHECK(read->events.size() <= now->head - now->tail);
  std::uint64_t damaged = 0;
  std::uint64_t position = now->tail;
  agent::StepAggregator aggregator;
  CountingSink sink;
  for (const spool::Event& event : read->events) {
    ++position;
    if (event.kind == agent::kDamagedEvent) {
      ++damaged;
      continue;
    }
    STEPWELL_CHECK(IsKnownKind(event.kind));
    STEPWELL_CHECK(event.stamp == static_cast<std::uint32_t>(position));
    aggregator.Add(event, sink);
    STEPWELL_CHECK(aggregator.kept_count() <= read->events.size());
  }
  STEPWELL_CHECK(damaged == read->damaged_count);
  ReadHostileSums(aggregator.FoldKept(sink));
  aggregator.End(sink);
  STEPWELL_CHECK(aggregator.decided() && sink.count <= read->events.size());
}

// What the agent hands on must be what the master takes: it would refuse the writer, or the series, for
// good.
inline void CheckTaken(std::string_view text, std::size_t bytes_max) {
  STEPWELL_CHECK(
      !CheckText("", {text.data(), text.size()}, {0, static_cast<std::int64_t>(bytes_max)}, "")
           .has_value());
}

inline void CheckNames(const agent::NameEntry& entry) {
  CheckTaken(entry.name, 256);
  CheckTaken(entry.metric_group, 128);
  CheckTaken(entry.unit, 64);
  STEPWELL_CHECK(entry.labels.size() <= spool::kLabelCountMax);
  for (const auto& [name, value] : entry.labels) {
    STEPWELL_CHECK(name != "rank" && name != "agent");
    CheckTaken(name, 128);
    CheckTaken(value, 1024);
  }
}

// Records of: kind, parent, series kind, lies, count of texts, u16 length and text each.
inline std::string HostileNames(HostileBytes& input) {
  std::string names;
  for (std::uint32_t id = 1; !input.at_end(); ++id) {
    spool::NameRecord head{};
    head.id = id;
    head.kind = spool::NameKind{input.Take<std::uint8_t>()};
    head.parent = input.Take<std::uint8_t>();
    head.series_kind = spool::SeriesKind{input.Take<std::uint8_t>()};
    const auto lies = input.Take<std::uint8_t>();
    const auto text_count = static_cast<std::uint8_t>(input.Take<std::uint8_t>() % 72);
    head.text_count = head.kind == spool::NameKind::kScope ? 1 : text_count;
    std::string texts;
    for (int left = text_count; left > 0 && !input.at_end(); --left) {
      const std::string_view text = input.TakeBytes(input.Take<std::uint8_t>());
      const auto length = static_cast<std::uint16_t>(text.size());
      texts.append(reinterpret_cast<const char*>(&length), sizeof(length));
      texts.append(text);
    }
    texts.resize((texts.size() + 7) / 8 * 8);
    head.record_bytes = static_cast<std::uint32_t>(sizeof(head) + texts.size());
    if ((lies & 0x80) != 0) head.record_bytes = input.Take<std::uint32_t>();
    if ((lies & 0x40) != 0) head.text_count = input.Take<std::uint16_t>();
    names.append(reinterpret_cast<const char*>(&head), sizeof(head));
    names.append(texts);
  }
  return names;
}

inline void ReadHostileNames(HostileBytes& input) {
  const auto piece_bytes = static_cast<std::size_t>(input.Take<std::uint8_t>()) + 1;
  const bool is_raw = input.Take<std::uint8_t>() == 0xff;
  const std::string names = is_raw ? std::string(input.rest()) : HostileNames(input);
  agent::NameTable whole;
  whole.Extend(names);
  STEPWELL_CHECK(whole.consumed_bytes() <= names.size());
  // As the agent does: from where it stopped, as far as the recorder has come by then.
  agent::NameTable pieces;
  for (std::size_t end = 0; end < names.size();) {
    end = std::min(names.size(), end + piece_bytes);
    pieces.Extend(
        std::string_view(names).substr(pieces.consumed_bytes(), end - pieces.consumed_bytes()));
  }
  STEPWELL_CHECK(whole.damaged() == pieces.damaged());
  for (std::uint32_t id = 1;; ++id) {
    const agent::NameEntry* entry = whole.Find(id);
    const agent::NameEntry* other = pieces.Find(id);
    STEPWELL_CHECK((entry == nullptr) == (other == nullptr));
    if (entry == nullptr) return;
    STEPWELL_CHECK(entry->name == other->name && entry->labels == other->labels);
    CheckNames(*entry);
  }
}

inline void ReadHostileWriterJson(std::string_view json) {
  const auto identity = agent::ParseWriterJson(json);
  if (!identity.ok()) {
    STEPWELL_CHECK(IsUtf8(identity.status().message()));
    return;
  }
  for (const auto* text : {&identity->trial, &identity->attempt_key, &identity->boot_id,
                           &identity->server, &identity->recorder_version}) {
    CheckTaken(*text, 300);
  }
  STEPWELL_CHECK(identity->rank >= 0 && identity->world_size >= 0);
  STEPWELL_CHECK(identity->labels.size() <= spool::kWriterLabelCountMax);
  for (const auto& [name, value] : identity->labels) {
    STEPWELL_CHECK(!name.empty() && name != "rank" && name != "agent");
    CheckTaken(name, 128);
    CheckTaken(value, 1024);
  }
  // What it writes for its successor says the same.
  const std::string again = agent::ToWriterJson(*identity);
  const auto read_again = agent::ParseWriterJson(again);
  STEPWELL_CHECK(read_again.ok() && agent::ToWriterJson(*read_again) == again);
}

// The agent's rule for texts and the master's, on the same bytes.
inline void ReadHostileText(HostileBytes& input) {
  const auto bytes_max = static_cast<std::size_t>(input.Take<std::uint8_t>()) + 16;
  const std::string clean = agent::CleanText(input.rest(), bytes_max);
  CheckTaken(clean, bytes_max);
  STEPWELL_CHECK(agent::CleanText(clean, bytes_max) == clean);
  const absl::string_view text(input.rest().data(), input.rest().size());
  if (!CheckText("", text, {0, static_cast<std::int64_t>(bytes_max)}, "").has_value()) {
    STEPWELL_CHECK(clean == text);
  }
}

// Times of events by an anchor that another process wrote.
inline void ReadHostileTimes(HostileBytes& input) {
  agent::ClockAnchor anchor;
  anchor.realtime_us = input.Take<std::int64_t>();
  anchor.monotonic_ns = input.Take<std::uint64_t>();
  const auto event_ns = input.Take<std::uint64_t>();
  const std::int64_t us = anchor.ToUnixUs(event_ns);
  const std::int64_t ns = anchor.ToUnixNs(event_ns);
  // The slow way, without a bound.
  const absl::int128 elapsed = static_cast<std::int64_t>(event_ns - anchor.monotonic_ns);
  const auto bounded = [](absl::int128 exact) {
    return static_cast<std::int64_t>(std::clamp<absl::int128>(exact, INT64_MIN, INT64_MAX));
  };
  STEPWELL_CHECK(us == bounded(anchor.realtime_us + elapsed / 1000));
  const absl::int128 realtime_ns = absl::int128{anchor.realtime_us} * 1000;
  STEPWELL_CHECK(ns == bounded(realtime_ns + elapsed) || realtime_ns != bounded(realtime_ns));
}

inline void ReadHostileRing(std::string_view bytes) {
  HostileBytes input(bytes);
  switch (
      HostileRingKind{static_cast<std::uint8_t>(input.Take<std::uint8_t>() % kHostileRingKinds)}) {
    case HostileRingKind::kRing:
      return ReadHostileRingFile(input);
    case HostileRingKind::kNames:
      return ReadHostileNames(input);
    case HostileRingKind::kWriterJson:
      return ReadHostileWriterJson(input.rest());
    case HostileRingKind::kText:
      return ReadHostileText(input);
    case HostileRingKind::kTimes:
      return ReadHostileTimes(input);
  }
}

}  // namespace stepwell::testing
