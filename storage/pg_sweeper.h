// PgSweeper: one sweep after the other. It goes over leaves whose age has passed, then over trials with
// bounds of bytes or samples, then over deleted trials, in small transactions, and stops soon when its
// time is over; the next one goes on. What it remembers between calls only saves work. Stands between
// PgCapsStore and the parts that do the work. Confined to one thread at a time.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "storage/caps_store.h"
#include "storage/pg_caps_places.h"
#include "storage/pg_connection.h"
#include "storage/pg_sweeper_bounds.h"

namespace stepwell {

class PgSweeper {
 public:
  // As CapsStore::Sweep.
  absl::StatusOr<SweepResult> Sweep(PgConnection& connection, std::int64_t owner_epoch,
                                    const SweepRequest& request);

 private:
  BoundMemory bounds_;
};

}  // namespace stepwell
