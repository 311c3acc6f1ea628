// HostileChunk: any bytes as what an agent tells a master (a chunk's body, definitions, Open, a
// gap), also where they are no message at all, and as what a journal holds of it. What is taken
// keeps the bounds of the contract, and comes back from the journal bit for bit. Header only; pure.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/stubs/logging.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "server/chunk_check.h"
#include "server/definition_check.h"
#include "server/journal_codec.h"
#include "server/journal_ticks.h"
#include "server/limits.h"
#include "server/malformed.h"
#include "server/open_check.h"
#include "server/text_check.h"
#include "server/varint.h"
#include "storage/journal_rows.h"
#include "tests/fuzz/hostile_bytes.h"

namespace stepwell::testing {

// The first byte of an input.
enum class HostileChunkKind : std::uint8_t {
  kBody,
  kChunk,
  kDefinitions,
  kOpen,
  kGap,
  kJournal,
  kTicks,
  kOldBody,
  kRow,
  kMalformed,
};
inline constexpr std::uint8_t kHostileChunkKinds = 10;

inline void CheckComplaint(const Complaint& complaint) {
  STEPWELL_CHECK(!complaint.reason.empty() && !complaint.message.empty());
  STEPWELL_CHECK(complaint.message.size() < 8192);
}

inline void CheckStorable(absl::string_view text, std::int64_t bytes_max) {
  STEPWELL_CHECK(!CheckText("", text, {0, bytes_max}, "").has_value());
}

inline void CheckSame(const std::vector<double>& left, const std::vector<double>& right) {
  STEPWELL_CHECK(left.size() == right.size());
  STEPWELL_CHECK(left.empty() ||
                 std::memcmp(left.data(), right.data(), left.size() * sizeof(double)) == 0);
}

inline void CheckSame(const DecodedChunk& left, const DecodedChunk& right) {
  STEPWELL_CHECK(left.sample_count == right.sample_count);
  STEPWELL_CHECK(left.tables.size() == right.tables.size());
  for (std::size_t t = 0; t < left.tables.size(); ++t) {
    const TickTable& a = left.tables[t];
    const TickTable& b = right.tables[t];
    STEPWELL_CHECK(a.tick_group == b.tick_group && a.times_us == b.times_us);
    STEPWELL_CHECK(a.batches == b.batches && a.columns.size() == b.columns.size());
    for (std::size_t c = 0; c < a.columns.size(); ++c) {
      STEPWELL_CHECK(a.columns[c].series_no == b.columns[c].series_no);
      STEPWELL_CHECK(a.columns[c].presence == b.columns[c].presence);
      CheckSame(a.columns[c].values, b.columns[c].values);
    }
  }
}

inline void CheckTable(const TickTable& table, std::int64_t& sample_count) {
  STEPWELL_CHECK(!table.times_us.empty() && table.batches.size() == table.times_us.size());
  for (const std::int64_t time_us : table.times_us) STEPWELL_CHECK(time_us >= kTimeUsMin);
  for (const std::int32_t batch : table.batches) STEPWELL_CHECK(batch >= -1);
  for (const TickColumn& column : table.columns) {
    std::size_t present = table.times_us.size();
    if (!column.presence.empty()) {
      STEPWELL_CHECK(column.presence.size() == table.times_us.size());
      present = 0;
      for (const std::uint8_t bit : column.presence) present += bit;
    }
    STEPWELL_CHECK(column.values.size() == present);
    sample_count += static_cast<std::int64_t>(present);
  }
}

// To the journal and back.
inline void CheckJournal(const DecodedChunk& decoded) {
  JournalEntry entry;
  entry.first_sequence = entry.last_sequence = 7;
  entry.attempt = 2;
  entry.sealed_time_us = -5;
  entry.has_body = true;
  std::string payload;
  AppendJournalEntry(entry, decoded.tables, payload);
  std::vector<JournalEntry> entries;
  STEPWELL_CHECK(DecodeJournalPayload(payload, entries).ok() && entries.size() == 1);
  STEPWELL_CHECK(entries[0].first_sequence == 7 && entries[0].sealed_time_us == -5);
  DecodedChunk again;
  STEPWELL_CHECK(DecodeJournalBody(entries[0], again).ok());
  CheckSame(decoded, again);
}

inline void CheckDecoded(const DecodedChunk& decoded) {
  std::int64_t sample_count = 0;
  for (const TickTable& table : decoded.tables) CheckTable(table, sample_count);
  STEPWELL_CHECK(sample_count == decoded.sample_count);
  STEPWELL_CHECK(sample_count <= kChunkSamplesMax);
  CheckJournal(decoded);
}

// Refs 1 and 2 in tick group 1, 3 and 4 in group 2 with divisors, 5 refused.
inline RefTable HostileRefs() {
  RefTable refs;
  refs[1] = {.series_no = SeriesNo{11}, .tick_group = 1, .metric_group = "gpu"};
  refs[2] = {.series_no = SeriesNo{12}, .tick_group = 1, .metric_group = "gpu"};
  refs[3] = {.series_no = SeriesNo{13}, .tick_group = 2, .divisor = 1000, .metric_group = "cpu"};
  refs[4] = {.series_no = SeriesNo{14},
             .tick_group = 2,
             .divisor = std::uint64_t{1} << 62,
             .metric_group = "cpu"};
  refs[5] = {.tick_group = 1, .metric_group = "gpu", .refused_reason = "SERIES_LIMIT"};
  return refs;
}

inline void CheckGap(const Gap& gap) {
  STEPWELL_CHECK(gap.sample_count >= 0 && gap.first_time_us <= gap.last_time_us);
  CheckStorable(gap.metric_group, kMetricGroupBytesMax);
  CheckStorable(gap.reason, kReasonBytesMax);
}

inline void ReadHostileBody(HostileBytes& input) {
  static const RefTable refs = HostileRefs();
  pb::Chunk chunk;
  chunk.set_sequence(7);
  chunk.set_sealed_time_us(input.Take<std::int64_t>());
  chunk.set_body(std::string(input.rest()));
  chunk.set_crc32c(ChunkCrc32c(7, chunk.sealed_time_us(), chunk.body()));
  STEPWELL_CHECK(!CheckChunkFrame(chunk).has_value());
  const ChunkContent content = CheckChunkContent(chunk, refs, WriterNo{3});
  for (const Gap& gap : content.gaps) {
    CheckGap(gap);
    STEPWELL_CHECK(gap.writer_no == WriterNo{3});
  }
  if (content.rejected) CheckComplaint(content.rejected->complaint);
  if (content.whole_rejected) {
    STEPWELL_CHECK(content.rejected.has_value() && content.decoded.tables.empty());
    return;
  }
  STEPWELL_CHECK((content.decoded.dropped_count > 0) == content.rejected.has_value());
  CheckDecoded(content.decoded);
}

// What is a repeat adds nothing, whatever it was.
inline void ReadHostileDefinitions(const std::string& bytes) {
  pb::Definitions definitions;
  if (!definitions.ParseFromString(bytes)) return;
  RefTable refs = HostileRefs();
  const Labels labels = {{"agent", "a"}, {"rank", "0"}};
  const DefinitionResult result = CheckDefinitions(definitions, labels, refs);
  for (const RefusedDefinition& refused : result.refused) CheckComplaint(refused.complaint);
  for (const CheckedDefinition& fresh : result.fresh) {
    STEPWELL_CHECK(fresh.number != 0 && IsDivisor(fresh.ref.divisor));
    const SeriesKey& key = fresh.definition.key;
    CheckStorable(key.metric_group, kMetricGroupBytesMax);
    CheckStorable(key.name, kMetricNameBytesMax);
    CheckStorable(fresh.definition.unit, kUnitBytesMax);
    STEPWELL_CHECK(key.labels.size() <= kLabelsPerSeriesMax + 2);
    for (std::size_t i = 0; i < key.labels.size(); ++i) {
      STEPWELL_CHECK(i == 0 || key.labels[i - 1].first < key.labels[i].first);
      CheckStorable(key.labels[i].first, kLabelNameBytesMax);
      CheckStorable(key.labels[i].second, kLabelValueBytesMax);
    }
    refs[fresh.number] = fresh.ref;
  }
  STEPWELL_CHECK(CheckDefinitions(definitions, labels, refs).fresh.empty());
}

inline void ReadHostileOpen(const std::string& bytes) {
  pb::Open open;
  if (!open.ParseFromString(bytes)) return;
  OpenWriterRequest request;
  if (const auto complaint = CheckOpen(open, request)) return CheckComplaint(*complaint);
  const Labels labels = WriterLabels(request);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    STEPWELL_CHECK(i == 0 || labels[i - 1].first < labels[i].first);
    CheckStorable(labels[i].first, kLabelNameBytesMax);
    CheckStorable(labels[i].second, kLabelValueBytesMax);
  }
}

