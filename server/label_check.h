// LabelCheck: label maps of clients, bounded and sorted. Pure functions.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/map.h"
#include "server/complaint.h"
#include "storage/model.h"

namespace stepwell {

// Reserved are rank and agent: the master adds them from Open.
MaybeComplaint CheckLabels(absl::string_view field,
                           const google::protobuf::Map<std::string, std::string>& labels_untrusted,
                           Labels& out);

// `over` wins over `under` where both have a name. REQUIRES: both are sorted, with each name once; as is what comes out.
Labels MergeLabels(const Labels& under, const Labels& over);

}  // namespace stepwell
