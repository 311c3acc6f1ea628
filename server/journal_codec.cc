#include "server/journal_codec.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "server/wire.h"
#include "stepwell/v1/ingest.pb.h"

namespace stepwell {
namespace {

constexpr std::uint64_t kForm = 1;

void AppendVarint(std::uint64_t value, std::string& out) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

std::uint64_t ZigZag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

std::int64_t UnZigZag(std::uint64_t value) {
  return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

// Reads numbers and remembers the first failure.
class Reader {
 public:
  explicit Reader(absl::string_view bytes) : bytes_(bytes) {}

  std::uint64_t Varint(std::uint64_t max = std::numeric_limits<std::uint64_t>::max()) {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ >= bytes_.size()) return Fail();
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      const std::uint64_t bits = byte & 0x7FU;
      if (shift == 63 && bits > 1) return Fail();
      value |= bits << shift;
      if ((byte & 0x80U) == 0) return value <= max ? value : Fail();
    }
    return Fail();
  }

  // A count of things that take at least `bytes_each` bytes each.
  std::uint64_t Count(std::size_t bytes_each) { return Varint((bytes_.size() - at_) / bytes_each); }

  absl::string_view Bytes(std::uint64_t count) {
    if (count > bytes_.size() - at_) {
      Fail();
      return {};
    }
    const absl::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }

  bool done() const { return failed_ || at_ == bytes_.size(); }
  bool failed() const { return failed_; }
  std::size_t at() const { return at_; }

 private:
  std::uint64_t Fail() {
    failed_ = true;
    return 0;
  }

  const absl::string_view bytes_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

void ReadTargets(Reader& reader, std::uint64_t table_count, std::vector<TableTarget>& out) {
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

JournalEntry ReadEntry(Reader& reader) {
  JournalEntry entry;
  reader.Varint(kForm);
  entry.first_sequence = reader.Varint();
  entry.last_sequence =
      entry.first_sequence +
      reader.Varint(std::numeric_limits<std::uint64_t>::max() - entry.first_sequence);
  entry.attempt = static_cast<std::int32_t>(
      reader.Varint(static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())));
  entry.sealed_time_us = UnZigZag(reader.Varint());
  entry.crc32c =
      static_cast<std::uint32_t>(reader.Varint(std::numeric_limits<std::uint32_t>::max()));
  const std::uint64_t table_count = reader.Varint();
  if (table_count == 0) return entry;
  entry.has_body = true;
  ReadTargets(reader, table_count - 1, entry.targets);
  if (!reader.failed()) entry.body = reader.Bytes(reader.Varint());
  return entry;
}

}  // namespace

void AppendJournalEntry(const JournalEntry& entry, std::string& payload) {
  AppendVarint(kForm, payload);
  AppendVarint(entry.first_sequence, payload);
  AppendVarint(entry.last_sequence - entry.first_sequence, payload);
  AppendVarint(static_cast<std::uint64_t>(entry.attempt), payload);
  AppendVarint(ZigZag(entry.sealed_time_us), payload);
  AppendVarint(entry.crc32c, payload);
  if (!entry.has_body) {
    AppendVarint(0, payload);
    return;
  }
  AppendVarint(entry.targets.size() + 1, payload);
  for (const TableTarget& table : entry.targets) {
    AppendVarint(table.tick_group, payload);
    AppendVarint(table.columns.size(), payload);
    for (const ColumnTarget& column : table.columns) {
      AppendVarint(static_cast<std::uint64_t>(Value(column.series_no)), payload);
      AppendVarint(column.divisor, payload);
    }
  }
  AppendVarint(entry.body.size(), payload);
  payload.append(entry.body.data(), entry.body.size());
}

absl::Status DecodeJournalPayload(absl::string_view payload, std::vector<JournalEntry>& out) {
  Reader reader(payload);
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
  if (ChunkCrc32c(entry.first_sequence, entry.sealed_time_us,
                  {entry.body.data(), entry.body.size()}) != entry.crc32c) {
    return absl::DataLossError(absl::StrCat("journal: the body of sequence ", entry.first_sequence,
                                            " fails its checksum"));
  }
  pb::ChunkBody body;
  if (!body.ParseFromArray(entry.body.data(), static_cast<int>(entry.body.size()))) {
    return absl::DataLossError(
        absl::StrCat("journal: the body of sequence ", entry.first_sequence, " is unreadable"));
  }
  bool fits = static_cast<std::size_t>(body.tables_size()) == entry.targets.size();
  for (int t = 0; fits && t < body.tables_size(); ++t) {
    fits = static_cast<std::size_t>(body.tables(t).columns_size()) ==
           entry.targets[static_cast<std::size_t>(t)].columns.size();
  }
  if (!fits) {
    return absl::DataLossError(absl::StrCat("journal: the body of sequence ", entry.first_sequence,
                                            " has other tables than were noted beside it"));
  }
  if (auto complaint = DecodeChunk(body, entry.targets, out)) {
    return absl::DataLossError(
        absl::StrCat("journal: sequence ", entry.first_sequence, ": ", complaint->message));
  }
  return absl::OkStatus();
}

}  // namespace stepwell