inline void ReadHostileGap(const std::string& bytes) {
  pb::GapRange range;
  if (!range.ParseFromString(bytes)) return;
  Gap gap;
  if (const auto complaint = CheckGapRange(range, WriterNo{3}, gap)) {
    return CheckComplaint(*complaint);
  }
  STEPWELL_CHECK(gap.first_sequence >= 1 && gap.first_sequence <= gap.last_sequence);
  STEPWELL_CHECK(gap.last_sequence <= INT64_MAX);
  CheckGap(gap);
}

// A payload may hold several entries; what can be read of one is read the same when written anew.
inline void ReadHostileJournal(absl::string_view payload) {
  std::vector<JournalEntry> entries;
  const absl::Status status = DecodeJournalPayload(payload, entries);
  STEPWELL_CHECK(status.ok() || absl::IsDataLoss(status));
  for (const JournalEntry& entry : entries) {
    STEPWELL_CHECK(entry.first_sequence <= entry.last_sequence);
    if (!entry.has_body) continue;
    DecodedChunk decoded;
    const absl::Status read = DecodeJournalBody(entry, decoded);
    STEPWELL_CHECK(read.ok() || absl::IsDataLoss(read));
    if (read.ok()) CheckJournal(decoded);
  }
}

// `body` in an entry whose checksum is right: form 2 the journal's own ticks, form 1 a ChunkBody with
// targets beside it.
inline std::string HostileEntry(std::uint64_t form, const std::string& targets,
                                absl::string_view body) {
  std::string payload;
  AppendVarint(form, payload);
  AppendVarint(7, payload);
  AppendVarint(0, payload);
  AppendVarint(1, payload);
  AppendVarint(ZigZag(9), payload);
  AppendVarint(ChunkCrc32c(7, 9, {body.data(), body.size()}), payload);
  if (form == 2) AppendVarint(1, payload);
  payload += targets;
  AppendVarint(body.size(), payload);
  payload.append(body.data(), body.size());
  return payload;
}

