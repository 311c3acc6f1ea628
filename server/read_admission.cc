#include "server/read_admission.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/steady_time.h"

namespace stepwell {
namespace {

// Each holds a thread of gRPC's.
constexpr int kRestingMax = 128;
// While samples wait.
constexpr int kShedPart = 4;
// Nobody tells a read that waits when that is over.
constexpr absl::Duration kLook = absl::Milliseconds(20);

int OfOnePayer(int places) { return std::max(1, places / 2); }

}  // namespace

ReadAdmission::ReadAdmission(int reads_max, WritersWait writers_wait)
    : reads_max_(reads_max),
      payer_max_(OfOnePayer(reads_max)),
      writers_wait_(std::move(writers_wait)) {
  STEPWELL_CHECK(reads_max > 0);
}

absl::StatusOr<ReadAdmission::Ticket> ReadAdmission::Enter(absl::Duration patience,
                                                           const std::string& payer) {
  absl::MutexLock lock(&mu_);
  const SteadyTime until = SteadyTime::Now() + patience;
  int places = PlacesNow();
  bool entered = HasPlace(payer, places);
  if (!entered && MayWait(payer)) {
    Add(payer, {.waiting = 1});
    const auto has_place = [&]()
                               ABSL_SHARED_LOCKS_REQUIRED(mu_) { return HasPlace(payer, places); };
    while (!entered && !until.HasPassed()) {
      const absl::Duration look = writers_wait_ ? kLook : absl::InfiniteDuration();
      mu_.AwaitWithTimeout(absl::Condition(&has_place), std::min(until.Left(), look));
      // Samples may wait since, or not any more.
      places = PlacesNow();
      entered = HasPlace(payer, places);
    }
    Add(payer, {.waiting = -1});
  }
  if (!entered) {
    const bool is_full = all_.running >= places;
    const int most = is_full ? places : OfOnePayer(places);
    return absl::ResourceExhaustedError(absl::StrCat(
        is_full ? all_.running : CountOf(payer).running, " reads ", is_full ? "" : "of this token ",
        "are under way, limit ", most,
        places < reads_max_ ? " while samples wait for their commit" : "", ": come again"));
  }
  Add(payer, {.running = 1});
  return Ticket(this, payer);
}

int ReadAdmission::PlacesNow() const {
  return writers_wait_ && writers_wait_() ? std::max(1, reads_max_ / kShedPart) : reads_max_;
}

bool ReadAdmission::HasPlace(const std::string& payer, int places) const {
  return all_.running < places && CountOf(payer).running < OfOnePayer(places);
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
  // It was let in before samples waited.
  const auto has_place = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return HasPlace(payer, reads_max_);
  };
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(&has_place));
  Add(payer, {.running = 1, .resting = -1});
}

void ReadAdmission::Leave(const std::string& payer) {
  absl::MutexLock lock(&mu_);
  Add(payer, {.running = -1});
}

}  // namespace stepwell
