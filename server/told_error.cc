#include "server/told_error.h"

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/uuid.h"
#include "storage/pg_error.h"

namespace stepwell {
namespace {

bool IsOurs(const absl::Status& status) {
  return IsOfDatabase(status) || status.code() == absl::StatusCode::kInternal ||
         status.code() == absl::StatusCode::kUnknown ||
         status.code() == absl::StatusCode::kDataLoss;
}

const char* OurWords(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kDeadlineExceeded:
      return "the database took too long; ask for less, or with more time";
    case absl::StatusCode::kInvalidArgument:
      return "the database takes no such value";
    case absl::StatusCode::kDataLoss:
      return "what is stored there cannot be read";
    default:
      return "the master failed at it";
  }
}

}  // namespace

std::string MakeRequestId() { return Uuid::Random().ToText().substr(0, 13); }

ToldError TellClient(const absl::Status& status) {
  if (!IsOurs(status)) return {std::string(status.message()), ""};
  if (absl::IsUnavailable(status)) return {"the database does not answer now; try again", ""};
  const std::string request_id = MakeRequestId();
  log::Warning("call_failed", {{"request_id", request_id}, {"status", status.ToString()}});
  return {absl::StrCat(OurWords(status), "; request ", request_id, " in the master's log"),
          request_id};
}

}  // namespace stepwell
