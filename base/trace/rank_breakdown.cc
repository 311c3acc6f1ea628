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

// Collectives are not clipped where their steps end: those of absurd traces may be longer together than any time is.
void AddBounded(std::int64_t& sum, std::int64_t ns) { sum = BoundedSum(sum, ns); }

void AddTo(RankTimes& sum, const RankTimes& times) {
  sum.computation_ns += times.computation_ns;
  sum.overlap_ns += times.overlap_ns;
  sum.communication_ns += times.communication_ns;
  sum.other_ns += times.other_ns;
  sum.length_ns += times.length_ns;
  if (sum.idle_ns && times.idle_ns) {
    *sum.idle_ns += *times.idle_ns;
  } else {
    sum.idle_ns.reset();
  }
  AddBounded(sum.transfer_ns, times.transfer_ns);
  AddBounded(sum.wait_ns, times.wait_ns);
}

}  // namespace

void RankBreakdown::Add(std::size_t rank_no, StepReport report) {
  if (rank_no >= rows_.size()) {
    rows_.resize(rank_no + 1);
    trace_counts_.resize(rank_no + 1);
  }
  const std::string nameless = absl::StrCat("\n", trace_counts_[rank_no]++);
  std::vector<RankStep>& steps = rows_[rank_no].steps;
  const std::size_t first = steps.size();
  for (CollectiveCall& call : report.collectives) {
    if (call_count_ >= kCallsMax || call.ranges.size() > kRangesMax - range_count_) {
      ++unmatched_count_;
      continue;
    }
    ++call_count_;
    range_count_ += call.ranges.size();
    std::vector<Range> ranges;
    ranges.reserve(call.ranges.size());
    for (const Interval& at : call.ranges) ranges.push_back({at});
    const CollectiveName& name = report.collective_names[static_cast<std::size_t>(call.name_no)];
    const auto step_no = static_cast<std::size_t>(call.step_no);
    const std::string& step = report.steps[step_no].name;
    calls_[{step.empty() ? nameless : step, name.name, name.group}].push_back(
        {rank_no, first + step_no, std::move(ranges)});
  }
  rows_[rank_no].device_busy_ns += report.device_busy_ns;
  rows_[rank_no].device_span_ns += report.device_span_ns;
  for (StepTimes& step : report.steps) {
    const RankTimes times = TimesOf(step);
    steps.push_back({std::move(step.name), times});
  }
}

void RankBreakdown::Match(std::vector<Call>& calls) {
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
    while (behind < calls.size() && *calls[behind].name == *calls[first].name) ++behind;
    const auto [transfer_ns, wait_ns] = count(first, behind);
    CollectiveTimes& of_name = row.collectives[*calls[first].name];
    of_name.call_count += static_cast<std::int64_t>(behind - first);
    AddBounded(of_name.transfer_ns, transfer_ns);
    AddBounded(of_name.wait_ns, wait_ns);
  }
}

RankReport RankBreakdown::Finish() {
  std::vector<NamedCall> matched;
  for (auto& [key, calls] : calls_) {
    Match(calls);
    for (const Call& call : calls) {
      if (call.is_matched) matched.push_back({&call, &key.name});
    }
  }
  std::sort(matched.begin(), matched.end(), [](const NamedCall& a, const NamedCall& b) {
    return std::tie(a.call->rank_no, a.call->step_no, *a.name) <
           std::tie(b.call->rank_no, b.call->step_no, *b.name);
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
  return {.ranks = std::move(rows_), .unmatched_count = unmatched_count_};
}

}  // namespace stepwell
