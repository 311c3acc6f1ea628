#include "server/label_check.h"

#include <algorithm>
#include <iterator>

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
    // Words are made where something is wrong: of thousands of definitions they cost more than the look.
    if (CheckText("", name, {1, kLabelNameBytesMax}, "LABEL_NAME")) {
      return CheckText(absl::StrCat(field, ": a label's name"), name, {1, kLabelNameBytesMax},
                       "LABEL_NAME");
    }
    if (name == "rank" || name == "agent") {
      return Invalid("LABEL_RESERVED",
                     absl::StrCat(field, " has ", name,
                                  ", which the master adds by itself; allowed are other names"));
    }
    if (CheckText("", value, {0, kLabelValueBytesMax}, "LABEL_VALUE")) {
      return CheckText(absl::StrCat(field, "[", name, "]"), value, {0, kLabelValueBytesMax},
                       "LABEL_VALUE");
    }
    out.emplace_back(name, value);
  }
  std::sort(out.begin(), out.end());
  return std::nullopt;
}

Labels MergeLabels(const Labels& under, const Labels& over) {
  Labels merged;
  merged.reserve(under.size() + over.size());
  const auto by_name = [](const auto& left, const auto& right) { return left.first < right.first; };
  std::set_union(over.begin(), over.end(), under.begin(), under.end(), std::back_inserter(merged),
                 by_name);
  return merged;
}

}  // namespace stepwell
