#include "server/query_wire.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace stepwell {
namespace {

// Limits of what is compared with; names of stored ones are shorter still.
constexpr std::size_t kTextBytesMax = 1024;
constexpr int kSelectorLabelsMax = 32;
constexpr int kSelectorSeriesMax = 10'000;
constexpr int kSelectorsMax = 1000;
constexpr int kGroupByMax = 32;

absl::Status CheckEntries(const std::string& field, int entry_count, int most) {
  if (entry_count <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " has ", entry_count, " entries; allowed: 0 ... ", most));
}

absl::Status CheckText(const std::string& field, const std::string& text) {
  if (text.size() > kTextBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " has ", text.size(), " bytes; allowed: 0 ... ", kTextBytesMax));
  }
  if (text.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(field, " holds a NUL; allowed: text"));
  }
  return absl::OkStatus();
}

}  // namespace

v1::Gap ToWire(const Gap& gap) {
  v1::Gap wire;
  wire.set_cause(static_cast<v1::GapCause>(gap.cause));
  wire.set_writer_no(Value(gap.writer_no));
  wire.set_metric_group(gap.metric_group);
  wire.set_sample_count(gap.sample_count);
  wire.set_first_time_us(gap.first_time_us);
  wire.set_last_time_us(gap.last_time_us);
  wire.set_first_sequence(gap.first_sequence);
  wire.set_last_sequence(gap.last_sequence);
  wire.set_reason(gap.reason);
  return wire;
}

v1::SeriesKey ToWire(const SeriesKey& key) {
  v1::SeriesKey wire;
  wire.set_metric_group(key.metric_group);
  wire.set_name(key.name);
  for (const auto& [name, value] : key.labels) (*wire.mutable_labels())[name] = value;
  return wire;
}

v1::Series ToWire(const Series& series) {
  v1::Series wire;
  wire.set_series_no(Value(series.series_no));
  *wire.mutable_key() = ToWire(series.definition.key);
  wire.set_unit(series.definition.unit);
  wire.set_kind(static_cast<v1::SeriesKind>(series.definition.kind));
  return wire;
}

v1::Trial ToWire(const TrialRecord& trial) {
  v1::Trial wire;
  wire.set_trial_id(Value(trial.trial_id));
  wire.set_project(trial.project);
  wire.set_external_id(trial.external_id);
  wire.set_state(static_cast<v1::TrialState>(trial.state));
  wire.set_created_time_us(trial.created_time_us);
  wire.set_first_sample_time_us(trial.first_time_us);
  wire.set_last_sample_time_us(trial.last_time_us);
  wire.set_attempt_count(trial.attempt_count);
  wire.set_writer_count(trial.writer_count);
  wire.set_series_count(trial.series_count);
  wire.set_sample_count(trial.sample_count);
  wire.set_samples_missing(trial.missing_sample_count);
  wire.set_has_missing_samples(trial.samples_missing);
  return wire;
}

v1::TrialProfiling ToWire(const TrialProfiling& profiling) {
  v1::TrialProfiling wire;
  wire.set_on(profiling.on);
  wire.set_interval_us(profiling.interval_us);
  for (const std::string& group : profiling.metric_groups) wire.add_metric_groups(group);
  return wire;
}

v1::Writer ToWire(const WriterRecord& writer, const WriterSeen& seen) {
  v1::Writer wire;
  wire.set_writer_no(Value(writer.writer_no));
  wire.set_attempt(writer.attempt);
  wire.set_is_sampler(!writer.rank.has_value());
  wire.set_rank(writer.rank.value_or(-1));
  wire.set_agent_id(writer.agent_id);
  wire.set_committed_sequence(writer.committed_sequence);
  wire.set_seen_time_us(seen.seen_time_us);
  return wire;
}

absl::StatusOr<TrialSelector> CheckTrialRef(const v1::TrialRef& ref_untrusted,
                                            const std::string& field) {
  TrialSelector selector;
  if (ref_untrusted.trial_id() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ".trial_id is ", ref_untrusted.trial_id(), "; allowed: 1 and above"));
  }
  if (ref_untrusted.trial_id() != 0 && !ref_untrusted.external_id().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " has both trial_id and external_id; allowed: one of them"));
  }
  if (ref_untrusted.trial_id() == 0 && ref_untrusted.external_id().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " is missing; allowed: trial_id, or external_id with project"));
  }
  for (const auto& [part, text] : {std::pair{".project", ref_untrusted.project()},
                                   std::pair{".external_id", ref_untrusted.external_id()}}) {
    if (absl::Status status = CheckText(field + part, text); !status.ok()) return status;
  }
  selector.trial_id = ref_untrusted.trial_id();
  if (!ref_untrusted.project().empty()) selector.project = ref_untrusted.project();
  selector.external_id = ref_untrusted.external_id();
  return selector;
}

absl::StatusOr<SeriesSelection> CheckSelector(const std::string& field,
                                              const v1::SeriesSelector& selector_untrusted) {
  const v1::SeriesSelector& given = selector_untrusted;
  STEPWELL_RETURN_IF_ERROR(
      CheckEntries(field + ".labels", given.labels_size(), kSelectorLabelsMax));
  STEPWELL_RETURN_IF_ERROR(
      CheckEntries(field + ".series_nos", given.series_nos_size(), kSelectorSeriesMax));
  SeriesSelection selection;
  selection.metric_group = given.metric_group();
  selection.name = given.name();
  for (const auto& [name, value] : given.labels()) selection.labels.emplace_back(name, value);
  std::sort(selection.labels.begin(), selection.labels.end());
  selection.series_nos.assign(given.series_nos().begin(), given.series_nos().end());
  std::sort(selection.series_nos.begin(), selection.series_nos.end());
  selection.series_nos.erase(std::unique(selection.series_nos.begin(), selection.series_nos.end()),
                             selection.series_nos.end());
  for (const auto& [part, text] :
       {std::pair{".metric_group", &selection.metric_group}, std::pair{".name", &selection.name}}) {
    if (absl::Status status = CheckText(field + part, *text); !status.ok()) return status;
  }
  for (const auto& [name, value] : selection.labels) {
    if (absl::Status status = CheckText(field + ".labels", name); !status.ok()) return status;
    if (absl::Status status = CheckText(field + ".labels", value); !status.ok()) return status;
  }
  return selection;
}

absl::StatusOr<std::vector<SeriesSelection>> CheckSelectors(
    const google::protobuf::RepeatedPtrField<v1::SeriesSelector>& selectors_untrusted) {
  STEPWELL_RETURN_IF_ERROR(CheckEntries("selectors", selectors_untrusted.size(), kSelectorsMax));
  std::vector<SeriesSelection> selections;
  for (const v1::SeriesSelector& selector_untrusted : selectors_untrusted) {
    const std::string field = absl::StrCat("selectors[", selections.size(), "]");
    STEPWELL_ASSIGN_OR_RETURN(SeriesSelection selection, CheckSelector(field, selector_untrusted));
    selections.push_back(std::move(selection));
  }
  return selections;
}

absl::Status CheckGroupBy(
    const google::protobuf::RepeatedPtrField<std::string>& group_by_untrusted) {
  return CheckEntries("group_by", group_by_untrusted.size(), kGroupByMax);
}

absl::StatusOr<std::int32_t> CheckSize(const std::string& field, std::int32_t size_untrusted,
                                       std::int32_t fallback, std::int32_t most) {
  if (size_untrusted < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " is ", size_untrusted, "; allowed: 0 (= ", fallback, ") ... ", most));
  }
  return size_untrusted == 0 ? fallback : std::min(size_untrusted, most);
}

}  // namespace stepwell
