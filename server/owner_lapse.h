// OwnerLapse: whether who owns the database has fallen silent, as one who stands by sees it: by the standby's monotonic
// clock, for the database's own may be set, by hours. Set forward it would take over from a master that lives, set back
// leave a dead one's place empty for as long. A core; confined.
//
//   lapse.Saw(owner->renewal_us, owner->renewed_age_seconds, SteadyTime::Now());
//   claim.lapsed_renewal_us = lapse.lapsed_renewal_us(SteadyTime::Now());   // the store takes no other
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "base/steady_time.h"

namespace stepwell {

class OwnerLapse {
 public:
  // So long an ownership lasts without a renewal.
  static constexpr absl::Duration kLasts = absl::Seconds(10);
  // Of that it is looked at for so long at least, which is two renewals: how old one was at the first look the database's
  // clock says, which may be wrong.
  static constexpr absl::Duration kSeenAtLeast = absl::Seconds(4);

  // A look at the row of who owns it. `age_seconds`: by the database's clock.
  void Saw(std::int64_t renewal_us, double age_seconds, SteadyTime now) {
    if (is_seen_ && renewal_us == renewal_us_) return;
    is_seen_ = true;
    renewal_us_ = renewal_us;
    lapses_at_ = now + std::clamp(kLasts - absl::Seconds(age_seconds), kSeenAtLeast, kLasts);
  }
  // The database could not be asked, by its owner neither: who lives has time to renew once it can.
  void SawNothing() { is_seen_ = false; }
  // 0 = none.
  std::int64_t lapsed_renewal_us(SteadyTime now) const {
    return is_seen_ && now >= lapses_at_ ? renewal_us_ : 0;
  }

 private:
  bool is_seen_ = false;
  std::int64_t renewal_us_ = 0;
  SteadyTime lapses_at_;
};

}  // namespace stepwell