inline void ReadHostileOldBody(HostileBytes& input) {
  const std::string_view targets = input.TakeBytes(input.Take<std::uint8_t>());
  const std::string_view body = input.rest();
  ReadHostileJournal(HostileEntry(1, std::string(targets), {body.data(), body.size()}));
}

// A row of the journal: how many ranges its columns tell, then the payloads of all.
inline void ReadHostileRow(HostileBytes& input) {
  const std::size_t count = input.Take<std::uint8_t>();
  const std::string_view joined = input.rest();
  const auto payloads = SplitPayloads(joined, count);
  if (!payloads.ok()) {
    STEPWELL_CHECK(absl::IsDataLoss(payloads.status()) && !payloads.status().message().empty());
    return;
  }
  STEPWELL_CHECK(payloads->size() == count);
  JournalRowPlan row;
  for (const std::string& payload : *payloads) {
    row.ranges.push_back(
        {.advance = nullptr, .first_sequence = 1, .last_sequence = 1, .payload = payload});
    ReadHostileJournal({payload.data(), payload.size()});
  }
  STEPWELL_CHECK(JoinPayloads(row) == joined);
  // One that lacks its end, or a range, is no row.
  if (!joined.empty()) {
    STEPWELL_CHECK(!SplitPayloads(joined.substr(0, joined.size() - 1), count).ok());
  }
  STEPWELL_CHECK(!SplitPayloads(joined, count + 1).ok());
}

