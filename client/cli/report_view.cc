#include "client/cli/report_view.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/completeness_text.h"
#include "client/cli/proto_json.h"
#include "client/cli/table.h"
#include "client/cli/units.h"
#include "client/cli/words.h"
#include "fmt/format.h"

namespace stepwell::cli {
namespace {

using Timing = v1::SummarizeTimingsResponse::Timing;
using RankSummary = v1::SummarizeTimingsResponse::RankSummary;
using BucketSeries = v1::QueryBucketsResponse::BucketSeries;

constexpr int kBarColumns = 20;
constexpr char kIndent[] = "  ";

std::string HeadText(const ReportData& data, const Paint& paint) {
  const v1::Trial& trial = data.trial;
  std::vector<std::string> facts;
  // The name of one without a name says its number already.
  if (!trial.external_id().empty()) facts.push_back(absl::StrCat("trial ", trial.trial_id()));
  if (trial.first_sample_time_us() != 0) {
    facts.push_back(TimeText(trial.first_sample_time_us()));
    const std::int64_t span_us = trial.last_sample_time_us() - trial.first_sample_time_us();
    facts.push_back(SecondsText(static_cast<double>(span_us) * 1e-6));
  }
  facts.push_back(Plural(trial.attempt_count(), "attempt"));
  facts.push_back(Plural(trial.writer_count(), "writer"));
  facts.push_back(absl::StrCat(CountText(trial.series_count()), " series"));
  facts.push_back(Plural(trial.sample_count(), "sample"));
  std::string text =
      absl::StrCat(paint.Bold(TrialName(trial)), "  ", StateText(trial.state(), paint), "\n",
                   paint.Dim(absl::StrJoin(facts, " · ")), "\n");
  if (IsRestrained(data.profiling)) {
    absl::StrAppend(&text,
                    paint.Yellow(absl::StrCat("By request, ", ProfilingWords(data.profiling))),
                    "; 'stepwell admin profiling TRIAL on' takes it back.\n");
  }
  return text;
}

bool OnDeviceClock(const Timing& timing) {
  const auto clock = timing.labels().find("clock");
  return clock != timing.labels().end() && clock->second == "device";
}

std::string ScopeName(const Timing& timing) {
  const std::string labels = LabelsText(timing.labels(), {{"clock", "device"}});
  return absl::StrCat(Printable(timing.name()), labels.empty() ? "" : absl::StrCat("  ", labels));
}

// One line of the step's division: a scope, or what lies in none.
struct Share {
  std::string name;
  const Timing* timing = nullptr;  // null = unaccounted
  double share = 0;
  double self_seconds = 0;
};

std::vector<Share> SharesOf(const std::vector<const Timing*>& timings, const RankSummary& rank) {
  std::vector<Share> shares;
  for (const Timing* timing : timings) {
    if (!timing->in_step() || OnDeviceClock(*timing) || timing->name() == "step") continue;
    shares.push_back({ScopeName(*timing), timing, timing->share(), timing->self_seconds()});
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const Share& a, const Share& b) { return a.share > b.share; });
  shares.push_back({"unaccounted", nullptr, rank.unaccounted_share(), rank.unaccounted_seconds()});
  return shares;
}

// "own" is a column only where scopes lie inside others.
bool AnyNested(const std::vector<Share>& shares) {
  return std::any_of(shares.begin(), shares.end(), [](const Share& share) {
    return share.timing != nullptr &&
           std::abs(share.self_seconds - share.timing->total_seconds()) > 1e-12;
  });
}

void AddTimingCells(const Timing& timing, std::vector<std::string>& cells) {
  cells.push_back(SecondsText(timing.mean_seconds()));
  if (timing.quantiles_absent() == v1::ABSENCE_REASON_UNSPECIFIED) {
    const char* about = timing.quantiles_exact() ? "" : "~";
    for (const double seconds :
         {timing.p50_seconds(), timing.p95_seconds(), timing.p99_seconds()}) {
      cells.push_back(about + SecondsText(seconds));
    }
  } else {
    cells.insert(cells.end(), 3, "removed");
  }
}

Table StepTable(const std::vector<Share>& shares, const Timing* step) {
  const bool nested = AnyNested(shares);
  Table table({{"scope"},
               {"share", Align::kRight},
               {""},
               {nested ? "own time" : "", Align::kRight},
               {"total", Align::kRight},
               {"mean", Align::kRight},
               {"p50", Align::kRight},
               {"p95", Align::kRight},
               {"p99", Align::kRight},
               {"steps", Align::kRight},
               {"count", Align::kRight}});
  std::vector<double> values;
  double largest = 0;
  for (const Share& share : shares) {
    values.push_back(share.share);
    largest = std::max(largest, share.share);
  }
  const std::vector<std::string> percents = PercentTexts(values);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const Share& share = shares[i];
    const double bar = largest > 0 ? share.share / largest : 0;
    std::vector<std::string> cells = {share.name, percents[i], BarText(bar, kBarColumns),
                                      nested ? SecondsText(share.self_seconds) : ""};
    if (share.timing == nullptr) {
      cells.push_back(SecondsText(share.self_seconds));
      cells.resize(11);
    } else {
      cells.push_back(SecondsText(share.timing->total_seconds()));
      AddTimingCells(*share.timing, cells);
      cells.push_back(CountText(share.timing->steps()));
      cells.push_back(CountText(share.timing->count()));
    }
    table.Add(std::move(cells));
  }
  if (step != nullptr) {
    std::vector<std::string> cells = {"step", "100.0 %", "",
                                      nested ? SecondsText(step->total_seconds()) : "",
                                      SecondsText(step->total_seconds())};
    AddTimingCells(*step, cells);
    cells.push_back(CountText(step->steps()));
    cells.push_back(CountText(step->count()));
    table.Add(std::move(cells));
  }
  return table;
}

