#include "base/trace/merge_rows.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/trace/bounded_text.h"
#include "base/trace/exact_time.h"
#include "base/trace/trace_event.h"

namespace stepwell {
namespace {

// Perfetto takes a thread 0 for the process, and forces what is no uint32 to 0.
constexpr std::int64_t kTidMax = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kNamedTidMin = 3'000'000'000;  // no system's
// Of an id; the input's number lies above, and both within what a double holds.
constexpr int kIdBits = 40;
constexpr std::int64_t kRowsOfRank = 1000;

// FNV-1a: the same in each merge of the same files.
std::uint64_t HashOf(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash ^ hash >> 40;
}

}  // namespace

MergeRows::Row MergeRows::ProcessOf(std::size_t input, std::string_view pid) {
  const std::pair key(plan_.inputs[input].lane, KeyOfText(pid));
  const auto found = pids_.find(key);
  if (found != pids_.end()) return {found->second, false};
  const Row row = AddProcess();
  if (row.is_new) pids_.emplace(key, row.number);
  return row;
}

MergeRows::Row MergeRows::AddProcess() {
  if (process_count_ >= static_cast<std::int64_t>(kRowsMax)) return {};
  return {++process_count_, true};
}

std::string MergeRows::ProcessName(std::size_t input, std::string_view pid) const {
  const PlacedInput& placed = plan_.inputs[input];
  const auto named = placed.process_names.find(KeyOfText(pid));
  std::string name = absl::StrCat("rank ", placed.rank);
  const bool is_named = named != placed.process_names.end() && !named->second.empty();
  // A merge named it already.
  if (is_named && (named->second == name || named->second.starts_with(name + " · "))) {
    return named->second;
  }
  if (is_named) {
    absl::StrAppend(&name, " · ", named->second);
  } else if (placed.is_native) {
    absl::StrAppend(&name, " · process ", CutText(TextOfJson(pid).value_or(std::string(pid))));
  }
  return name;
}

std::int64_t MergeRows::SortIndex(std::size_t input) const {
  const PlacedInput& placed = plan_.inputs[input];
  // An int32 in both forms.
  return std::min<std::int64_t>(
      placed.rank * kRowsOfRank + (placed.is_native ? kRowsOfRank / 2 : 0), INT32_MAX);
}

MergeRows::Row MergeRows::ThreadOf(std::int64_t process, std::string_view tid) {
  const std::optional<std::int64_t> number = WholeNumber(tid);
  if (number.has_value() && *number > 0 && *number <= kTidMax) return {*number, false};
  const std::pair key(process, KeyOfText(tid));
  const auto found = tids_.find(key);
  if (found != tids_.end()) return {found->second, false};
  if (tids_.size() >= kRowsMax) return {};
  const std::int64_t row = kNamedTidMin + static_cast<std::int64_t>(tids_.size());
  tids_.emplace(key, row);
  return {row, true};
}

std::string MergeRows::ThreadName(std::string_view tid) {
  return CutText(TextOfJson(tid).value_or("thread " + std::string(tid)));
}

std::uint64_t MergedId(std::size_t input, std::string_view id) {
  std::optional<std::int64_t> number = WholeNumber(id);
  std::uint64_t hex = 0;
  if (!number.has_value() && absl::SimpleHexAtoi(TextOfJson(id).value_or(""), &hex)) {
    number = static_cast<std::int64_t>(hex);
  }
  constexpr std::uint64_t kMask = (std::uint64_t{1} << kIdBits) - 1;
  std::uint64_t value = static_cast<std::uint64_t>(number.value_or(-1));
  // What is no number of that size becomes one; two of them in a file are one in a million million.
  if (value > kMask) value = HashOf(id) & kMask;
  return ((input + 1) << kIdBits) | value;
}

std::uint64_t MergedFlowId(std::size_t input, const TraceEvent& event) {
  return HashOf(absl::StrCat(input, "\n", std::string(event.category), "\n",
                             std::string(event.name), "\n", MergedId(0, event.id)));
}

std::optional<std::int64_t> MergedTimeNs(const PlacedInput& input, std::string_view time) {
  std::int64_t time_ns = 0;
  const std::optional<std::int64_t> own = NsOfMicros(time);
  if (!own.has_value() || __builtin_add_overflow(*own, input.base_time_ns, &time_ns)) {
    return std::nullopt;
  }
  return PlaceTime(input, time_ns);
}

std::optional<std::int64_t> MergedDurationNs(const PlacedInput& input, std::string_view time,
                                             std::string_view duration) {
  const std::optional<std::int64_t> own = NsOfMicros(duration);
  if (input.drift == 0 || !own.has_value()) return own;
  // By where both ends lie: what is nested stays so.
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  const std::optional<std::int64_t> time_ns = NsOfMicros(time);
  if (!time_ns.has_value() || __builtin_add_overflow(*time_ns, input.base_time_ns, &begin_ns) ||
      __builtin_add_overflow(begin_ns, *own, &end_ns)) {
    return std::nullopt;
  }
  const std::optional<std::int64_t> begin = PlaceTime(input, begin_ns);
  const std::optional<std::int64_t> end = PlaceTime(input, end_ns);
  std::int64_t length = 0;
  if (!begin || !end || __builtin_sub_overflow(*end, *begin, &length)) return std::nullopt;
  return length;
}

}  // namespace stepwell
