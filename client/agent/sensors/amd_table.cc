#include "client/agent/sensors/amd_table.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace stepwell::agent {
namespace {

// Of GPUs; 2 and 3 are those of processors with graphics in them, laid out otherwise.
constexpr int kFormatOfGpus = 1;
// What a table of format 1 has, from which revision, and where.
constexpr int kThrottlersRevision = 3;
constexpr std::size_t kThrottlersAt = 112;
constexpr int kLinksRevision = 4;
constexpr std::size_t kReceivedAt = 184;
constexpr std::size_t kSentAt = 248;
constexpr int kCyclesRevision = 6;
constexpr std::size_t kCyclesAt = 424;
// Its totals, in AmdTable::Cycles' order.
constexpr std::size_t kCyclesCount = 6;
static_assert(kCyclesAt + kCyclesCount * sizeof(std::uint64_t) <= kAmdTableBytesMax);

std::optional<std::uint64_t> WordAt(std::span<const std::byte> bytes, std::size_t at) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data() + at, sizeof(word));
  if (word == ~std::uint64_t{0}) return std::nullopt;
  return word;
}

AmdTable::LinkKib LinksAt(std::span<const std::byte> bytes, std::size_t at) {
  AmdTable::LinkKib links;
  for (std::size_t i = 0; i < kXgmiLinkCount; ++i) {
    links[i] = WordAt(bytes, at + i * sizeof(std::uint64_t));
  }
  return links;
}

// None where one of them is not known, or nothing was ever counted.
std::optional<AmdTable::Cycles> CyclesAt(std::span<const std::byte> bytes) {
  std::uint64_t totals[kCyclesCount] = {};
  for (std::size_t i = 0; i < kCyclesCount; ++i) {
    const std::optional<std::uint64_t> total = WordAt(bytes, kCyclesAt + i * sizeof(std::uint64_t));
    if (!total) return std::nullopt;
    totals[i] = *total;
  }
  if (totals[0] == 0) return std::nullopt;
  return AmdTable::Cycles{totals[0], totals[1], totals[2], totals[3], totals[4], totals[5]};
}

}  // namespace

absl::StatusOr<AmdTable> ParseAmdTable(std::span<const std::byte> bytes) {
  STEPWELL_CHECK(bytes.size() == kAmdTableBytesMax);
  // Before them stands the size of the driver's own table, which is not this one.
  const int format = std::to_integer<int>(bytes[2]);
  AmdTable table;
  table.revision = std::to_integer<int>(bytes[3]);
  if (format != kFormatOfGpus) {
    return absl::UnimplementedError(absl::StrCat("the driver's table is of format ", format));
  }
  // Later drivers have no such bits.
  if (table.revision == kThrottlersRevision) table.throttlers = WordAt(bytes, kThrottlersAt);
  if (table.revision >= kLinksRevision) {
    table.received_kib = LinksAt(bytes, kReceivedAt);
    table.sent_kib = LinksAt(bytes, kSentAt);
  }
  if (table.revision >= kCyclesRevision) table.cycles = CyclesAt(bytes);
  return table;
}

}  // namespace stepwell::agent