// The path that is told is one of the contract's, to a text; who wrote it is told where that can be
// read.
inline void CheckMalformed(const MalformedMessage& found) {
  STEPWELL_CHECK(found.writer.empty() || found.writer.size() == 16);
  CheckComplaint(found.complaint);
  STEPWELL_CHECK(IsUtf8(found.complaint.message));
  if (found.complaint.reason == "MALFORMED") return;
  STEPWELL_CHECK(found.complaint.reason == "INVALID_UTF8");
  absl::string_view path = found.complaint.message;
  STEPWELL_CHECK(absl::ConsumeSuffix(&path, " is not valid UTF-8"));
  const google::protobuf::Descriptor* type = pb::StreamChunksRequest::descriptor();
  const google::protobuf::FieldDescriptor* field = nullptr;
  for (const absl::string_view part : absl::StrSplit(path, '.')) {
    STEPWELL_CHECK(type != nullptr);
    field = type->FindFieldByName(std::string(part));
    STEPWELL_CHECK(field != nullptr);
    type = field->message_type();
  }
  STEPWELL_CHECK(field->type() == google::protobuf::FieldDescriptor::TYPE_STRING);
}

inline void ReadHostileMalformed(const std::string& bytes) {
  pb::StreamChunksRequest request;
  if (!request.ParseFromString(bytes)) return CheckMalformed(DescribeMalformed(bytes));
  // One that is whole, with a text that is none.
  request.mutable_open()->set_machine("\xff");
  const std::string broken = request.SerializeAsString();
  const MalformedMessage found = DescribeMalformed(broken);
  CheckMalformed(found);
  STEPWELL_CHECK(found.complaint.reason == "INVALID_UTF8");
}

inline void ReadHostileChunk(std::string_view bytes) {
  // protobuf tells of each text that is no UTF-8, on stderr.
  static const auto told = google::protobuf::SetLogHandler(nullptr);
  (void)told;
  HostileBytes input(bytes);
  const auto kind =
      HostileChunkKind{static_cast<std::uint8_t>(input.Take<std::uint8_t>() % kHostileChunkKinds)};
  const std::string rest(input.rest());
  switch (kind) {
    case HostileChunkKind::kBody:
      return ReadHostileBody(input);
    case HostileChunkKind::kChunk: {
      pb::Chunk chunk;
      if (!chunk.ParseFromString(rest)) return;
      if (const auto complaint = CheckChunkFrame(chunk)) return CheckComplaint(*complaint);
      STEPWELL_CHECK(chunk.sequence() >= 1 && chunk.sequence() <= INT64_MAX);
      return;
    }
    case HostileChunkKind::kDefinitions:
      return ReadHostileDefinitions(rest);
    case HostileChunkKind::kOpen:
      return ReadHostileOpen(rest);
    case HostileChunkKind::kGap:
      return ReadHostileGap(rest);
    case HostileChunkKind::kJournal:
      return ReadHostileJournal(rest);
    case HostileChunkKind::kTicks:
      return ReadHostileJournal(HostileEntry(2, "", rest));
    case HostileChunkKind::kOldBody:
      return ReadHostileOldBody(input);
    case HostileChunkKind::kRow:
      return ReadHostileRow(input);
    case HostileChunkKind::kMalformed:
      return ReadHostileMalformed(rest);
  }
}

}  // namespace stepwell::testing