// Timings without share: outside of steps, or on the device's clock.
std::string PlainTimings(const std::vector<const Timing*>& timings, bool in_step,
                         const Paint& paint) {
  Table table({{"scope"},
               {"total", Align::kRight},
               {"mean", Align::kRight},
               {"p50", Align::kRight},
               {"p95", Align::kRight},
               {"p99", Align::kRight},
               {"max", Align::kRight},
               {"count", Align::kRight}});
  for (const Timing* timing : timings) {
    if (timing->in_step() != in_step || (in_step && !OnDeviceClock(*timing))) continue;
    std::vector<std::string> cells = {ScopeName(*timing), SecondsText(timing->total_seconds())};
    AddTimingCells(*timing, cells);
    cells.push_back(SecondsText(timing->max_seconds()));
    cells.push_back(CountText(timing->count()));
    table.Add(std::move(cells));
  }
  if (table.empty()) return {};
  const char* title = in_step ? "on the device's clock, per step" : "outside the steps";
  return absl::StrCat("\n", kIndent, paint.Bold(title), "\n", table.Text(paint, kIndent));
}

std::string RankTitle(std::int32_t rank) {
  return rank < 0 ? std::string("without rank") : absl::StrCat("rank ", rank);
}

// Timings are of one attempt, other metrics of all; a trial of one needs no word for it.
std::string AttemptTitle(const ReportData& data) {
  return data.trial.attempt_count() > 1 ? absl::StrCat(", attempt ", data.timings.attempt()) : "";
}

std::string RankText(const std::string& title, const RankSummary* summary,
                     const std::vector<const Timing*>& timings, const Paint& paint) {
  std::string text;
  if (summary != nullptr) {
    const double mean = summary->step_seconds() / static_cast<double>(summary->steps());
    absl::StrAppend(
        &text, "\n", paint.Bold(absl::StrCat("Where a step's time goes, ", title)), "  ",
        paint.Dim(absl::StrCat(Plural(summary->steps(), "step"), " of ", SecondsText(mean), ", ",
                               SecondsText(summary->step_seconds()), " in all")),
        "\n");
    const Timing* step = nullptr;
    for (const Timing* timing : timings) {
      if (timing->in_step() && timing->name() == "step" && !OnDeviceClock(*timing)) step = timing;
    }
    absl::StrAppend(&text, StepTable(SharesOf(timings, *summary), step).Text(paint, kIndent));
  } else {
    absl::StrAppend(&text, "\n", paint.Bold(absl::StrCat("Timings, ", title)), "\n");
  }
  return absl::StrCat(text, PlainTimings(timings, true, paint),
                      PlainTimings(timings, false, paint));
}

