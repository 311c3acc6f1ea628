#include "client/cli/compare_view.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/compare_scopes.h"
#include "client/cli/completeness_text.h"
#include "client/cli/proto_json.h"
#include "client/cli/table.h"
#include "client/cli/units.h"
#include "client/cli/words.h"
#include "fmt/format.h"

namespace stepwell::cli {
namespace {

using Series = v1::CompareTrialsResponse::ComparedSeries;

constexpr char kIndent[] = "  ";
constexpr char kNone[] = "-";
constexpr char kUnitDiffers[] = "units differ";
// What changes by less is as good as the same, and not coloured.
constexpr double kAlike = 0.01;

// A, B, ...: at most 16.
std::string Letter(std::size_t trial) { return std::string(1, static_cast<char>('A' + trial)); }

std::string RatioText(double ratio) {
  const double size = std::abs(ratio);
  if (!std::isfinite(ratio) || (size < 0.01 && size > 0)) return fmt::format("{:.3g}", ratio);
  if (size < 10) return fmt::format("{:.3f}", ratio);
  if (size < 1000) return fmt::format("{:.1f}", ratio);
  return size < 1e15 ? CountText(std::llround(ratio)) : fmt::format("{:.3g}", ratio);
}

std::string DifferenceText(double difference, const std::string& unit) {
  // Of percents it is no percentage.
  const bool points = unit == "percent";
  if (points && std::abs(difference) < 0.05) return "0.0 pp";
  const std::string text =
      points ? fmt::format("{:.1f} pp", difference) : ValueText(difference, unit);
  return difference > 0 ? "+" + text : text;
}

// What one trial has in a line: texts, and how the change is coloured.
struct SideCells {
  std::string mean = kNone;
  std::string share;
  std::string difference = kNone;
  std::string ratio = kNone;
  Tone tone = Tone::kPlain;
};

// Lines of several trials: of two beside each other, of more below each other.
class SideTable {
 public:
  enum class Shares { kLeftOut, kShown };

  SideTable(std::vector<Table::Column> heads, std::size_t trial_count, Shares shares)
      : head_count_(heads.size()),
        trial_count_(trial_count),
        table_(Columns(std::move(heads), trial_count, shares)) {}

  void Add(std::vector<std::string> heads, const std::vector<SideCells>& sides) {
    if (trial_count_ > 2) return AddBelow(std::move(heads), sides);
    std::vector<std::string> cells = std::move(heads);
    for (const SideCells& side : sides) {
      cells.push_back(side.mean);
      cells.push_back(side.share);
    }
    AddChange(std::move(cells), sides.back());
  }
  std::string Text(const Paint& paint) const { return table_.Text(paint, kIndent); }

 private:
  static std::vector<Table::Column> Columns(std::vector<Table::Column> columns,
                                            std::size_t trial_count, Shares shares) {
    const std::string share = shares == Shares::kShown ? "share" : "";
    if (trial_count > 2) {
      columns.push_back({"trial"});
      columns.push_back({"mean", Align::kRight});
      columns.push_back({share, Align::kRight});
    } else {
      for (std::size_t i = 0; i < trial_count; ++i) {
        columns.push_back({Letter(i), Align::kRight});
        columns.push_back({share, Align::kRight});
      }
    }
    columns.push_back({"difference", Align::kRight});
    columns.push_back({"ratio", Align::kRight});
    return columns;
  }

  void AddBelow(std::vector<std::string> heads, const std::vector<SideCells>& sides) {
    for (std::size_t i = 0; i < sides.size(); ++i) {
      std::vector<std::string> cells = heads;
      cells.insert(cells.end(), {Letter(i), sides[i].mean, sides[i].share});
      if (i == 0) {
        cells.resize(cells.size() + 2);
        table_.Add(std::move(cells));
      } else {
        AddChange(std::move(cells), sides[i]);
      }
      heads.assign(head_count_, "");
    }
  }

  void AddChange(std::vector<std::string> cells, const SideCells& side) {
    const std::size_t at = cells.size();
    cells.push_back(side.difference);
    cells.push_back(side.ratio);
    table_.Add(std::move(cells));
    table_.Tint(at, side.tone);
    table_.Tint(at + 1, side.tone);
  }

