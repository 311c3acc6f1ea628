// HostileSpool: any bytes as what an earlier agent left of a writer: records, the parts of records,
// whole segments on a disk, and a writer's folder with all that may lie in it. Whatever they are,
// reading ends within them, what was read can be written and read again, and a spool over them
// tells of each sequence what it holds, or a gap. Header only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/check.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/log.h"
#include "client/agent/byte_buffer.h"
#include "client/agent/spool.h"
#include "client/agent/step_aggregator.h"
#include "tests/fuzz/hostile_bytes.h"
#include "tests/fuzz/hostile_segment.h"
#include "tests/fuzz/hostile_survey.h"

namespace stepwell::testing {

// The first byte of an input.
enum class HostileSpoolKind : std::uint8_t { kSegment, kRecords, kSpool, kSums, kSurvey };
inline constexpr std::uint8_t kHostileSpoolKinds = 5;

// A sum of a hostile step; counts what comes.
class CountingSink final : public agent::SampleSink {
 public:
  void OnStep(const agent::StepTotals& step) override {
    ++count;
    for (std::size_t i = 1; i < step.paths.size(); ++i) {
      STEPWELL_CHECK(step.paths[i - 1].path < step.paths[i].path);
    }
  }
  void OnOccurrence(std::uint32_t, std::uint64_t, std::uint64_t) override { ++count; }
  void OnRecord(std::uint32_t, std::uint64_t, std::int32_t batch, double) override {
    STEPWELL_CHECK(batch >= spool::kNoBatch);
    ++count;
  }
  void OnRecordAt(std::uint32_t, std::int64_t, std::int32_t batch, double) override {
    STEPWELL_CHECK(batch >= spool::kNoBatch);
    ++count;
  }

