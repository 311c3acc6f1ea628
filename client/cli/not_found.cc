#include "client/cli/not_found.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/nearest.h"
#include "client/cli/pages.h"
#include "client/cli/terminal.h"
#include "client/cli/units.h"
#include "client/cli/words.h"

namespace stepwell::cli {
namespace {

// So many names a person still reads.
constexpr int kNamesMax = 8;
// Advice is worth ten pages of the master's time.
constexpr std::int64_t kSeriesMax = 100'000;

// "a, b, c, ... (12 in all)".
std::string NamesText(const std::vector<std::string>& names) {
  const auto shown = std::min<std::size_t>(names.size(), kNamesMax);
  std::string text = absl::StrJoin(names.begin(), names.begin() + static_cast<int>(shown), ", ");
  if (shown < names.size()) {
    absl::StrAppend(&text, ", ... (", CountText(static_cast<std::int64_t>(names.size())),
                    " in all)");
  }
  return text;
}

bool Matches(const v1::SeriesKey& key, const v1::SeriesSelector& selector) {
  if (!selector.metric_group().empty() && key.metric_group() != selector.metric_group()) {
    return false;
  }
  if (!selector.name().empty() && key.name() != selector.name()) return false;
  return std::all_of(selector.labels().begin(), selector.labels().end(), [&](const auto& label) {
    const auto found = key.labels().find(label.first);
    return found != key.labels().end() && found->second == label.second;
  });
}

std::string SelectorText(const v1::SeriesSelector& selector) {
  std::vector<std::string> words;
  if (!selector.metric_group().empty()) {
    words.push_back("--group " + Printable(selector.metric_group()));
  }
  if (!selector.name().empty()) words.push_back("--name " + Printable(selector.name()));
  if (!selector.labels().empty()) words.push_back("--label " + LabelsText(selector.labels()));
  return absl::StrJoin(words, " ");
}

// "cpu (4 series), timing (12)".
std::string GroupsText(const std::vector<v1::Series>& series) {
  std::map<std::string, std::int64_t> count_of;
  for (const v1::Series& one : series) ++count_of[one.key().metric_group()];
  std::vector<std::string> groups;
  groups.reserve(count_of.size());
  for (const auto& [group, count] : count_of) {
    groups.push_back(absl::StrCat(Printable(group), " (", CountText(count), " series)"));
  }
  return NamesText(groups);
}

// What the trial has that comes closest: the labels of the name, the names of the group, the groups.
std::string ClosestText(const std::vector<v1::Series>& series, v1::SeriesSelector selector) {
  const auto names_of = [&](const v1::SeriesSelector& wider, const auto& name) {
    std::set<std::string> names;
    for (const v1::Series& one : series) {
      if (Matches(one.key(), wider)) names.insert(name(one));
    }
    return std::vector<std::string>(names.begin(), names.end());
  };
  selector.clear_labels();
  const std::string wanted = selector.name();
  const std::vector<std::string> labels = names_of(selector, [](const v1::Series& one) {
    return one.key().labels().empty() ? "(none)" : LabelsText(one.key().labels());
  });
  if (!labels.empty()) return absl::StrCat("Labels there are: ", NamesText(labels));
  selector.clear_name();
  const std::vector<std::string> all =
      names_of(selector, [](const v1::Series& one) { return one.key().name(); });
  std::vector<std::string> near = NearestNames(wanted, {all.begin(), all.end()});
  if (!near.empty()) {
    for (std::string& name : near) name = Printable(name);
    return absl::StrCat("Near it: ", NamesText(near));
  }
  if (!selector.metric_group().empty()) {
    const std::vector<std::string> names =
        names_of(selector, [](const v1::Series& one) { return Printable(one.key().name()); });
    if (!names.empty()) {
      return absl::StrCat("Names in group ", Printable(selector.metric_group()), ": ",
                          NamesText(names));
    }
  }
  return absl::StrCat("Metric groups of the trial: ", GroupsText(series));
}

// As it is given on a command line.
std::string ArgumentOf(const v1::TrialRef& trial) {
  if (trial.trial_id() != 0) return absl::StrCat("id:", trial.trial_id());
  const std::string name = Printable(trial.external_id());
  return trial.project().empty() ? name
                                 : absl::StrCat(name, " --project ", Printable(trial.project()));
}

bool IsUnknown(MasterClient& master, const v1::TrialRef& trial) {
  v1::GetTrialRequest request;
  *request.mutable_trial() = trial;
  return absl::IsNotFound(master.GetTrial(request).status());
}

}  // namespace

int ReportTrialFailure(const absl::Status& status, const v1::TrialRef& trial, MasterClient& master,
                       const std::string& address, Streams streams) {
  const int exit = ReportFailure(status, address, streams);
  if (!absl::IsNotFound(status) || !IsUnknown(master, trial)) return exit;
  const auto newest = ReadTrials(master, v1::ListTrialsRequest(), kNamesMax);
  if (newest.ok()) streams.err << KnownTrialsText(*newest);
  return exit;
}

std::string NothingMatchedText(MasterClient& master, const v1::TrialRef& trial,
                               const v1::SeriesSelector& selector) {
  v1::ListSeriesRequest request;
  *request.mutable_trial() = trial;
  const auto series = ReadSeries(master, std::move(request), kSeriesMax);
  // The answer itself was no failure; a master that is gone since then only costs the advice.
  if (!series.ok()) return "nothing matches\n";
  return KnownSeriesText(*series, selector, ArgumentOf(trial));
}

std::string KnownTrialsText(const std::vector<v1::Trial>& newest) {
  if (newest.empty()) {
    return "There is no trial yet that you may see; 'stepwell run --trial NAME PROGRAM' records "
           "one.\n";
  }
  std::vector<std::string> names;
  names.reserve(newest.size());
  for (const v1::Trial& trial : newest) names.push_back(TrialName(trial));
  return absl::StrCat("The newest trials: ", NamesText(names), ". 'stepwell trials' lists all.\n");
}

std::string KnownSeriesText(const std::vector<v1::Series>& series,
                            const v1::SeriesSelector& selector, const std::string& argument) {
  if (series.empty()) {
    return "the trial has no series yet: nothing that was recorded for it has arrived\n";
  }
  const auto matching = std::count_if(series.begin(), series.end(), [&](const v1::Series& one) {
    return Matches(one.key(), selector);
  });
  if (matching > 0) {
    return absl::StrCat("no samples match: ", CountText(matching),
                        matching == 1 ? " series does, but holds" : " series do, but hold",
                        " none in the time range asked for.\n'stepwell trials' tells the span of"
                        " each trial.\n");
  }
  return absl::StrCat("no series match ", SelectorText(selector), ". ",
                      ClosestText(series, selector), ".\n'stepwell series ", argument,
                      "' lists all.\n");
}

}  // namespace stepwell::cli
