#include "client/cli/compare_scopes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/terminal.h"
#include "client/cli/words.h"

namespace stepwell::cli {
namespace {

using Series = v1::CompareTrialsResponse::ComparedSeries;
using Labels = std::map<std::string, std::string>;

constexpr char kStep[] = "step";
constexpr char kSeconds[] = "seconds";
// What sums leave of nothing.
constexpr double kNothing = 1e-12;

std::string LabelOf(const Series& series, const char* name) {
  const auto found = series.key().labels().find(name);
  return found == series.key().labels().end() ? std::string() : found->second;
}

bool OnDeviceClock(const Series& series) { return LabelOf(series, "clock") == "device"; }

double TotalOf(const Series& series, int side) {
  const auto& of_trial = series.sides(side);
  return of_trial.mean() * static_cast<double>(of_trial.count());
}

// Where no unit is told they are the recorder's.
bool InSeconds(const Series& series, int side) {
  const std::string& unit = UnitOf(series, side);
  return unit.empty() || unit == kSeconds;
}

bool HasSeconds(const Series& series, int side) {
  return series.sides(side).count() > 0 && InSeconds(series, side);
}

// The scopes of one rank, or of all where ranks are folded together.
struct Place {
  const Series* step = nullptr;
  std::vector<const Series*> scopes;
};
using Places = std::map<std::pair<std::string, std::string>, Place>;

Places PlacesOf(const v1::CompareTrialsResponse& answer) {
  Places places;
  for (const Series& series : answer.series()) {
    if (!IsScope(series) || OnDeviceClock(series)) continue;
    Place& place = places[{LabelOf(series, "rank"), LabelOf(series, "agent")}];
    if (series.key().name() == kStep && place.step == nullptr) {
      place.step = &series;
    } else {
      place.scopes.push_back(&series);
    }
  }
  return places;
}

// Own time of each scope of one trial, by its place in `scopes`; what is in none at the end.
std::vector<double> OwnTimes(const Place& place, int side) {
  std::map<std::pair<std::string, Labels>, std::size_t> at;
  const auto labels = [](const Series& series) {
    return Labels(series.key().labels().begin(), series.key().labels().end());
  };
  for (std::size_t i = 0; i < place.scopes.size(); ++i) {
    const Series& scope = *place.scopes[i];
    if (HasSeconds(scope, side)) at[{scope.key().name(), labels(scope)}] = i;
  }
  std::vector<double> own(place.scopes.size() + 1, 0);
  own.back() = HasSeconds(*place.step, side) ? TotalOf(*place.step, side) : 0;
  for (const auto& [key, i] : at) {
    const double total = TotalOf(*place.scopes[i], side);
    own[i] += total;
    std::size_t inside = place.scopes.size();
    std::string path = key.first;
    for (std::size_t slash; (slash = path.rfind('/')) != std::string::npos;) {
      path.resize(slash);
      // With the same labels, else without labels, else the first.
      auto around = at.find({path, key.second});
      if (around == at.end()) around = at.lower_bound({path, {}});
      if (around == at.end() || around->first.first != path) continue;
      inside = around->second;
      break;
    }
    own[inside] -= total;
  }
  return own;
}

std::string NameOf(const Series& series) {
  const std::string labels = LabelsText(series.key().labels(), {{"clock", "device"}});
  return absl::StrCat(Printable(series.key().name()), labels.empty() ? "" : "  ", labels);
}

// `step`, where it is given, tells how many steps a scope's total is spread over.
double ChangeOf(const Series& series, const Series* step) {
  const auto per_step = [&](int side) {
    if (step == nullptr) return series.sides(side).mean();
    const auto count = static_cast<double>(step->sides(side).count());
    return count > 0 ? TotalOf(series, side) / count : 0;
  };
  double change = 0;
  for (int i = 1; i < series.sides_size(); ++i) {
    if (UnitDiffers(series, i)) continue;
    change = std::max(change, std::abs(per_step(i) - per_step(0)));
  }
  return change;
}

ScopeLine LineOf(const Series& series, const Series* step) {
  ScopeLine line{.name = NameOf(series), .sides = {}, .change_seconds = ChangeOf(series, step)};
  for (int i = 0; i < series.sides_size(); ++i) {
    ScopeSide& side = line.sides.emplace_back();
    if (!InSeconds(series, i)) side.unit = UnitOf(series, i);
    if (series.sides(i).count() > 0) side.mean = series.sides(i).mean();
    side.difference = DifferenceOf(series, i);
    side.ratio = RatioOf(series, i);
    side.unit_differs = UnitDiffers(series, i);
  }
  return line;
}

ScopeLine UnaccountedLine(const Place& place, const std::vector<std::vector<double>>& own) {
  const std::string labels = LabelsText(place.step->key().labels());
  ScopeLine line{.name = absl::StrCat("unaccounted", labels.empty() ? "" : "  ", labels),
                 .sides = std::vector<ScopeSide>(own.size()),
                 .change_seconds = 0};
  for (std::size_t i = 0; i < own.size(); ++i) {
    const auto& step = place.step->sides(static_cast<int>(i));
    if (!HasSeconds(*place.step, static_cast<int>(i))) continue;
    const double left = own[i].back() / static_cast<double>(step.count());
    ScopeSide& side = line.sides[i];
    side.mean = std::abs(left) < kNothing ? 0 : left;
    const ScopeSide& first = line.sides.front();
    if (i == 0 || !first.mean) continue;
    side.difference = *side.mean - *first.mean;
    if (*first.mean > 0) side.ratio = *side.mean / *first.mean;
  }
  return line;
}

void AddShares(const Place& place, const std::vector<std::vector<double>>& own, std::size_t at,
               ScopeLine& line) {
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (!HasSeconds(*place.step, static_cast<int>(i)) || line.sides[i].unit != kSeconds) continue;
    const double step_seconds = TotalOf(*place.step, static_cast<int>(i));
    if (!line.sides[i].mean || step_seconds <= 0) continue;
    const double share = own[i][at] / step_seconds;
    line.sides[i].share = std::abs(share) < kNothing ? 0 : share;
  }
}

void AddPlace(const Place& place, bool in_steps, ScopeLines& lines) {
  const Series* step = in_steps ? place.step : nullptr;
  std::vector<std::vector<double>> own;
  for (int i = 0; step != nullptr && i < step->sides_size(); ++i) own.push_back(OwnTimes(place, i));
  if (place.step != nullptr) {
    ScopeLine& line = lines.steps.emplace_back(LineOf(*place.step, step));
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (HasSeconds(*place.step, static_cast<int>(i))) line.sides[i].share = 1;
    }
  }
  for (std::size_t at = 0; at < place.scopes.size(); ++at) {
    ScopeLine& line = lines.scopes.emplace_back(LineOf(*place.scopes[at], step));
    if (step != nullptr) AddShares(place, own, at, line);
  }
  if (step == nullptr || place.scopes.empty()) return;
  ScopeLine& line = lines.unaccounted.emplace_back(UnaccountedLine(place, own));
  AddShares(place, own, place.scopes.size(), line);
}