  std::size_t count = 0;
};

inline void ReadHostileSums(std::string_view state) {
  agent::StepAggregator aggregator;
  if (!aggregator.Restore(state)) {
    STEPWELL_CHECK(aggregator.decided());
    return;
  }
  CountingSink none;
  agent::StepAggregator again;
  STEPWELL_CHECK(again.Restore(aggregator.FoldKept(none)));
  CountingSink first;
  CountingSink second;
  aggregator.End(first);
  again.End(second);
  STEPWELL_CHECK(none.count == 0 && first.count == second.count);
  STEPWELL_CHECK(aggregator.decided() && again.decided());
}

inline void CheckCheckpoint(const agent::Checkpoint& checkpoint) {
  const std::string bytes = checkpoint.Encode();
  agent::Checkpoint again;
  STEPWELL_CHECK(agent::Checkpoint::Decode(bytes, again));
  STEPWELL_CHECK(again.Encode() == bytes);
  // Told twice is told once.
  agent::Checkpoint once;
  once.MergeFrom(checkpoint);
  agent::Checkpoint twice = once;
  twice.MergeFrom(checkpoint);
  STEPWELL_CHECK(once.Encode() == twice.Encode());
  for (const auto& [thread, state] : checkpoint.thread_states) ReadHostileSums(state);
}

inline void CheckFrame(std::string_view payload) {
  agent::Frame frame;
  agent::Checkpoint checkpoint;
  if (!agent::Frame::Decode(payload, frame, &checkpoint)) return;
  STEPWELL_CHECK(frame.sequence != 0);
  const std::string bytes = frame.Encode(checkpoint);
  agent::Frame again;
  agent::Checkpoint checkpoint_again;
  STEPWELL_CHECK(agent::Frame::Decode(bytes, again, &checkpoint_again));
  STEPWELL_CHECK(again.Encode(checkpoint_again) == bytes && again.body == frame.body);
  CheckCheckpoint(checkpoint);
}

inline void CheckPayload(agent::RecordType type, std::string_view payload) {
  const auto begins_with = [&](const std::string& bytes) {
    STEPWELL_CHECK(payload.substr(0, bytes.size()) == bytes);
  };
  switch (type) {
    case agent::RecordType::kSegmentStart:
      if (const auto start = agent::SegmentStart::Decode(payload)) begins_with(start->Encode());
      return;
    case agent::RecordType::kDefinition:
      return;
    case agent::RecordType::kFrame:
      return CheckFrame(payload);
    case agent::RecordType::kGap:
      if (const auto gap = agent::GapSpan::Decode(payload)) {
        STEPWELL_CHECK(gap->first_sequence != 0 && gap->first_sequence <= gap->last_sequence);
        begins_with(gap->Encode());
      }
      return;
    case agent::RecordType::kCheckpoint: {
      agent::Checkpoint checkpoint;
      if (agent::Checkpoint::Decode(payload, checkpoint)) CheckCheckpoint(checkpoint);
      return;
    }
    case agent::RecordType::kAcked:
      if (const auto mark = agent::AckedMark::Decode(payload)) begins_with(mark->Encode());
      return;
  }
}

inline void ReadHostileSegment(std::string_view segment) {
  agent::RecordReader reader(segment);
  std::size_t end = 0;
  while (const auto record = reader.Next()) {
    const std::size_t at = record->begin;
    STEPWELL_CHECK(at >= end && record->end > at && record->end <= segment.size());
    end = record->end;
    const auto again = agent::ParseRecord(segment, at);
    STEPWELL_CHECK(again.has_value() && again->end == end);
    STEPWELL_CHECK(agent::PayloadBytes(segment.substr(at)) == record->payload.size());
    STEPWELL_CHECK(agent::EncodeRecord(record->type, record->payload) ==
                   segment.substr(at, record->end - at));
    CheckPayload(record->type, record->payload);
  }
  constexpr std::size_t kTimesMax = agent::RecordReader::kCheckedTimesMax;
  STEPWELL_CHECK(reader.checked_bytes() <= kTimesMax * segment.size());
  // One claim is no reason: it ends within the segment.
  STEPWELL_CHECK(!reader.gave_up() || reader.checked_bytes() > (kTimesMax - 1) * segment.size());
}

inline std::uint64_t CheckItem(std::uint64_t sequence, const agent::SpoolItem& item) {
  if (const auto* frame = std::get_if<agent::Frame>(&item)) {
    STEPWELL_CHECK(frame->sequence == sequence);
    return sequence;
  }
  const auto& gap = std::get<agent::GapSpan>(item);
  STEPWELL_CHECK(gap.first_sequence == sequence && gap.last_sequence >= sequence);
  return gap.last_sequence;
}

inline std::unique_ptr<agent::Spool> OpenHostileSpool(const HostileFolder& folder,
                                                      const Clock& clock) {
  const int directory = open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  agent::Spool::Options options;
  options.writer = *Uuid::FromBytes("0123456789abcdef");
  options.bytes_max = 1 << 20;
  options.segment_bytes_max = 4096;
  auto spool = agent::Spool::Open(agent::FileDescriptor(directory), options, clock);
  STEPWELL_CHECK(spool.ok());
  return *std::move(spool);
}

// What a spool over any segments says is whole, and it goes on where it says that it ended.
inline void ReadHostileSpoolFolder(HostileBytes& input) {
  static const HostileFolder folder;
  static FakeClock clock;
  folder.Clear();
  for (int number = 1; number <= 4 && !input.at_end(); ++number) {
    folder.Write("000000000" + std::to_string(number) + ".seg", HostileSegment(input));
  }
  auto spool = OpenHostileSpool(folder, clock);
  const std::uint64_t last = spool->last_sequence();
  std::uint64_t sequence = 1;
  for (int items = 0; items < 64 && sequence >= 1 && sequence <= last; ++items) {
    const auto item = spool->Read(sequence);
    STEPWELL_CHECK(item.ok());
    sequence = CheckItem(sequence, *item) + 1;
  }
  if (last > 0) STEPWELL_CHECK(spool->Read(last).ok());
  // The agent goes on with neither.
  if (spool->lost_acked() || last >= agent::kSequenceMax) return;
  const agent::Spool::Sealed sealed{.sealed_time_us = 5, .span = {}, .body = "goes on"};
  STEPWELL_CHECK(spool->AppendFrames({&sealed, 1}, spool->checkpoint()).ok());
  STEPWELL_CHECK(spool->last_sequence() == last + 1 && last + 1 > last);
  STEPWELL_CHECK(spool->Sync().ok() && spool->Trim().ok());
  spool = OpenHostileSpool(folder, clock);
  STEPWELL_CHECK(spool->last_sequence() == last + 1);
  const auto item = spool->Read(last + 1);
  STEPWELL_CHECK(item.ok() && std::holds_alternative<agent::Frame>(*item));
  STEPWELL_CHECK(std::get<agent::Frame>(*item).body == "goes on");
}

inline void ReadHostileSpool(std::string_view bytes) {
  static const bool is_quiet = [] {
    log::Setup({.level = log::Level::kError});
    return true;
  }();
  (void)is_quiet;
  HostileBytes input(bytes);
  switch (HostileSpoolKind{
      static_cast<std::uint8_t>(input.Take<std::uint8_t>() % kHostileSpoolKinds)}) {
    case HostileSpoolKind::kSegment:
      return ReadHostileSegment(input.rest());
    case HostileSpoolKind::kRecords:
      return ReadHostileSegment(HostileSegment(input));
    case HostileSpoolKind::kSpool:
      return ReadHostileSpoolFolder(input);
    case HostileSpoolKind::kSums:
      return ReadHostileSums(input.rest());
    case HostileSpoolKind::kSurvey:
      return ReadHostileSurvey(input);
  }
}

}  // namespace stepwell::testing
