#include "storage/pg_session_place.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace stepwell {

absl::Status PgSessionPlace::Check(PgConnection& connection, std::int64_t session,
                                   std::int64_t owner_epoch) {
  if (owned_ == nullptr || session == session_) return absl::OkStatus();
  const auto told = place_.Read(connection);
  // Who owns it has said that nobody can know.
  if (PgPlace::IsOfOlderSchema(told.status())) return absl::OkStatus();
  STEPWELL_RETURN_IF_ERROR(told.status());
  const std::string change = owned_->ChangeSince(owner_epoch, told->now);
  if (!change.empty()) {
    return absl::AbortedError(absl::StrCat("owner epoch ", owner_epoch,
                                           " is over: the database is another one, ", change));
  }
  session_ = session;
  return absl::OkStatus();
}

}  // namespace stepwell
