#include "client/cli/top_view.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/check.h"
#include "client/cli/top_metrics.h"
#include "client/cli/units.h"
#include "client/cli/words.h"
#include "fmt/format.h"

namespace stepwell::cli {
namespace {

using Timing = v1::SummarizeTimingsResponse::Timing;
using RankSummary = v1::SummarizeTimingsResponse::RankSummary;

// So many scopes are a table; what is left has small shares.
constexpr std::size_t kScopesMax = 12;
constexpr int kColumnsMin = 40;
constexpr int kColumnsMax = 132;
constexpr int kPercentColumns = 8;
constexpr int kSecondsColumns = 9;
// A stalled sampler or trial is worth a word after so long.
constexpr std::int64_t kQuietUs = 10'000'000;

std::string ClockText(std::int64_t time_us) {
  return absl::FormatTime("%H:%M:%S UTC", absl::FromUnixMicros(time_us), absl::UTCTimeZone());
}

Tone StateTone(v1::TrialState state) {
  switch (state) {
    case v1::TRIAL_STATE_RUNNING:
      return Tone::kAccent;
    case v1::TRIAL_STATE_COMPLETED:
      return Tone::kGood;
    case v1::TRIAL_STATE_FAILED:
      return Tone::kBad;
    case v1::TRIAL_STATE_LOST:
      return Tone::kWarn;
    default:
      return Tone::kPlain;
  }
}

const RankSummary* LowestRank(const TopTrial& top) {
  return top.timings.ranks_size() > 0 ? &top.timings.ranks(0) : nullptr;
}

// "batch 1,234 · 12.3 steps/s · step 81.2 ms · rank 0 of 2".
std::string ProgressText(const TopTrial& top) {
  std::vector<std::string> facts;
  if (top.batch >= 0) facts.push_back(absl::StrCat("batch ", CountText(top.batch)));
  if (const RankSummary* rank = LowestRank(top); rank != nullptr && rank->step_seconds() > 0) {
    const double steps = static_cast<double>(rank->steps());
    facts.push_back(fmt::format("{} steps/s", ValueText(steps / rank->step_seconds(), "1")));
    facts.push_back("step " + SecondsText(rank->step_seconds() / steps));
    if (top.timings.ranks_size() > 1) {
      facts.push_back(absl::StrCat("rank ", rank->rank(), " of ", top.timings.ranks_size()));
    }
  }
  if (facts.empty()) facts.emplace_back("no step yet");
  return absl::StrJoin(facts, " · ");
}

// The longest and the shortest mean step of the ranks, where they differ.
std::string RanksText(const TopTrial& top) {
  const auto mean = [](const RankSummary& rank) {
    return rank.steps() == 0 ? 0 : rank.step_seconds() / static_cast<double>(rank.steps());
  };
  const auto& ranks = top.timings.ranks();
  if (ranks.size() < 2) return {};
  const auto [shortest, longest] = std::minmax_element(
      ranks.begin(), ranks.end(), [&](const auto& a, const auto& b) { return mean(a) < mean(b); });
  return absl::StrCat("ranks ", SecondsText(mean(*shortest)), " (", shortest->rank(), ") ... ",
                      SecondsText(mean(*longest)), " (", longest->rank(), ")");
}

std::int64_t NewestUs(const TopData& data) {
  std::int64_t newest_us = 0;
  for (const TopTrial& top : data.trials) {
    newest_us = std::max(newest_us, top.trial.last_sample_time_us());
  }
  for (const TopMetric& metric : data.metrics) newest_us = std::max(newest_us, metric.time_us);
  return newest_us;
}

bool HasEnded(const TopData& data) {
  return data.machine.empty() && data.trials.front().trial.state() != v1::TRIAL_STATE_RUNNING &&
         NewestUs(data) != 0;
}

std::string HeadLine(const TopData& data, const TopLook& look) {
  const std::string clock =
      HasEnded(data) ? "ended " + ClockText(NewestUs(data)) : ClockText(data.answered_time_us);
  TopLine line(look);
  const int room = look.columns - ColumnsOf(clock) - 1;
  if (!data.machine.empty()) {
    line.Add(data.machine, Tone::kBold, room);
  } else {
    const v1::Trial& trial = data.trials.front().trial;
    const std::string state = StateWord(trial.state());
    line.Add(TrialName(trial), Tone::kBold, room - ColumnsOf(state) - 2);
    line.PadTo(line.column() + 2).Add(state, StateTone(trial.state()));
  }
  if (line.left() > ColumnsOf(clock)) {
    line.PadTo(look.columns - ColumnsOf(clock)).Add(clock, Tone::kDim);
  }
  return line.Take();
}

// What a reader must know before believing the rest; empty = nothing.
std::string Warning(const TopData& data, const TopOutage& outage) {
  if (outage.since_us != 0) {
    return absl::StrCat("no answer since ", ClockText(outage.since_us), ": ", outage.reason);
  }
  const bool is_running =
      std::any_of(data.trials.begin(), data.trials.end(),
                  [](const TopTrial& top) { return top.trial.state() == v1::TRIAL_STATE_RUNNING; });
  const std::int64_t newest_us = NewestUs(data);
  const std::int64_t quiet_us = data.answered_time_us - newest_us;
  std::vector<std::string> words;
  if (data.machine.empty() && IsRestrained(data.trials.front().profiling)) {
    words.push_back("by request, " + ProfilingWords(data.trials.front().profiling));
  }
  if (is_running && newest_us != 0 && quiet_us >= kQuietUs) {
    words.push_back(
        absl::StrCat("no sample for ", SecondsText(static_cast<double>(quiet_us) * 1e-6)));
  }
  return absl::StrJoin(words, " · ");
}

bool OnDeviceClock(const Timing& timing) {
  const auto clock = timing.labels().find("clock");
  return clock != timing.labels().end() && clock->second == "device";
}

struct Share {
  std::string name;
  double share = 0;
  double mean_seconds = 0;
  double p95_seconds = NAN;
};

// Of one rank; the largest first, what lies in no scope last.
std::vector<Share> SharesOf(const TopTrial& top, const RankSummary& rank) {
  std::vector<Share> shares;
  for (const Timing& timing : top.timings.timings()) {
    if (timing.rank() != rank.rank() || !timing.in_step() || OnDeviceClock(timing) ||
        timing.name() == "step") {
      continue;
    }
    const bool has_quantiles = timing.quantiles_absent() == v1::ABSENCE_REASON_UNSPECIFIED;
    shares.push_back({timing.name(), timing.share(), timing.mean_seconds(),
                      has_quantiles ? timing.p95_seconds() : NAN});
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const Share& a, const Share& b) { return a.share > b.share; });
  if (shares.size() > kScopesMax) {
    Share rest{absl::StrCat(shares.size() - kScopesMax, " more scopes"), 0, NAN, NAN};
    for (std::size_t i = kScopesMax; i < shares.size(); ++i) rest.share += shares[i].share;
    shares.resize(kScopesMax);
    shares.push_back(std::move(rest));
  }
  const double steps = static_cast<double>(std::max<std::int64_t>(rank.steps(), 1));
  shares.push_back({"unaccounted", rank.unaccounted_share(), rank.unaccounted_seconds() / steps});
  return shares;
}

class StepTable {
 public:
  StepTable(std::vector<Share> shares, const TopLook& look)
      : shares_(std::move(shares)), look_(look) {
    int longest = 0;
    for (const Share& share : shares_) longest = std::max(longest, ColumnsOf(share.name));
    name_ = std::clamp(longest, 11, std::clamp(look.columns * 2 / 5, 16, 40));
    has_mean_ = look.columns >= 50;
    has_p95_ = look.columns >= 70;
    seconds_at_ =
        look.columns - (has_mean_ ? kSecondsColumns : 0) - (has_p95_ ? kSecondsColumns + 1 : 0);
    bar_at_ = 2 + name_ + 1 + kPercentColumns + 2;
    bar_ = std::clamp(seconds_at_ - bar_at_ - 1, 0, 40);
  }

