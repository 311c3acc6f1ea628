// ReadPatience: until when a read goes on: to its deadline, and while somebody waits for its answer. It is asked
// before each question to the database. Whether somebody waits is dear to find out (gRPC waits for that itself, 50
// us and more), so it is looked at a few times a second alone, and by a short read never. A core; confined to one
// thread.
//
//   ReadPatience patience(deadline, SteadyTime::Now());
//   patience.Heed(call.cancelled);
//   STEPWELL_ASSIGN_OR_RETURN(const auto looked, patience.Ask(SteadyTime::Now()));
#pragma once

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/steady_time.h"

namespace stepwell {

class ReadPatience {
 public:
  static constexpr absl::Duration kLookEach = absl::Milliseconds(250);
  enum class Looked { kNo, kYes };

  // Without an end.
  ReadPatience() = default;
  ReadPatience(SteadyTime deadline, SteadyTime begun)
      : deadline_(deadline), next_look_(begun + kLookEach) {}

  // `cancelled`: whether nobody waits any more.
  void Heed(std::function<bool()> cancelled) { cancelled_ = std::move(cancelled); }
  // kDeadlineExceeded and kCancelled, and the same ever after. kYes: a while has passed since it was so before.
  absl::StatusOr<Looked> Ask(SteadyTime now);
  absl::Duration Left(SteadyTime now) const { return deadline_ - now; }

 private:
  SteadyTime deadline_ = SteadyTime::InfiniteFuture();
  SteadyTime next_look_ = SteadyTime::InfiniteFuture();
  std::function<bool()> cancelled_;  // null = nobody says
  absl::Status ended_;
};

}  // namespace stepwell
