#include "server/read_admission.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace stepwell {
namespace {

// Each holds a thread of gRPC's.
constexpr int kRestingMax = 128;

}  // namespace

ReadAdmission::ReadAdmission(int reads_max) : reads_max_(reads_max) {
  STEPWELL_CHECK(reads_max > 0);
}

absl::StatusOr<ReadAdmission::Ticket> ReadAdmission::Enter(absl::Duration patience) {
  absl::MutexLock lock(&mu_);
  const auto has_place = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return running_ < reads_max_; };
  bool entered = has_place();
  if (!entered && waiting_ < reads_max_) {
    ++waiting_;
    entered = mu_.AwaitWithTimeout(absl::Condition(&has_place), patience);
    --waiting_;
  }
  if (!entered) {
    return absl::ResourceExhaustedError(
        absl::StrCat(reads_max_, " reads are under way, limit ", reads_max_, ": come again"));
  }
  ++running_;
  return Ticket(this);
}

bool ReadAdmission::Rest() {
  absl::MutexLock lock(&mu_);
  if (resting_ >= kRestingMax) return false;
  ++resting_;
  --running_;
  return true;
}

void ReadAdmission::Return() {
  const auto has_place = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return running_ < reads_max_; };
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(&has_place));
  --resting_;
  ++running_;
}

void ReadAdmission::Leave() {
  absl::MutexLock lock(&mu_);
  --running_;
}

}  // namespace stepwell