std::map<std::int32_t, std::vector<const Timing*>> ByRank(const ReportData& data,
                                                          const ReportOptions& options) {
  std::map<std::int32_t, std::vector<const Timing*>> ranks;
  for (const Timing& timing : data.timings.timings()) {
    if (!options.rank || timing.rank() == *options.rank) ranks[timing.rank()].push_back(&timing);
  }
  return ranks;
}

std::string TimingsText(const ReportData& data, const ReportOptions& options, const Paint& paint) {
  const auto ranks = ByRank(data, options);
  if (ranks.empty()) {
    return absl::StrCat("\nNo timings",
                        options.rank ? absl::StrCat(" of rank ", *options.rank) : "", ".\n");
  }
  std::string text;
  int shown = 0;
  for (const auto& [rank, timings] : ranks) {
    if (shown++ == options.ranks_max) break;
    const RankSummary* summary = nullptr;
    for (const RankSummary& one : data.timings.ranks()) {
      if (one.rank() == rank) summary = &one;
    }
    absl::StrAppend(&text, RankText(RankTitle(rank) + AttemptTitle(data), summary, timings, paint));
  }
  if (static_cast<int>(ranks.size()) > options.ranks_max) {
    absl::StrAppend(&text, "\n",
                    Plural(static_cast<int>(ranks.size()) - options.ranks_max, "more rank"),
                    ": --rank R shows one, --json all.\n");
  }
  return text;
}

// Labels that every series has with the same value say nothing.
std::map<std::string, std::string> CommonLabels(const std::vector<const BucketSeries*>& metrics) {
  std::map<std::string, std::string> common(metrics[0]->key().labels().begin(),
                                            metrics[0]->key().labels().end());
  for (const BucketSeries* series : metrics) {
    std::erase_if(common, [&](const auto& label) {
      const auto found = series->key().labels().find(label.first);
      return found == series->key().labels().end() || found->second != label.second;
    });
  }
  return common;
}

// The series that bounds the error of `series`: of clock_offset, clock_offset_error of the same machine.
const BucketSeries* ErrorOf(const BucketSeries& series,
                            const std::vector<const BucketSeries*>& metrics) {
  if (series.key().metric_group() != "agent")
    return nullptr;  // a trial's own may be named as it likes
  const std::string name = series.key().name() + "_error";
  for (const BucketSeries* other : metrics) {
    if (other->key().name() == name && other->key().metric_group() == series.key().metric_group() &&
        LabelsText(other->key().labels()) == LabelsText(series.key().labels()) &&
        other->counts(0) > 0) {
      return other;
    }
  }
  return nullptr;
}

std::string MetricsText(const std::string& title, const std::vector<const BucketSeries*>& metrics,
                        const Paint& paint) {
  if (metrics.empty()) return {};
  const std::map<std::string, std::string> common = CommonLabels(metrics);
  Table table({{"group"},
               {"metric"},
               {"labels"},
               {"min", Align::kRight},
               {"mean", Align::kRight},
               {"max", Align::kRight},
               {"last", Align::kRight},
               {"samples", Align::kRight},
               {"NaN", Align::kRight}});
  std::string group_before;
  for (const BucketSeries* series : metrics) {
    const std::string group = Printable(series->key().metric_group());
    const std::uint64_t nan_count = series->nan_counts_size() > 0 ? series->nan_counts(0) : 0;
    const BucketSeries* error = ErrorOf(*series, metrics);
    const auto value = [&](const google::protobuf::RepeatedField<double>& numbers,
                           const google::protobuf::RepeatedField<double>& errors) {
      if (series->counts(0) == 0) return std::string("-");
      // Below what it is known to, a number says nothing but that.
      const bool is_below = error != nullptr && std::abs(numbers.Get(0)) < errors.Get(0);
      return is_below ? "<" + ValueText(errors.Get(0), series->unit())
                      : ValueText(numbers.Get(0), series->unit());
    };
    const BucketSeries& bound = error == nullptr ? *series : *error;
    table.Add({group == group_before ? "" : group, Printable(series->key().name()),
               LabelsText(series->key().labels(), common), value(series->mins(), bound.mins()),
               value(series->means(), bound.means()), value(series->maxs(), bound.maxs()),
               value(series->lasts(), bound.lasts()),
               CountText(static_cast<std::int64_t>(series->counts(0))),
               nan_count == 0 ? "" : CountText(static_cast<std::int64_t>(nan_count))});
    group_before = group;
  }
  std::vector<std::string> shared;
  shared.reserve(common.size());
  for (const auto& [name, label] : common) {
    shared.push_back(Printable(absl::StrCat(name, "=", label)));
  }
  return absl::StrCat("\n", paint.Bold(title),
                      shared.empty() ? "" : "  " + paint.Dim(absl::StrJoin(shared, " ")), "\n",
                      table.Text(paint, kIndent));
}

