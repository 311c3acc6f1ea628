#include "server/read_admission.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace stepwell {
namespace {

// Each holds a thread of gRPC's.
constexpr int kRestingMax = 128;

}  // namespace

ReadAdmission::ReadAdmission(int reads_max)
    : reads_max_(reads_max), payer_max_(std::max(1, reads_max / 2)) {
  STEPWELL_CHECK(reads_max > 0);
}

absl::StatusOr<ReadAdmission::Ticket> ReadAdmission::Enter(absl::Duration patience,
                                                           const std::string& payer) {
  absl::MutexLock lock(&mu_);
  const auto has_place = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return HasPlace(payer); };
  bool entered = has_place();
  if (!entered && MayWait(payer)) {
    Add(payer, {.waiting = 1});
    entered = mu_.AwaitWithTimeout(absl::Condition(&has_place), patience);
    Add(payer, {.waiting = -1});
  }
  if (!entered) {
    const bool is_full = all_.running >= reads_max_;
    const int most = is_full ? reads_max_ : payer_max_;
    return absl::ResourceExhaustedError(
        absl::StrCat(most, " reads ", is_full ? "" : "of this token ", "are under way, limit ",
                     most, ": come again"));
  }
  Add(payer, {.running = 1});
  return Ticket(this, payer);
}

bool ReadAdmission::HasPlace(const std::string& payer) const {
  return all_.running < reads_max_ && CountOf(payer).running < payer_max_;
}

bool ReadAdmission::MayWait(const std::string& payer) const {
  return all_.waiting < reads_max_ && CountOf(payer).waiting < payer_max_;
}

ReadAdmission::Count ReadAdmission::CountOf(const std::string& payer) const {
  const auto found = payers_.find(payer);
  return found == payers_.end() ? Count() : found->second;
}

void ReadAdmission::Add(const std::string& payer, const Count& more) {
  const auto add = [&more](Count& count) {
    count.running += more.running;
    count.waiting += more.waiting;
    count.resting += more.resting;
  };
  add(all_);
  if (payer.empty()) return;
  Count& of_payer = payers_[payer];
  add(of_payer);
  if (of_payer.running + of_payer.waiting + of_payer.resting == 0) payers_.erase(payer);
}

bool ReadAdmission::Rest(const std::string& payer) {
  absl::MutexLock lock(&mu_);
  if (all_.resting >= kRestingMax || CountOf(payer).resting >= kRestingMax / 2) return false;
  Add(payer, {.running = -1, .resting = 1});
  return true;
}

void ReadAdmission::Return(const std::string& payer) {
  const auto has_place = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return HasPlace(payer); };
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(&has_place));
  Add(payer, {.running = 1, .resting = -1});
}

void ReadAdmission::Leave(const std::string& payer) {
  absl::MutexLock lock(&mu_);
  Add(payer, {.running = -1});
}

}  // namespace stepwell
