#include "base/trace/rank_breakdown.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/bounded_math.h"

namespace stepwell {
namespace {

std::int64_t Length(std::vector<Interval> intervals) {
  return IntervalSet::Of(std::move(intervals)).length();
}

RankTimes TimesOf(const StepTimes& step) {
  RankTimes times;
  times.overlap_ns = step.overlap_ns;
  times.length_ns = step.length_ns();
  times.idle_ns = step.idle_ns;
  times.computation_ns = step.computing_ns - times.overlap_ns;
  times.communication_ns = step.communicating_ns - times.overlap_ns;
  times.other_ns =
      times.length_ns - times.computation_ns - times.overlap_ns - times.communication_ns;
  return times;
}

void Grow(std::int64_t& sum, std::int64_t ns) { sum = BoundedSum(sum, ns); }

// Several traces of one rank may be longer together than any time is, as may collectives, which no step clips.
void AddTo(RankTimes& sum, const RankTimes& times) {
  Grow(sum.computation_ns, times.computation_ns);
  Grow(sum.overlap_ns, times.overlap_ns);
  Grow(sum.communication_ns, times.communication_ns);
  Grow(sum.other_ns, times.other_ns);
  Grow(sum.length_ns, times.length_ns);
  if (sum.idle_ns && times.idle_ns) {
    Grow(*sum.idle_ns, *times.idle_ns);
  } else {
    sum.idle_ns.reset();
  }
  Grow(sum.transfer_ns, times.transfer_ns);
  Grow(sum.wait_ns, times.wait_ns);
}

}  // namespace

bool RankBreakdown::Add(std::size_t rank_no, StepReport report) {
  const bool has_room = report.steps.size() <= kStepsMax - step_count_;
  if (has_room) step_count_ += report.steps.size();
  if (rank_no >= rows_.size()) {
    rows_.resize(rank_no + 1);
    trace_counts_.resize(rank_no + 1);
  }
  RankRow& row = rows_[rank_no];
  const std::string nameless = absl::StrCat("\n", trace_counts_[rank_no]++);
  const std::size_t first = row.steps.size();
  for (const CollectiveCall& call : report.collectives) {
    const CollectiveName& name = report.collective_names[static_cast<std::size_t>(call.name_no)];
    const auto step_no = static_cast<std::size_t>(call.step_no);
    const std::string& step = report.steps[step_no].name;
    const bool may_grow = call_count_ < kCallsMax;
    const Key key = {NumberOf(step.empty() ? nameless : step, may_grow),
                     NumberOf(name.name, may_grow), NumberOf(name.group, may_grow)};
    if (!has_room || !AddCall(rank_no, first + step_no, key, call.ranges)) AddRoomless(key);
  }
  if (!has_room) return false;
  Grow(row.device_busy_ns, report.device_busy_ns);
  Grow(row.device_span_ns, report.device_span_ns);
  for (StepTimes& step : report.steps) {
    const RankTimes times = TimesOf(step);
    row.steps.push_back({std::move(step.name), times});
  }
  return true;
}

std::int32_t RankBreakdown::NumberOf(const std::string& text, bool may_grow) {
  if (!may_grow || texts_.size() >= kTextsMax) {
    const auto known = text_nos_.find(text);
    return known == text_nos_.end() ? kNoText : known->second;
  }
  const auto [known, is_new] =
      text_nos_.try_emplace(text, static_cast<std::int32_t>(texts_.size()));
  if (is_new) texts_.push_back(&known->first);
  return known->second;
}

bool RankBreakdown::AddCall(std::size_t rank_no, std::size_t step_no, const Key& key,
                            const std::vector<Interval>& ranges) {
  if (call_count_ >= kCallsMax || ranges.size() > kRangesMax - range_count_ ||
      std::min({key.step, key.name, key.group}) == kNoText) {
    return false;
  }
  ++call_count_;
  range_count_ += ranges.size();
  Call& call = calls_[key].calls.emplace_back(Call{rank_no, step_no, {}});
  call.ranges.reserve(ranges.size());
  for (const Interval& at : ranges) call.ranges.push_back({at});
  return true;
}

void RankBreakdown::AddRoomless(const Key& key) {
  ++roomless_count_;
  auto known = calls_.find(key);
  // What comes there later would be taken for the whole.
  if (known == calls_.end() && call_count_ < kCallsMax &&
      std::min({key.step, key.name, key.group}) != kNoText) {
    ++call_count_;
    known = calls_.try_emplace(key).first;
  }
  if (known != calls_.end()) known->second.has_roomless = true;
}

void RankBreakdown::Match(Alike& alike) {
  std::vector<Call>& calls = alike.calls;
  if (alike.has_roomless) {
    roomless_count_ += std::ssize(calls);
    return;
  }
  const auto is_before = [](const Call& a, const Call& b) { return a.rank_no < b.rank_no; };
  std::stable_sort(calls.begin(), calls.end(), is_before);
  const std::size_t count = static_cast<std::size_t>(
      std::upper_bound(calls.begin(), calls.end(), calls.front(), is_before) - calls.begin());
  bool is_same = count < calls.size() && calls.size() % count == 0;
  for (std::size_t first = 0; is_same && first < calls.size(); first += count) {
    is_same = calls[first].rank_no == calls[first + count - 1].rank_no &&
              (first == 0 || calls[first].rank_no != calls[first - 1].rank_no);
  }
  if (!is_same) {
    unmatched_count_ += std::ssize(calls);
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (!MatchOne(calls, i, count)) {
      unmatched_count_ += static_cast<std::int64_t>(calls.size() / count);
    }
  }
}

// Range by range: a collective may be an operator and several kernels.
bool RankBreakdown::MatchOne(std::vector<Call>& calls, std::size_t index, std::size_t count) {
  const std::size_t range_count = calls[index].ranges.size();
  for (std::size_t i = index; i < calls.size(); i += count) {
    if (calls[i].ranges.size() != range_count) return false;
  }
  for (std::size_t at = 0; at < range_count; ++at) {
    std::int64_t shortest = INT64_MAX;
    for (std::size_t i = index; i < calls.size(); i += count) {
      const Interval& range = calls[i].ranges[at].at;
      shortest = std::min(shortest, range.end - range.begin);
    }
    for (std::size_t i = index; i < calls.size(); i += count) {
      Range& range = calls[i].ranges[at];
      range.transfer_begin = range.at.end - shortest;
      calls[i].is_matched = true;
    }
  }
  return true;
}

// Those of one step of one rank, by name: all of them, and of each name.
void RankBreakdown::CountStep(const std::vector<NamedCall>& calls) {
  RankRow& row = rows_[calls.front().call->rank_no];
  const auto count = [&](std::size_t first, std::size_t behind) {
    std::vector<Interval> all, transfers;
    for (std::size_t i = first; i < behind; ++i) {
      for (const Range& range : calls[i].call->ranges) {
        all.push_back(range.at);
        transfers.push_back({range.transfer_begin, range.at.end});
      }
    }
    const std::int64_t transfer_ns = Length(std::move(transfers));
    return std::pair(transfer_ns, Length(std::move(all)) - transfer_ns);
  };
  RankTimes& times = row.steps[calls.front().call->step_no].times;
  std::tie(times.transfer_ns, times.wait_ns) = count(0, calls.size());
  for (std::size_t first = 0, behind = 0; first < calls.size(); first = behind) {
    while (behind < calls.size() && calls[behind].name_no == calls[first].name_no) ++behind;
    const auto [transfer_ns, wait_ns] = count(first, behind);
    CollectiveTimes& of_name =
        row.collectives[*texts_[static_cast<std::size_t>(calls[first].name_no)]];
    of_name.call_count += static_cast<std::int64_t>(behind - first);
    Grow(of_name.transfer_ns, transfer_ns);
    Grow(of_name.wait_ns, wait_ns);
  }
}

RankReport RankBreakdown::Finish() {
  std::vector<NamedCall> matched;
  for (auto& [key, alike] : calls_) {
    Match(alike);
    for (const Call& call : alike.calls) {
      if (call.is_matched) matched.push_back({&call, key.name});
    }
  }
  std::sort(matched.begin(), matched.end(), [](const NamedCall& a, const NamedCall& b) {
    return std::tie(a.call->rank_no, a.call->step_no, a.name_no) <
           std::tie(b.call->rank_no, b.call->step_no, b.name_no);
  });
  std::vector<NamedCall> of_step;
  for (std::size_t i = 0; i < matched.size(); ++i) {
    of_step.push_back(matched[i]);
    const bool is_last = i + 1 == matched.size() ||
                         matched[i + 1].call->rank_no != matched[i].call->rank_no ||
                         matched[i + 1].call->step_no != matched[i].call->step_no;
    if (!is_last) continue;
    CountStep(of_step);
    of_step.clear();
  }
  for (RankRow& row : rows_) {
    row.sum.idle_ns = 0;
    for (const RankStep& step : row.steps) AddTo(row.sum, step.times);
  }
  return {.ranks = std::move(rows_),
          .unmatched_count = unmatched_count_,
          .roomless_count = roomless_count_};
}

}  // namespace stepwell
