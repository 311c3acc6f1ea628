#include "client/agent/surveyed_rings.h"

#include <fcntl.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/agent/file_descriptor.h"
#include "client/agent/header_field.h"
#include "client/recorder/src/spool_format.h"

namespace stepwell::agent {
namespace {

// Nothing where it is no such header.
std::optional<std::string> ReadHeader(int directory, const std::string& name, std::size_t bytes,
                                      std::string_view magic) {
  const absl::StatusOr<FileDescriptor> file = OpenAt(directory, name, O_RDONLY | O_NONBLOCK);
  if (!file.ok()) return std::nullopt;
  absl::StatusOr<std::string> header = ReadAt(file->get(), 0, bytes);
  if (!header.ok() || header->size() != bytes || header->substr(0, magic.size()) != magic) {
    return std::nullopt;
  }
  return *std::move(header);
}

std::set<std::uint32_t> RingNumbers(int directory) {
  std::set<std::uint32_t> numbers;
  const absl::StatusOr<std::vector<std::string>> names = ListNames(directory);
  if (!names.ok()) return numbers;
  for (const std::string& name : *names) {
    absl::string_view digits = name;
    std::uint32_t number = 0;
    if (absl::ConsumePrefix(&digits, spool::kRingFilePrefix) && absl::SimpleAtoi(digits, &number)) {
      numbers.insert(number);
    }
  }
  return numbers;
}

bool AddRing(int directory, std::uint32_t number, const Checkpoint& checkpoint,
             SurveyedRings& rings) {
  const std::optional<std::string> header =
      ReadHeader(directory, absl::StrCat(spool::kRingFilePrefix, number), sizeof(spool::RingHeader),
                 {spool::kRingMagic, sizeof(spool::kRingMagic)});
  if (!header) return false;
  const auto count = [&](std::size_t offset) {
    return HeaderField<std::uint64_t>(*header, offset);
  };
  const std::uint64_t head = count(offsetof(spool::RingHeader, head));
  std::uint64_t tail = count(offsetof(spool::RingHeader, tail));
  if (const auto mark = checkpoint.rings.find(number); mark != checkpoint.rings.end()) {
    tail = std::max(tail, mark->second.tail);
  }
  const auto capacity = HeaderField<std::uint32_t>(*header, offsetof(spool::RingHeader, capacity));
  // The reader does not trust them: a head that makes no sense fills the ring, no more.
  rings.events += std::min<std::uint64_t>(head - std::min(head, tail), capacity);
  rings.events_max += capacity;
  rings.dropped += count(offsetof(spool::RingHeader, dropped));
  return true;
}

}  // namespace

SurveyedRings SurveyRings(int directory, int shared, const Checkpoint& checkpoint) {
  SurveyedRings rings;
  const std::optional<std::string> header =
      ReadHeader(directory, spool::kHeaderFile, sizeof(spool::WriterHeader),
                 {spool::kHeaderMagic, sizeof(spool::kHeaderMagic)});
  if (!header) return rings;
  rings.is_closed = HeaderField<std::uint32_t>(*header, offsetof(spool::WriterHeader, state)) ==
                    spool::kWriterClosed;
  rings.dropped =
      HeaderField<std::uint64_t>(*header, offsetof(spool::WriterHeader, dropped_no_ring)) +
      HeaderField<std::uint64_t>(*header, offsetof(spool::WriterHeader, dropped_no_name));
  std::set<std::uint32_t> numbers = RingNumbers(directory);
  if (shared >= 0) {
    for (const std::uint32_t number : RingNumbers(shared)) {
      if (!AddRing(shared, number, checkpoint, rings)) continue;
      ++rings.shared_count;
      numbers.erase(number);
    }
  }
  for (const std::uint32_t number : numbers) AddRing(directory, number, checkpoint, rings);
  return rings;
}

}  // namespace stepwell::agent
