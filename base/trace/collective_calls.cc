#include "base/trace/collective_calls.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/trace/bounded_text.h"
#include "base/trace/json_members.h"

namespace stepwell {
namespace {

constexpr char kOtherNames[] = "others";

bool IsPointToPoint(const std::string& name) {
  const std::string lower = absl::AsciiStrToLower(name);
  return absl::StrContains(lower, "send") || absl::StrContains(lower, "recv");
}

// Without what a template and its arguments say.
std::string ShortName(const std::string& name) { return name.substr(0, name.find_first_of("(<")); }

}  // namespace

std::int32_t CollectiveCalls::NameNo(std::string name, std::string_view group_json) {
  std::string group = KeyOfText(TextOfJson(group_json).value_or(std::string(group_json)));
  if (names_.size() >= kNamesMax) {
    name = kOtherNames;
    group.clear();
  }
  const auto [found, is_new] = name_nos_.try_emplace(absl::StrCat(name, "\n", group),
                                                     static_cast<std::int32_t>(names_.size()));
  if (is_new) names_.push_back({std::move(name), std::move(group)});
  return found->second;
}

void CollectiveCalls::Add(std::int32_t name_no, Interval at, std::optional<std::int64_t> host_ns) {
  if (calls_.size() >= kCallsMax || range_count_ >= kRangesMax) {
    ++left_out_count_;
    return;
  }
  ++range_count_;
  calls_.push_back({.name_no = name_no, .host_ns = host_ns, .ranges = {at}});
}

void CollectiveCalls::AddRange(std::int64_t& call_no, Interval at) {
  std::vector<Interval>& ranges = calls_[static_cast<std::size_t>(call_no)].ranges;
  if (range_count_ < kRangesMax) {
    ++range_count_;
    ranges.push_back(at);
    return;
  }
  // Half of it would be matched with all of another rank's.
  range_count_ -= ranges.size();
  std::vector<Interval>().swap(ranges);
  call_no = -1;
  ++left_out_count_;
}

void CollectiveCalls::TakeOperator(const TraceEvent& event, Interval at, std::int64_t external_id) {
  std::string name = CutText(TextOfJson(event.name).value_or(""));
  const std::size_t count = calls_.size();
  if (!IsPointToPoint(name)) {
    Add(NameNo(std::move(name), MemberOf(event.args, "Process Group Name")), at, at.begin);
  }
  operator_count_ = calls_.size();
  if (external_id == 0) return;
  by_id_[external_id] = calls_.size() > count ? static_cast<std::int64_t>(count) : -1;
}

std::int32_t CollectiveCalls::NameOfKernel(const TraceEvent& event) {
  const std::string told = TextOfJson(MemberOf(event.args, "Collective name")).value_or("");
  std::string name = CutText(told.empty() ? ShortName(TextOfJson(event.name).value_or("")) : told);
  if (IsPointToPoint(name)) return kNoName;
  return NameNo(std::move(name), MemberOf(event.args, "Process Group Name"));
}

void CollectiveCalls::TakeKernel(std::int64_t external_id, std::int32_t name_no, Interval at,
                                 std::optional<std::int64_t> host_ns) {
  const auto found = by_id_.find(external_id);
  if (external_id != 0 && found != by_id_.end()) {
    if (found->second >= 0) AddRange(found->second, at);
  } else if (name_no != kNoName) {
    Add(name_no, at, host_ns);
  }
}

std::vector<CollectiveCall> CollectiveCalls::Finish() {
  // Where kernels stand for themselves an operator of NCCL without any is their launch, not another collective.
  if (calls_.size() > operator_count_) {
    const auto is_launch = [&](const CollectiveCall& call) {
      return call.ranges.size() == 1 &&
             absl::StartsWith(names_[static_cast<std::size_t>(call.name_no)].name, "nccl:");
    };
    const auto end = calls_.begin() + static_cast<std::ptrdiff_t>(operator_count_);
    calls_.erase(std::remove_if(calls_.begin(), end, is_launch), end);
  }
  std::erase_if(calls_, [](const CollectiveCall& call) { return call.ranges.empty(); });
  const auto is_before = [](const Interval& a, const Interval& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  };
  for (CollectiveCall& call : calls_) {
    std::sort(call.ranges.begin(), call.ranges.end(), is_before);
  }
  std::stable_sort(calls_.begin(), calls_.end(),
                   [&](const CollectiveCall& a, const CollectiveCall& b) {
                     return is_before(a.ranges.front(), b.ranges.front());
                   });
  return std::move(calls_);
}

}  // namespace stepwell