  const std::size_t head_count_;
  const std::size_t trial_count_;
  Table table_;
};

std::string TrialsTable(const CompareData& data, const Paint& paint) {
  Table table({{""},
               {"trial"},
               {"state"},
               {"steps", Align::kRight},
               {"samples", Align::kRight},
               {"length", Align::kRight}});
  for (int i = 0; i < data.answer.trials_size(); ++i) {
    const v1::Trial& trial = data.answer.trials(i).trial();
    std::string steps = kNone;
    for (const Series& series : data.answer.series()) {
      if (!IsScope(series) || series.key().name() != "step") continue;
      // Over all ranks; where they stay apart, of the first.
      steps = CountText(static_cast<std::int64_t>(series.sides(i).count()));
      break;
    }
    const std::int64_t ranks = data.rank_counts[static_cast<std::size_t>(i)];
    if (ranks > 1 && steps != kNone) absl::StrAppend(&steps, " of ", Plural(ranks, "rank"));
    const std::int64_t length_us = trial.last_sample_time_us() - trial.first_sample_time_us();
    table.Add({Letter(static_cast<std::size_t>(i)), TrialName(trial), StateWord(trial.state()),
               steps, CountText(trial.sample_count()),
               trial.first_sample_time_us() == 0
                   ? kNone
                   : SecondsText(static_cast<double>(length_us) * 1e-6)});
    table.Tint(0, Tone::kBold);
    table.Tint(2, StateTone(trial.state()));
  }
  return table.Text(paint);
}

std::string RangeText(const CompareData& data) {
  const v1::CompareTrialsResponse& answer = data.answer;
  if (data.axis == v1::COMPARE_AXIS_TIME_SINCE_START) {
    const std::string length = SecondsText(static_cast<double>(answer.width()) * 1e-6);
    if (answer.start() == 0) return absl::StrCat("the first ", length, " of each");
    return absl::StrCat(length, " from ", SecondsText(static_cast<double>(answer.start()) * 1e-6),
                        " on");
  }
  return absl::StrCat("batches ", CountText(answer.start()), " ... ",
                      CountText(answer.start() + answer.width() - 1));
}

std::string MoreText(std::size_t all, std::size_t shown, const char* noun) {
  if (all <= shown) return {};
  return absl::StrCat(kIndent, CountText(static_cast<std::int64_t>(all - shown)), " more ", noun,
                      " changed less: --limit 0 shows all.\n");
}

// A longer time is worse.
Tone ToneOfTime(const std::optional<double>& ratio) {
  if (!ratio || !std::isfinite(*ratio) || std::abs(*ratio - 1) < kAlike) return Tone::kPlain;
  return *ratio > 1 ? Tone::kBad : Tone::kGood;
}

std::vector<SideCells> CellsOf(const ScopeLine& line) {
  std::vector<SideCells> cells;
  for (const ScopeSide& side : line.sides) {
    SideCells& cell = cells.emplace_back();
    if (side.mean) cell.mean = ValueText(*side.mean, side.unit);
    if (side.share) cell.share = fmt::format("{:.1f} %", *side.share * 100);
    if (side.difference) cell.difference = DifferenceText(*side.difference, side.unit);
    if (side.unit_differs) cell.difference = kUnitDiffers;
    if (side.ratio) cell.ratio = RatioText(*side.ratio);
    cell.tone = ToneOfTime(side.ratio);
  }
  return cells;
}

std::string ScopesTable(const std::vector<std::vector<ScopeLine>>& parts, std::size_t trial_count,
                        const Paint& paint) {
  SideTable table({{"scope"}}, trial_count, SideTable::Shares::kShown);
  for (const std::vector<ScopeLine>& lines : parts) {
    for (const ScopeLine& line : lines) table.Add({line.name}, CellsOf(line));
  }
  return table.Text(paint);
}

std::vector<ScopeLine> Front(const std::vector<ScopeLine>& lines, std::size_t lines_max) {
  return {lines.begin(),
          lines.begin() + static_cast<std::ptrdiff_t>(std::min(lines_max, lines.size()))};
}

std::string ScopesText(const CompareData& data, std::size_t lines_max, const Paint& paint) {
  const bool in_steps = data.axis != v1::COMPARE_AXIS_TIME_SINCE_START;
  const ScopeLines lines = ScopesOf(data.answer, in_steps);
  const auto trial_count = static_cast<std::size_t>(data.answer.trials_size());
  std::string text;
  if (!lines.steps.empty() || !lines.scopes.empty()) {
    absl::StrAppend(
        &text, "\n", paint.Bold(in_steps ? "Where a step's time goes" : "Timings"), "  ",
        paint.Dim(absl::StrCat(RangeText(data), in_steps ? ", mean per step" : ", mean")), "\n",
        ScopesTable({lines.steps, Front(lines.scopes, lines_max), lines.unaccounted}, trial_count,
                    paint),
        MoreText(lines.scopes.size(), lines_max, "scopes"));
  }
  if (!lines.device.empty()) {
    absl::StrAppend(&text, "\n", kIndent, paint.Bold("on the device's clock"), "\n",
                    ScopesTable({Front(lines.device, lines_max)}, trial_count, paint),
                    MoreText(lines.device.size(), lines_max, "scopes"));
  }
  return text;
}

// How far the farthest trial is from the first; one that has none is farthest.
double ChangeOf(const Series& series) {
  double change = 0;
  for (int i = 1; i < series.sides_size(); ++i) {
    const std::optional<double> ratio = RatioOf(series, i);
    const bool alike = DifferenceOf(series, i) == 0.0;
    if (!alike && !ratio) return std::numeric_limits<double>::infinity();
    if (ratio) change = std::max(change, std::abs(*ratio - 1));
  }
  return change;
}

std::vector<const Series*> MetricsIn(const v1::CompareTrialsResponse& answer, bool system) {
  std::vector<const Series*> metrics;
  for (const Series& series : answer.series()) {
    if (series.key().metric_group() == "timing") continue;
    if (IsSystemGroup(series.key().metric_group()) == system) metrics.push_back(&series);
  }
  return metrics;
}

// The `lines_max` that changed most, in their order.
std::vector<const Series*> MostChanged(const std::vector<const Series*>& metrics,
                                       std::size_t lines_max) {
  if (metrics.size() <= lines_max) return metrics;
  std::vector<const Series*> by_change = metrics;
  std::stable_sort(by_change.begin(), by_change.end(),
                   [](const Series* a, const Series* b) { return ChangeOf(*a) > ChangeOf(*b); });
  by_change.resize(lines_max);
  const std::set<const Series*> chosen(by_change.begin(), by_change.end());
  std::vector<const Series*> in_order;
  for (const Series* series : metrics) {
    if (chosen.contains(series)) in_order.push_back(series);
  }
  return in_order;
}

std::vector<SideCells> CellsOf(const Series& series) {
  std::vector<SideCells> cells;
  for (int i = 0; i < series.sides_size(); ++i) {
    SideCells& cell = cells.emplace_back();
    const std::string& unit = UnitOf(series, i);
    if (series.sides(i).count() > 0) cell.mean = ValueText(series.sides(i).mean(), unit);
    if (const auto difference = DifferenceOf(series, i)) {
      cell.difference = DifferenceText(*difference, unit);
    } else if (UnitDiffers(series, i)) {
      cell.difference = kUnitDiffers;
    }
    if (const auto ratio = RatioOf(series, i)) cell.ratio = RatioText(*ratio);
  }
  return cells;
}

std::string MetricsText(const char* title, const CompareData& data, bool system,
                        std::size_t lines_max, const Paint& paint) {
  const std::vector<const Series*> metrics = MetricsIn(data.answer, system);
  if (metrics.empty()) return {};
  SideTable table({{"group"}, {"metric"}, {"labels"}},
                  static_cast<std::size_t>(data.answer.trials_size()), SideTable::Shares::kLeftOut);
  std::string group_before;
  for (const Series* series : MostChanged(metrics, lines_max)) {
    const std::string group = Printable(series->key().metric_group());
    table.Add({group == group_before ? "" : group, Printable(series->key().name()),
               LabelsText(series->key().labels())},
              CellsOf(*series));
    group_before = group;
  }
  return absl::StrCat("\n", paint.Bold(title), "  ",
                      paint.Dim(absl::StrCat(RangeText(data), ", mean")), "\n", table.Text(paint),
                      MoreText(metrics.size(), lines_max, "series"));
}

std::string CompletenessLines(const v1::CompareTrialsResponse& answer, const Paint& paint) {
  std::string text;
  for (int i = 0; i < answer.trials_size(); ++i) {
    const v1::Completeness& completeness = answer.trials(i).completeness();
    const std::string words = CompletenessText(completeness);
    absl::StrAppend(&text, Letter(static_cast<std::size_t>(i)), "  ",
                    completeness.contiguous() ? paint.Green(words) : paint.Yellow(words), "\n");
  }
  return absl::StrCat("\n", text);
}

}  // namespace

std::string CompareText(const CompareData& data, std::size_t lines_max, const Paint& paint) {
  return absl::StrCat(TrialsTable(data, paint), ScopesText(data, lines_max, paint),
                      MetricsText("Training", data, false, lines_max, paint),
                      MetricsText("Machine", data, true, lines_max, paint),
                      CompletenessLines(data.answer, paint));
}

std::string CompareJson(const CompareData& data) {
  return ToJson(data.answer).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace stepwell::cli
