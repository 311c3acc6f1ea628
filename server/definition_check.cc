#include "server/definition_check.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "server/chunk_decode.h"
#include "server/label_check.h"
#include "server/limits.h"
#include "server/text_check.h"

namespace stepwell {
namespace {

// The contract takes what is not given as a gauge.
pb::SeriesKind KindOf(const pb::Definition& definition) {
  return definition.kind() == pb::SERIES_KIND_UNSPECIFIED ? pb::SERIES_KIND_GAUGE
                                                          : definition.kind();
}

// A hash of all that a definition says, so that a repeat is told from a change. The text itself, tens
// of KiB with many labels, would be kept ten thousand times for each writer.
std::uint64_t Fingerprint(const pb::Definition& definition, const Labels& labels) {
  return absl::HashOf(definition.tick_group(), definition.metric_group(), definition.name(),
                      definition.unit(), static_cast<int>(KindOf(definition)), definition.divisor(),
                      labels);
}

// Where a definition stands in its message, in words: made where something is wrong with it. Ten thousand of a message cost
// more words than looks.
struct DefinitionPlace {
  int index;
};

std::string operator+(DefinitionPlace path, const char* field) {
  return absl::StrCat("definitions[", path.index, "]", field);
}

MaybeComplaint CheckField(DefinitionPlace path, const char* field, const std::string& text,
                          TextBounds bounds, const char* reason) {
  if (!CheckText("", text, bounds, reason)) return std::nullopt;
  return CheckText(path + field, text, bounds, reason);
}

MaybeComplaint CheckNames(const pb::Definition& definition, DefinitionPlace path) {
  STEPWELL_RETURN_IF_COMPLAINT(CheckField(path, ".metric_group", definition.metric_group(),
                                          {1, kMetricGroupBytesMax}, "METRIC_GROUP"));
  STEPWELL_RETURN_IF_COMPLAINT(
      CheckField(path, ".name", definition.name(), {1, kMetricNameBytesMax}, "METRIC_NAME"));
  STEPWELL_RETURN_IF_COMPLAINT(
      CheckField(path, ".unit", definition.unit(), {0, kUnitBytesMax}, "UNIT"));
  if (KindOf(definition) < pb::SERIES_KIND_GAUGE || KindOf(definition) > pb::SERIES_KIND_DURATION) {
    return Invalid(
        "SERIES_KIND",
        absl::StrCat(path + ".kind is ", static_cast<int>(definition.kind()),
                     ", allowed are 1 (gauge, also for 0), 2 (counter) and 3 (duration)"));
  }
  return std::nullopt;
}

MaybeComplaint CheckNumbers(const pb::Definition& definition, DefinitionPlace path) {
  if (definition.ref() == 0) {
    return Invalid("REF", path + ".ref is 0, allowed is a number from 1");
  }
  if (definition.tick_group() == 0 || definition.tick_group() > 0x7FFFFFFF) {
    return Invalid("TICK_GROUP", absl::StrCat(path + ".tick_group is ", definition.tick_group(),
                                              ", allowed are 1 to 2147483647"));
  }
  if (definition.divisor() != 0 && !IsDivisor(definition.divisor())) {
    return Invalid(
        "DIVISOR",
        absl::StrCat(path + ".divisor is ", definition.divisor(),
                     ", allowed are 0, powers of ten up to 10^15 and of two up to 2^62"));
  }
  return std::nullopt;
}

MaybeComplaint CheckOne(const pb::Definition& definition, DefinitionPlace path,
                        const Labels& writer_labels, const RefTable& refs, std::size_t fresh_count,
                        CheckedDefinition& out) {
  STEPWELL_RETURN_IF_COMPLAINT(CheckNumbers(definition, path));
  STEPWELL_RETURN_IF_COMPLAINT(CheckNames(definition, path));
  Labels own;
  if (CheckLabels("", definition.labels(), own)) {
    own.clear();
    return CheckLabels(path + ".labels", definition.labels(), own);
  }
  Labels labels = MergeLabels(writer_labels, own);
  // Those of Open and the master's two come on top of the definition's own.
  if (labels.size() > kLabelsPerSeriesMax + 2) {
    return Invalid("LABEL_COUNT", absl::StrCat(path + ".labels make ", labels.size(),
                                               " labels together with those of open, allowed are ",
                                               kLabelsPerSeriesMax, " beside rank and agent"));
  }
  if (refs.size() + fresh_count >= kSeriesPerWriterMax && !refs.contains(definition.ref())) {
    Complaint complaint = Invalid(
        "WRITER_SERIES_LIMIT", absl::StrCat(path + ": the writer has ", refs.size() + fresh_count,
                                            " definitions, limit ", kSeriesPerWriterMax));
    complaint.code = absl::StatusCode::kResourceExhausted;
    return complaint;
  }
  out.number = definition.ref();
  out.ref.tick_group = definition.tick_group();
  out.ref.divisor = definition.divisor() == 0 ? 1 : definition.divisor();
  out.ref.metric_group = definition.metric_group();
  out.ref.fingerprint = Fingerprint(definition, labels);
  out.definition.key = {definition.metric_group(), definition.name(), std::move(labels)};
  out.definition.unit = definition.unit();
  out.definition.kind = static_cast<SeriesKind>(KindOf(definition));
  return std::nullopt;
}

RefusedDefinition Refuse(const pb::Definition& definition, Complaint complaint) {
  RefusedDefinition refused;
  refused.number = definition.ref();
  refused.ref.tick_group = definition.tick_group();
  refused.ref.metric_group = CheckText("", definition.metric_group(), {1, kMetricGroupBytesMax}, "")
                                 ? ""
                                 : definition.metric_group();
  refused.ref.refused_reason = complaint.reason;
  refused.complaint = std::move(complaint);
  return refused;
}

}  // namespace

DefinitionResult CheckDefinitions(const pb::Definitions& definitions, const Labels& labels,
                                  const RefTable& refs) {
  DefinitionResult result;
  absl::flat_hash_map<std::uint32_t, std::uint64_t> seen;
  seen.reserve(static_cast<std::size_t>(definitions.definitions_size()));
  result.fresh.reserve(static_cast<std::size_t>(definitions.definitions_size()));
  for (int i = 0; i < definitions.definitions_size(); ++i) {
    const pb::Definition& definition = definitions.definitions(i);
    const DefinitionPlace path{i};
    CheckedDefinition checked;
    if (auto complaint = CheckOne(definition, path, labels, refs, result.fresh.size(), checked)) {
      result.refused.push_back(Refuse(definition, *std::move(complaint)));
      continue;
    }
    const auto known = refs.find(checked.number);
    const auto [twin, is_new] = seen.emplace(checked.number, checked.ref.fingerprint);
    const bool is_known = known != refs.end() && known->second.refused_reason.empty();
    const std::uint64_t before = is_known ? known->second.fingerprint : twin->second;
    if ((is_known || !is_new) && before != checked.ref.fingerprint) {
      // The first meaning stays: it is not made a refused ref.
      RefusedDefinition refused = Refuse(
          definition,
          Invalid("REF_REDEFINED", absl::StrCat(path + ".ref ", checked.number,
                                                " is already defined otherwise; allowed is the same"
                                                " definition again, or another ref")));
      refused.number = 0;
      result.refused.push_back(std::move(refused));
      continue;
    }
    if (!is_known && is_new) result.fresh.push_back(std::move(checked));
  }
  return result;
}

}  // namespace stepwell
