// Early return for absl::Status, in the two forms used at every seam.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#define STEPWELL_CONCAT_INNER(a, b) a##b
#define STEPWELL_CONCAT(a, b) STEPWELL_CONCAT_INNER(a, b)

#define STEPWELL_RETURN_IF_ERROR(expression)                                  \
  do {                                                                        \
    if (absl::Status stepwell_status = (expression); !stepwell_status.ok()) { \
      return stepwell_status;                                                 \
    }                                                                         \
  } while (false)

// `target` may be a declaration: STEPWELL_ASSIGN_OR_RETURN(auto row, ReadRow(key));
#define STEPWELL_ASSIGN_OR_RETURN(target, expression) \
  STEPWELL_ASSIGN_OR_RETURN_INNER(STEPWELL_CONCAT(stepwell_or_, __LINE__), target, expression)
#define STEPWELL_ASSIGN_OR_RETURN_INNER(temporary, target, expression) \
  auto temporary = (expression);                                       \
  if (!temporary.ok()) return std::move(temporary).status();           \
  target = *std::move(temporary)

namespace stepwell {

// The same code and payloads, with what the caller was doing in front: "commit group: <message>".
inline absl::Status Annotate(const absl::Status& status, absl::string_view doing) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), absl::StrCat(doing, ": ", status.message()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    annotated.SetPayload(url, payload);
  });
  return annotated;
}

}  // namespace stepwell
