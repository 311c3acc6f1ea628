#include "base/trace/open_slices.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/trace/exact_time.h"
#include "base/trace/trace_event.h"

namespace stepwell {
namespace {

// Of a slice beside its texts, and of its row.
constexpr std::size_t kOverhead = 160;

std::string EventOf(std::string_view phase, std::string_view said, std::string_view args) {
  std::string json = "{\"ph\":\"";
  json.append(phase).append("\"").append(said);
  if (!args.empty()) json.append(",\"args\":{").append(args).append("}");
  json += '}';
  return json;
}

// What a slice says at its begin, and what its end says under other names.
std::string JoinedArgs(const std::string& begin, std::string_view end) {
  if (begin.empty()) return std::string(end);
  if (end.empty() || begin == end) return begin;
  absl::flat_hash_set<std::string> names;
  std::string joined = begin;
  ForEachJsonMember(absl::StrCat("{", begin, "}"), [&](std::string_view name, std::string_view) {
    names.insert(std::string(name));
  });
  ForEachJsonMember(absl::StrCat("{", std::string(end), "}"),
                    [&](std::string_view name, std::string_view value) {
                      if (!names.insert(std::string(name)).second) return;
                      joined.append(",\"").append(name).append("\":").append(value);
                    });
  return joined;
}

}  // namespace

std::string OpenSlices::Begin(std::uint64_t track, std::int64_t begin_ns, std::string said,
                              std::string args) {
  const auto found = rows_.find(track);
  const std::size_t bytes = said.size() + args.size() + kOverhead;
  const bool is_within_told = found != rows_.end() && found->second.told_count > 0;
  if (is_within_told || held_bytes_ + bytes > kHeldBytesMax) {
    // Where none is held around it, its end finds none.
    if (found != rows_.end()) ++found->second.told_count;
    return EventOf("B", said, args);
  }
  held_bytes_ += bytes;
  rows_[track].open.push_back(
      {.begin_ns = begin_ns, .said = std::move(said), .args = std::move(args)});
  return "";
}

std::string OpenSlices::End(std::uint64_t track, std::int64_t end_ns, std::string_view said,
                            std::string_view args) {
  const auto found = rows_.find(track);
  const bool is_held =
      found != rows_.end() && found->second.told_count == 0 && !found->second.open.empty();
  if (!is_held) {
    if (found != rows_.end() && found->second.told_count > 0) --found->second.told_count;
    return EventOf("E", said, args);
  }
  Row& row = found->second;
  const Slice slice = std::move(row.open.back());
  row.open.pop_back();
  held_bytes_ -= slice.said.size() + slice.args.size() + kOverhead;
  if (row.open.empty()) rows_.erase(found);
  std::string whole = slice.said;
  whole += ",\"dur\":";
  std::int64_t duration = 0;
  if (__builtin_sub_overflow(end_ns, slice.begin_ns, &duration)) duration = 0;
  AppendMicros(std::max<std::int64_t>(duration, 0), whole);
  return EventOf("X", whole, JoinedArgs(slice.args, args));
}

std::vector<std::string> OpenSlices::TakeUnfinished() {
  std::vector<std::uint64_t> tracks;
  for (const auto& [track, row] : rows_) tracks.push_back(track);
  std::sort(tracks.begin(), tracks.end());
  std::vector<std::string> events;
  for (const std::uint64_t track : tracks) {
    for (const Slice& slice : rows_[track].open) {
      events.push_back(EventOf("B", slice.said, slice.args));
    }
  }
  rows_.clear();
  held_bytes_ = 0;
  return events;
}

}  // namespace stepwell
