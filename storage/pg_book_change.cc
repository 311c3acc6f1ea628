#include "storage/pg_book_change.h"

#include <string>

#include "absl/strings/match.h"
#include "storage/pg_error.h"

namespace stepwell {

BookChanges::Outcome ChangeOutcome(const absl::Status& status) {
  using Outcome = BookChanges::Outcome;
  if (IsCommitUnknown(status)) return Outcome::kInDoubt;
  const std::string sqlstate = SqlState(status);
  // The server answered, and what it answers with an error it undoes; but one that is ended as it answers.
  if (absl::StartsWith(sqlstate, "57P") || absl::StartsWith(sqlstate, "08")) {
    return Outcome::kInDoubt;
  }
  if (!sqlstate.empty()) return Outcome::kChanged;
  switch (status.code()) {
    case absl::StatusCode::kOk:
    // What we say ourselves, of an answer that came.
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kDataLoss:
      return Outcome::kChanged;
    default:
      return Outcome::kInDoubt;
  }
}

}  // namespace stepwell