  void AddLines(const std::string& span, std::vector<std::string>& lines) const {
    lines.emplace_back();
    TopLine title(look_);
    title.Add("Share of the step", Tone::kBold);
    title.PadTo(title.column() + 2).Add(span, Tone::kDim);
    if (has_mean_ && title.column() + 2 < seconds_at_) {
      title.PadTo(seconds_at_).AddRight("mean", kSecondsColumns, Tone::kDim);
      if (has_p95_) title.AddRight("p95", kSecondsColumns + 1, Tone::kDim);
    }
    lines.push_back(title.Take());
    std::vector<double> values;
    for (const Share& share : shares_) values.push_back(share.share);
    const std::vector<std::string> percents = PercentTexts(values);
    for (std::size_t i = 0; i < shares_.size(); ++i) lines.push_back(LineOf(i, percents[i]));
  }

 private:
  std::string LineOf(std::size_t i, const std::string& percent) const {
    const Share& share = shares_[i];
    const bool is_scope = i + 1 < shares_.size();
    TopLine line(look_);
    line.PadTo(2).Add(share.name, is_scope ? Tone::kPlain : Tone::kDim, name_);
    line.PadTo(2 + name_ + 1).AddRight(percent, kPercentColumns);
    if (bar_ > 0) {
      line.PadTo(bar_at_).Add(MeterText(share.share, bar_, look_.charset),
                              is_scope ? Tone::kAccent : Tone::kDim);
    }
    const auto seconds = [](double value) {
      return std::isnan(value) ? std::string() : SecondsText(value);
    };
    line.PadTo(seconds_at_);
    if (has_mean_) line.AddRight(seconds(share.mean_seconds), kSecondsColumns);
    if (has_p95_) line.AddRight(seconds(share.p95_seconds), kSecondsColumns + 1);
    return line.Take();
  }

