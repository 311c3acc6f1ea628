// DeadlineWatch: does something at a deadline unless it is destroyed before. For calls that block in
// foreign code, where the deadline cannot be looked at. A thread each; the action runs on it.
//
//   const DeadlineWatch watch(deadline, [context] { context->TryCancel(); });
#pragma once

#include <functional>
#include <utility>

#include "absl/synchronization/notification.h"
#include "base/steady_time.h"
#include "base/worker.h"

namespace stepwell {

class DeadlineWatch {
 public:
  DeadlineWatch(SteadyTime deadline, std::function<void()> action)
      : worker_("deadline", [this, deadline, action = std::move(action)] {
          if (!done_.WaitForNotificationWithTimeout(deadline.Left())) action();
        }) {}
  DeadlineWatch(const DeadlineWatch&) = delete;
  // Waits for an action that has begun.
  ~DeadlineWatch() { done_.Notify(); }

 private:
  absl::Notification done_;
  Worker worker_;  // last: joined before done_ goes
};

}  // namespace stepwell