std::vector<const BucketSeries*> MetricsIn(const ReportData& data, bool system) {
  std::vector<const BucketSeries*> metrics;
  for (const BucketSeries& series : data.metrics) {
    if (series.indexes_size() == 1 && IsSystemGroup(series.key().metric_group()) == system) {
      metrics.push_back(&series);
    }
  }
  return metrics;
}

std::string CompletenessLine(const v1::Completeness& completeness, const Paint& paint) {
  const std::string words = CompletenessText(completeness);
  return absl::StrCat("\n", completeness.contiguous() ? paint.Green(words) : paint.Yellow(words),
                      "\n");
}

}  // namespace

bool HasRank(const ReportData& data, const ReportOptions& options) {
  return !options.rank || !ByRank(data, options).empty();
}

std::string KnownRanksText(const ReportData& data) {
  constexpr std::size_t kStretchesMax = 8;
  std::vector<std::string> stretches;
  std::int32_t first = 0;
  std::int32_t last = 0;
  const auto end_stretch = [&] {
    stretches.push_back(first == last ? absl::StrCat(first) : absl::StrCat(first, " to ", last));
  };
  const auto ranks = ByRank(data, {});
  if (ranks.empty()) return "it has none of any rank";
  first = last = ranks.begin()->first;
  for (const auto& [rank, timings] : ranks) {
    if (rank > last + 1) {
      end_stretch();
      first = rank;
    }
    last = rank;
  }
  end_stretch();
  const std::size_t more = stretches.size() - std::min(stretches.size(), kStretchesMax);
  stretches.resize(stretches.size() - more);
  return absl::StrCat("it has those of rank", ranks.size() == 1 ? " " : "s ",
                      absl::StrJoin(stretches, ", "), more > 0 ? ", ..." : "");
}

std::string ReportText(const ReportData& data, const ReportOptions& options, const Paint& paint) {
  const std::string all = data.trial.attempt_count() > 1 ? ", all attempts" : "";
  return absl::StrCat(HeadText(data, paint), TimingsText(data, options, paint),
                      MetricsText("Training" + all, MetricsIn(data, false), paint),
                      MetricsText("Machine" + all, MetricsIn(data, true), paint),
                      CompletenessLine(data.completeness, paint));
}

std::string ReportJson(const ReportData& data, const ReportOptions& options) {
  nlohmann::ordered_json report = nlohmann::ordered_json::object();
  report["trial"] = ToJson(data.trial);
  report["profiling"] = ToJson(data.profiling);
  report["attempt"] = data.timings.attempt();
  report["ranks"] = nlohmann::ordered_json::array();
  for (const RankSummary& rank : data.timings.ranks()) {
    if (!options.rank || rank.rank() == *options.rank) report["ranks"].push_back(ToJson(rank));
  }
  report["timings"] = nlohmann::ordered_json::array();
  for (const Timing& timing : data.timings.timings()) {
    if (!options.rank || timing.rank() == *options.rank) {
      report["timings"].push_back(ToJson(timing));
    }
  }
  report["metrics"] = nlohmann::ordered_json::array();
  for (const BucketSeries& series : data.metrics) {
    if (series.indexes_size() != 1) continue;
    nlohmann::ordered_json metric = ToJson(series.key());
    const nlohmann::ordered_json all = ToJson(series);
    metric["unit"] = series.unit();
    metric["kind"] = KindWord(series.kind());
    for (const auto& [name, field] :
         {std::pair{"min", "mins"}, std::pair{"mean", "means"}, std::pair{"max", "maxs"},
          std::pair{"last", "lasts"}, std::pair{"count", "counts"}}) {
      metric[name] = all[field][0];
    }
    metric["nan_count"] = series.nan_counts_size() > 0 ? series.nan_counts(0) : 0;
    report["metrics"].push_back(std::move(metric));
  }
  report["completeness"] = ToJson(data.completeness);
  return report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace stepwell::cli
