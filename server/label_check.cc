#include "server/label_check.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "server/limits.h"
#include "server/text_check.h"

namespace stepwell {

MaybeComplaint CheckLabels(absl::string_view field,
                           const google::protobuf::Map<std::string, std::string>& labels,
                           Labels& out) {
  if (labels.size() > kLabelsPerSeriesMax) {
    return Invalid("LABEL_COUNT",
                   absl::StrCat(field, " has ", labels.size(), " entries, allowed are at most ",
                                kLabelsPerSeriesMax));
  }
  out.reserve(labels.size());
  for (const auto& [name, value] : labels) {
    STEPWELL_RETURN_IF_COMPLAINT(CheckText(absl::StrCat(field, ": a label's name"), name,
                                           {1, kLabelNameBytesMax}, "LABEL_NAME"));
    if (name == "rank" || name == "agent") {
      return Invalid("LABEL_RESERVED",
                     absl::StrCat(field, " has ", name,
                                  ", which the master adds by itself; allowed are other names"));
    }
    STEPWELL_RETURN_IF_COMPLAINT(CheckText(absl::StrCat(field, "[", name, "]"), value,
                                           {0, kLabelValueBytesMax}, "LABEL_VALUE"));
    out.emplace_back(name, value);
  }
  std::sort(out.begin(), out.end());
  return std::nullopt;
}

Labels MergeLabels(const Labels& under, const Labels& over) {
  std::map<std::string, std::string> merged(under.begin(), under.end());
  for (const auto& [name, value] : over) merged[name] = value;
  return Labels(merged.begin(), merged.end());
}

}  // namespace stepwell
