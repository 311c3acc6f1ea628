#include "client/agent/sensors/reading.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace stepwell::agent {

AbsenceKind KindOf(const absl::Status& why) {
  if (absl::IsNotFound(why) || absl::IsUnimplemented(why)) return AbsenceKind::kUnsupported;
  if (absl::IsPermissionDenied(why)) return AbsenceKind::kNoPermission;
  return AbsenceKind::kFailed;
}

absl::Status NoAnswerFor(absl::Duration silent) {
  const absl::Duration told =
      absl::Floor(std::max(silent, absl::ZeroDuration()), absl::Milliseconds(1));
  return absl::DeadlineExceededError(
      absl::StrCat("no answer for ", absl::FormatDuration(told), ": the call hangs"));
}

void Reading::Add(const SystemMetric& metric, const std::map<std::string, std::string>& labels,
                  double value) {
  if (Wants(metric)) AddFound(Find(metric, labels), value);
}

const SensedSeries* Reading::Find(const SystemMetric& metric,
                                  const std::map<std::string, std::string>& labels) {
  return context_.pool->Keep(SeriesOf(metric, labels));
}

void Reading::AddFound(const SensedSeries* series, double value) {
  if (series == nullptr || !std::isfinite(value)) return;
  const auto parts = static_cast<double>(series->divisor);
  samples_.push_back({series, std::nearbyint(value * parts) / parts});
}

void Reading::Miss(Absence absence) {
  if (context_.selection->WantsGroup(absence.metric_group)) absences_.push_back(std::move(absence));
}

void Reading::Miss(const std::string& metric_group, const std::string& subject, int sample_count,
                   const absl::Status& why) {
  Miss({metric_group, KindOf(why), subject, sample_count,
        absl::StrCat(subject, ": ", why.message())});
}

void Reading::Miss(const SystemMetric& metric, const std::string& of, const absl::Status& why) {
  if (!Wants(metric)) return;
  const std::string of_whom = of.empty() ? "" : absl::StrCat(" of ", of);
  Miss({metric.metric_group, KindOf(why), absl::StrCat(metric.name, of_whom), 1,
        absl::StrCat(metric.name, ": ", why.message(), of_whom)});
}

void Reading::Append(Reading other) {
  samples_.insert(samples_.end(), other.samples_.begin(), other.samples_.end());
  absences_.insert(absences_.end(), std::make_move_iterator(other.absences_.begin()),
                   std::make_move_iterator(other.absences_.end()));
}

}  // namespace stepwell::agent
