// What stores tell BookChanges of their transactions. For the folder's skins.
//
//   return ChangeBook(changes_, BookScope::Of(trial_id), [&] { return connection.InTransaction(body); });
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/book_changes.h"

namespace stepwell {

// Of a transaction, or of several, the last of which ended with `status`. In doubt where the connection
// failed: a statement or a COMMIT that was sent may still run.
BookChanges::Outcome ChangeOutcome(const absl::Status& status);

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename Value>
const absl::Status& StatusOf(const absl::StatusOr<Value>& value) {
  return value.status();
}

// Runs `work`, which may change books of `scope`. `outcome` tells what came of it; `changes` may be null.
template <typename Work, typename OutcomeOf>
auto ChangeBook(BookChanges* changes, const BookScope& scope, const Work& work,
                const OutcomeOf& outcome) {
  if (changes == nullptr) return work();
  changes->Begin(scope);
  auto result = work();
  changes->End(scope, outcome(result));
  return result;
}

template <typename Work>
auto ChangeBook(BookChanges* changes, const BookScope& scope, const Work& work) {
  return ChangeBook(changes, scope, work,
                    [](const auto& result) { return ChangeOutcome(StatusOf(result)); });
}

}  // namespace stepwell
