#include "server/journal_codec.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "server/varint.h"
#include "server/wire.h"
#include "stepwell/v1/ingest.pb.h"

namespace stepwell {
namespace {

// What releases before wrote: the chunk's bytes as they came, and what replay needs beside them.
constexpr std::uint64_t kFormBody = 1;
constexpr std::uint64_t kFormTicks = 2;
// Eight numbers, one of them of one byte.
constexpr std::size_t kHeadBytesMax = 7 * kVarintBytesMax + 1;

void ReadTargets(VarintReader& reader, std::uint64_t table_count, std::vector<TableTarget>& out) {
  for (std::uint64_t t = 0; t < table_count && !reader.failed(); ++t) {
    TableTarget table;
    table.tick_group =
        static_cast<std::uint32_t>(reader.Varint(std::numeric_limits<std::uint32_t>::max()));
    const std::uint64_t column_count = reader.Count(2);
    for (std::uint64_t c = 0; c < column_count && !reader.failed(); ++c) {
      ColumnTarget column;
      column.series_no = static_cast<SeriesNo>(
          reader.Varint(static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())));
      column.divisor = reader.Varint();
      table.columns.push_back(column);
    }
    out.push_back(std::move(table));
  }
}

JournalEntry ReadEntry(VarintReader& reader) {
  JournalEntry entry;
  const std::uint64_t form = reader.Varint(kFormTicks);
  if (form < kFormBody) reader.Fail();
  entry.first_sequence = reader.Varint();
  entry.last_sequence =
      entry.first_sequence +
      reader.Varint(std::numeric_limits<std::uint64_t>::max() - entry.first_sequence);
  entry.attempt = static_cast<std::int32_t>(
      reader.Varint(static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())));
  entry.sealed_time_us = UnZigZag(reader.Varint());
  entry.crc32c =
      static_cast<std::uint32_t>(reader.Varint(std::numeric_limits<std::uint32_t>::max()));
  entry.is_ticks = form == kFormTicks;
  if (entry.is_ticks) {
    entry.has_body = reader.Varint(1) == 1;
  } else if (const std::uint64_t table_count = reader.Varint(); table_count > 0) {
    entry.has_body = true;
    ReadTargets(reader, table_count - 1, entry.targets);
  }
  if (entry.has_body && !reader.failed()) entry.body = reader.Bytes(reader.Varint());
  return entry;
}

absl::Status Unreadable(const JournalEntry& entry, const std::string& why) {
  return absl::DataLossError(
      absl::StrCat("journal: the body of sequence ", entry.first_sequence, " ", why));
}

absl::Status DecodeBody(const JournalEntry& entry, DecodedChunk& out) {
  pb::ChunkBody body;
  if (!body.ParseFromArray(entry.body.data(), static_cast<int>(entry.body.size()))) {
    return Unreadable(entry, "is unreadable");
  }
  bool fits = static_cast<std::size_t>(body.tables_size()) == entry.targets.size();
  for (int t = 0; fits && t < body.tables_size(); ++t) {
    fits = static_cast<std::size_t>(body.tables(t).columns_size()) ==
           entry.targets[static_cast<std::size_t>(t)].columns.size();
  }
  if (!fits) return Unreadable(entry, "has other tables than were noted beside it");
  if (auto complaint = DecodeChunk(body, entry.targets, out)) {
    return absl::DataLossError(
        absl::StrCat("journal: sequence ", entry.first_sequence, ": ", complaint->message));
  }
  return absl::OkStatus();
}

std::uint32_t ChecksumOf(const JournalEntry& entry, absl::string_view body) {
  return ChunkCrc32c(entry.first_sequence, entry.sealed_time_us, {body.data(), body.size()});
}

}  // namespace

void AppendJournalEntry(const JournalEntry& entry, absl::Span<const TickTable> tables,
                        std::string& payload, JournalScratch& scratch) {
  std::string& body = scratch.body;
  body.clear();
  if (entry.has_body) AppendJournalTicks(tables, body, scratch.scaled);
  // An entry lies in memory, byte for byte, until its group is committed.
  payload.reserve(payload.size() + kHeadBytesMax + body.size());
  AppendVarint(kFormTicks, payload);
  AppendVarint(entry.first_sequence, payload);
  AppendVarint(entry.last_sequence - entry.first_sequence, payload);
  AppendVarint(static_cast<std::uint64_t>(entry.attempt), payload);
  AppendVarint(ZigZag(entry.sealed_time_us), payload);
  AppendVarint(ChecksumOf(entry, body), payload);
  AppendVarint(entry.has_body ? 1 : 0, payload);
  if (!entry.has_body) return;
  AppendVarint(body.size(), payload);
  payload.append(body);
}

absl::Status DecodeJournalPayload(absl::string_view payload, std::vector<JournalEntry>& out) {
  VarintReader reader(payload);
  while (!reader.done()) {
    JournalEntry entry = ReadEntry(reader);
    if (reader.failed()) {
      return absl::DataLossError(absl::StrCat("journal payload of ", payload.size(),
                                              " bytes: unreadable at byte ", reader.at()));
    }
    out.push_back(std::move(entry));
  }
  return absl::OkStatus();
}

absl::Status DecodeJournalBody(const JournalEntry& entry, DecodedChunk& out) {
  if (ChecksumOf(entry, entry.body) != entry.crc32c) {
    return Unreadable(entry, "fails its checksum");
  }
  if (!entry.is_ticks) return DecodeBody(entry, out);
  if (!DecodeJournalTicks(entry.body, out)) return Unreadable(entry, "is unreadable");
  return absl::OkStatus();
}

}  // namespace stepwell
