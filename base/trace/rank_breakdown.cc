#include "base/trace/rank_breakdown.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

std::int64_t Length(std::vector<Interval> intervals) {
  return IntervalSet::Of(std::move(intervals)).length();
}

RankTimes TimesOf(const StepTimes& step, bool has_kernels) {
  const std::int64_t computing = has_kernels ? step.computing_ns : step.operating_ns;
  RankTimes times;
  times.overlap_ns = has_kernels ? step.overlap_ns : step.operating_overlap_ns;
  times.length_ns = step.length_ns();
  times.computation_ns = computing - times.overlap_ns;
  times.communication_ns = step.communicating_ns - times.overlap_ns;
  times.other_ns =
      times.length_ns - times.computation_ns - times.overlap_ns - times.communication_ns;
  return times;
}

// Collectives are not clipped where their steps end: those of absurd traces may be longer together than any time is.
void AddBounded(std::int64_t& sum, std::int64_t ns) {
  if (__builtin_add_overflow(sum, ns, &sum)) sum = INT64_MAX;
}

void AddTo(RankTimes& sum, const RankTimes& times) {
  sum.computation_ns += times.computation_ns;
  sum.overlap_ns += times.overlap_ns;
  sum.communication_ns += times.communication_ns;
  sum.other_ns += times.other_ns;
  sum.length_ns += times.length_ns;
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
    if (++call_count_ > kCallsMax) {
      ++unmatched_count_;
      continue;
    }
    const CollectiveName& name = report.collective_names[static_cast<std::size_t>(call.name_no)];
    const auto step_no = static_cast<std::size_t>(call.step_no);
    const std::string& step = report.steps[step_no].name;
    calls_[{step.empty() ? nameless : step, name.name, name.group}].push_back(
        {rank_no, first + step_no, std::move(call.ranges)});
  }
  for (StepTimes& step : report.steps) {
    const RankTimes times = TimesOf(step, report.has_kernels);
    steps.push_back({std::move(step.name), times});
  }
}

void RankBreakdown::Match(const std::string& name, const std::vector<Call>& calls) {
  Calls by_rank(rows_.size());
  for (const Call& call : calls) by_rank[call.rank_no].push_back(&call);
  std::erase_if(by_rank, [](const std::vector<const Call*>& each) { return each.empty(); });
  const std::size_t count = by_rank.front().size();
  const bool is_same = std::all_of(by_rank.begin(), by_rank.end(),
                                   [&](const auto& each) { return each.size() == count; });
  if (by_rank.size() < 2 || !is_same) {
    unmatched_count_ += std::ssize(calls);
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (!MatchOne(name, by_rank, i)) unmatched_count_ += std::ssize(by_rank);
  }
}

// Range by range: a collective may be an operator and several kernels.
bool RankBreakdown::MatchOne(const std::string& name, const Calls& by_rank, std::size_t index) {
  const std::size_t range_count = by_rank.front()[index]->ranges.size();
  for (const std::vector<const Call*>& each : by_rank) {
    if (each[index]->ranges.size() != range_count) return false;
  }
  for (std::size_t at = 0; at < range_count; ++at) {
    std::int64_t shortest = INT64_MAX;
    for (const std::vector<const Call*>& each : by_rank) {
      const Interval& range = each[index]->ranges[at];
      shortest = std::min(shortest, range.end - range.begin);
    }
    for (const std::vector<const Call*>& each : by_rank) {
      const Call& call = *each[index];
      const StepKey step = {call.rank_no, call.step_no};
      for (Spent* spent : {&by_step_[step], &by_name_[{step, name}]}) {
        spent->all.push_back(call.ranges[at]);
        spent->transfers.push_back({call.ranges[at].end - shortest, call.ranges[at].end});
        spent->call_count += at == 0 ? 1 : 0;
      }
    }
  }
  return true;
}

RankReport RankBreakdown::Finish() {
  for (const auto& [key, calls] : calls_) Match(key.name, calls);
  for (auto& [key, spent] : by_step_) {
    RankTimes& times = rows_[key.first].steps[key.second].times;
    times.transfer_ns = Length(std::move(spent.transfers));
    times.wait_ns = Length(std::move(spent.all)) - times.transfer_ns;
  }
  for (auto& [key, spent] : by_name_) {
    CollectiveTimes& times = rows_[key.first.first].collectives[key.second];
    const std::int64_t transfer_ns = Length(std::move(spent.transfers));
    times.call_count += spent.call_count;
    AddBounded(times.transfer_ns, transfer_ns);
    AddBounded(times.wait_ns, Length(std::move(spent.all)) - transfer_ns);
  }
  for (RankRow& row : rows_) {
    for (const RankStep& step : row.steps) AddTo(row.sum, step.times);
  }
  return {.ranks = std::move(rows_), .unmatched_count = unmatched_count_};
}

}  // namespace stepwell
