// TopPoller: reads what `stepwell top` shows, each interval, on a thread of its own, so that keys are
// answered while a master does not. Thread-safe.
//
//   TopPoller poller(reader, std::move(first), interval);
//   poll(poller.wake_fd()) ...; poller.Take();
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/worker.h"
#include "client/cli/master_client.h"
#include "client/cli/top_data.h"
#include "client/cli/top_view.h"

namespace stepwell::cli {

class TopPoller {
 public:
  // Begins with `first`; the next read is an interval later. `master` is the one that `reader` reads;
  // both outlive the poller, which alone uses them.
  TopPoller(MasterClient& master, TopReader& reader, TopData first, absl::Duration interval);
  // Ends a read that is under way.
  ~TopPoller();
  TopPoller(const TopPoller&) = delete;
  TopPoller& operator=(const TopPoller&) = delete;

  struct Look {
    std::shared_ptr<const TopData> data;  // poller, whoever draws it
    TopOutage outage;
  };
  // The newest that was read, and whether later reads failed.
  Look Take() ABSL_LOCKS_EXCLUDED(mu_);
  // Readable once there is something new to take.
  int wake_fd() const { return wake_fd_; }

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  void ReadOnce() ABSL_LOCKS_EXCLUDED(mu_);

  MasterClient& master_;
  TopReader& reader_;
  const absl::Duration interval_;
  const int wake_fd_;
  absl::Mutex mu_;
  Look look_ ABSL_GUARDED_BY(mu_);
  std::int64_t answered_us_ ABSL_GUARDED_BY(mu_);  // by this machine's clock
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  Worker worker_;
};

}  // namespace stepwell::cli