void SortByChange(std::vector<ScopeLine>& lines) {
  std::stable_sort(lines.begin(), lines.end(), [](const ScopeLine& a, const ScopeLine& b) {
    return a.change_seconds > b.change_seconds;
  });
}

}  // namespace

bool IsScope(const Series& series) {
  const std::string& name = series.key().name();
  const std::string suffix = ".count";
  const bool counts = name.size() > suffix.size() &&
                      name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0;
  return series.key().metric_group() == "timing" &&
         (series.kind() == v1::SERIES_KIND_DURATION ||
          (series.kind() == v1::SERIES_KIND_UNSPECIFIED && !counts));
}

const std::string& UnitOf(const Series& series, int side) {
  // A master of before sides had units tells that of all alone.
  return series.unit().empty() ? series.sides(side).unit() : series.unit();
}

bool UnitDiffers(const Series& series, int side) {
  const auto& first = series.sides(0);
  const auto& other = series.sides(side);
  if (side == 0 || first.count() == 0 || other.count() == 0) return false;
  if (UnitOf(series, 0) != UnitOf(series, side)) return true;
  if (!UnitOf(series, 0).empty()) return false;
  // Both have none, or one of them several: then no difference is told though there is one.
  return other.mean_difference() == 0 && other.mean_ratio() == 0 &&
         (first.mean() != 0 || other.mean() != 0);
}

std::optional<double> DifferenceOf(const Series& series, int side) {
  if (side == 0 || series.sides(0).count() == 0 || series.sides(side).count() == 0) {
    return std::nullopt;
  }
  if (UnitDiffers(series, side)) return std::nullopt;
  return series.sides(side).mean_difference();
}

std::optional<double> RatioOf(const Series& series, int side) {
  if (!DifferenceOf(series, side) || series.sides(0).mean() == 0) return std::nullopt;
  return series.sides(side).mean_ratio();
}

ScopeLines ScopesOf(const v1::CompareTrialsResponse& answer, bool in_steps) {
  ScopeLines lines;
  for (const auto& [labels, place] : PlacesOf(answer)) AddPlace(place, in_steps, lines);
  for (const Series& series : answer.series()) {
    if (IsScope(series) && OnDeviceClock(series)) {
      lines.device.push_back(LineOf(series, nullptr));
    }
  }
  SortByChange(lines.scopes);
  SortByChange(lines.device);
  return lines;
}

}  // namespace stepwell::cli