  const std::vector<Share> shares_;
  const TopLook& look_;
  int name_ = 0;
  bool has_mean_ = false;
  bool has_p95_ = false;
  int seconds_at_ = 0;
  int bar_at_ = 0;
  int bar_ = 0;
};

void AddTrial(const TopTrial& top, const TopLook& look, std::vector<std::string>& lines) {
  lines.push_back(TopLine(look).Add(ProgressText(top), Tone::kPlain).Take());
  if (const std::string ranks = RanksText(top); !ranks.empty()) {
    lines.push_back(TopLine(look).Add(ranks, Tone::kDim).Take());
  }
  const RankSummary* rank = LowestRank(top);
  if (rank == nullptr) return;
  const std::string span = !top.is_recent ? "all steps"
                           : top.trial.state() == v1::TRIAL_STATE_RUNNING
                               ? absl::StrCat("last ", kTopStepSeconds, " s")
                               : absl::StrCat("last ", kTopStepSeconds, " s before its end");
  StepTable(SharesOf(top, *rank), look).AddLines(span, lines);
}

void AddTrialsOfMachine(const TopData& data, const TopLook& look, std::vector<std::string>& lines) {
  lines.emplace_back();
  lines.push_back(TopLine(look).Add("Trials here", Tone::kBold).Take());
  for (const TopTrial& top : data.trials) {
    TopLine line(look);
    line.PadTo(2).Add(TrialName(top.trial), Tone::kPlain, look.columns / 2);
    line.PadTo(line.column() + 2).Add(ProgressText(top), Tone::kDim);
    lines.push_back(line.Take());
  }
}

std::string HiddenText(int above, int below) {
  if (above == 0) return absl::StrCat(below, " more lines below");
  if (below == 0) return absl::StrCat(above, " more lines above");
  return absl::StrCat(above, " more lines above, ", below, " below");
}

}  // namespace

std::vector<std::string> TopFrame(const TopData& data, const TopOutage& outage,
                                  const TopLook& look_given) {
  TopLook look = look_given;
  look.columns = std::clamp(look.columns, kColumnsMin, kColumnsMax);
  std::vector<std::string> lines = {HeadLine(data, look)};
  if (const std::string warning = Warning(data, outage); !warning.empty()) {
    lines.push_back(TopLine(look).Add(warning, Tone::kWarn).Take());
  }
  if (data.machine.empty()) {
    AddTrial(data.trials.front(), look, lines);
  } else {
    AddTrialsOfMachine(data, look, lines);
  }
  for (std::string& line : TopMetricLines(data, look)) lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> TopWindow(std::vector<std::string> lines, int rows, const TopLook& look,
                                   int& skip) {
  STEPWELL_CHECK(rows > 0);
  const int count = static_cast<int>(lines.size());
  // The first line and the count of what is hidden stay where they are.
  const int room = std::max(rows - 2, 0);
  skip = count <= rows ? 0 : std::clamp(skip, 0, count - 1 - room);
  if (count <= rows) return lines;
  const auto first = lines.begin() + 1;
  lines.erase(first + skip + room, lines.end());
  lines.erase(first, first + skip);
  const std::string hidden = HiddenText(skip, count - 1 - room - skip);
  if (rows > 1) lines.push_back(TopLine(look).Add(hidden, Tone::kDim).Take());
  return lines;
}

}  // namespace stepwell::cli
