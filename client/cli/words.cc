#include "client/cli/words.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/cli/units.h"

namespace stepwell::cli {

const char* StateWord(v1::TrialState state) {
  switch (state) {
    case v1::TRIAL_STATE_RUNNING:
      return "running";
    case v1::TRIAL_STATE_COMPLETED:
      return "completed";
    case v1::TRIAL_STATE_FAILED:
      return "failed";
    case v1::TRIAL_STATE_LOST:
      return "lost";
    default:
      return "unknown";
  }
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

std::string StateText(v1::TrialState state, const Paint& paint) {
  return paint.In(StateTone(state), StateWord(state));
}

const char* KindWord(v1::SeriesKind kind) {
  switch (kind) {
    case v1::SERIES_KIND_GAUGE:
      return "gauge";
    case v1::SERIES_KIND_COUNTER:
      return "counter";
    case v1::SERIES_KIND_DURATION:
      return "duration";
    default:
      return "unknown";
  }
}

const char* CauseWords(v1::GapCause cause) {
  switch (cause) {
    case v1::GAP_CAUSE_RING_FULL:
      return "ring full";
    case v1::GAP_CAUSE_SENSOR_FAILED:
      return "sensor failed";
    case v1::GAP_CAUSE_LATE:
      return "came too late";
    case v1::GAP_CAUSE_UNSUPPORTED:
      return "not supported here";
    case v1::GAP_CAUSE_NO_PERMISSION:
      return "no permission";
    case v1::GAP_CAUSE_SPOOL_FULL:
      return "spool full";
    case v1::GAP_CAUSE_SPOOL_CORRUPT:
      return "spool corrupt";
    case v1::GAP_CAUSE_SPOOL_LOST:
      return "spool lost";
    case v1::GAP_CAUSE_REJECTED:
      return "rejected";
    case v1::GAP_CAUSE_CLOCK:
      return "absurd clock";
    case v1::GAP_CAUSE_CAP:
      return "removed by a cap";
    case v1::GAP_CAUSE_CUT_OFF:
      return "cut off";
    case v1::GAP_CAUSE_RESTORED:
      return "database restored";
    default:
      return "unknown cause";
  }
}

bool IsSystemGroup(const std::string& metric_group) {
  static const std::set<std::string> groups = {"gpu", "cpu", "memory", "disk", "network", "agent"};
  return groups.contains(metric_group);
}

std::string TrialName(const v1::Trial& trial) {
  if (trial.external_id().empty()) return absl::StrCat("trial ", trial.trial_id());
  std::string name = Printable(trial.external_id());
  if (trial.project() == "default") return name;
  return absl::StrCat(Printable(trial.project()), "/", name);
}

std::string LabelsText(const google::protobuf::Map<std::string, std::string>& labels,
                       const std::map<std::string, std::string>& hide) {
  const std::map<std::string, std::string> sorted(labels.begin(), labels.end());
  std::vector<std::string> texts;
  for (const auto& [name, value] : sorted) {
    if (!hide.contains(name)) texts.push_back(Printable(absl::StrCat(name, "=", value)));
  }
  return absl::StrJoin(texts, " ");
}

std::string ProfilingWords(const v1::TrialProfiling& profiling) {
  std::string words = profiling.on() ? "recording is on" : "recording is off";
  if (profiling.interval_us() > 0) {
    absl::StrAppend(&words, ", every ",
                    SecondsText(static_cast<double>(profiling.interval_us()) / 1e6));
  }
  std::vector<std::string> groups;
  for (const std::string& group : profiling.metric_groups()) groups.push_back(Printable(group));
  if (!groups.empty()) absl::StrAppend(&words, ", groups ", absl::StrJoin(groups, ", "));
  return words;
}

v1::TrialProfiling Unrestrained() {
  v1::TrialProfiling profiling;
  profiling.set_on(true);
  return profiling;
}

bool IsRestrained(const v1::TrialProfiling& profiling) {
  return !profiling.on() || profiling.interval_us() > 0 || profiling.metric_groups_size() > 0;
}

absl::StatusOr<v1::TrialState> ParseState(const std::string& text) {
  for (const v1::TrialState state : {v1::TRIAL_STATE_RUNNING, v1::TRIAL_STATE_COMPLETED,
                                     v1::TRIAL_STATE_FAILED, v1::TRIAL_STATE_LOST}) {
    if (text == StateWord(state)) return state;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--state is '", text, "'; allowed: running, completed, failed, lost"));
}

absl::StatusOr<std::int64_t> ParseTime(const std::string& option, const std::string& text,
                                       std::int64_t now_us) {
  absl::Duration ago;
  if (absl::ParseDuration(text, &ago) && ago >= absl::ZeroDuration() &&
      ago < absl::Hours(24 * 36500)) {
    return now_us - absl::ToInt64Microseconds(ago);
  }
  absl::Time time;
  std::string error;
  for (const char* format : {absl::RFC3339_full, "%Y-%m-%d", "%Y-%m-%dT%H:%M",
                             "%Y-%m-%dT%H:%M:%E*S", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%E*S"}) {
    if (absl::ParseTime(format, text, absl::UTCTimeZone(), &time, &error)) {
      return absl::ToUnixMicros(time);
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--", option, " is '", text,
      "'; allowed: a time such as 2026-11-20T10:00:00Z, a day such as 2026-11-20, or how long ago, "
      "such as 10m"));
}

absl::Status ParseLabel(const std::string& text, v1::SeriesSelector& selector) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return absl::InvalidArgumentError(absl::StrCat("--label is '", text, "'; allowed: NAME=VALUE"));
  }
  (*selector.mutable_labels())[text.substr(0, equals)] = text.substr(equals + 1);
  return absl::OkStatus();
}

}  // namespace stepwell::cli
