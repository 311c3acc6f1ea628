// Crowd: other trials of a master. Most have ended; some live: their writers hold a stream, have rows that are
// not merged yet, and beat. Confined to one thread.
//
//   Crowd crowd(master.grpc_address());
//   samples += crowd.SendOne();
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "bench/load/load_stream.h"

namespace stepwell::bench {

class Crowd {
 public:
  static constexpr int kEndedCount = 980;
  static constexpr int kLivingCount = 20;

  explicit Crowd(const std::string& address);
  ~Crowd();

  // A chunk of each of those that live, until all are acked; of how many samples.
  std::int64_t SendOne();
  // The streams end as they do where a machine is lost.
  void LeaveThem();
  // Processes that were started again, of the trials that lived; each sends a chunk. REQUIRES: LeaveThem() was called.
  void ComeAgain(const std::string& address);

 private:
  // All of them, each ten seconds: a master calls a writer lost after a minute.
  void Beat();

  std::atomic<bool> stop_ = false;
  std::thread beats_;
  std::int64_t next_time_us_;
  absl::Mutex mu_;
  // Sent and beaten on by one at a time.
  std::vector<std::unique_ptr<LoadStream>> living_ ABSL_GUARDED_BY(mu_);
};

}  // namespace stepwell::bench
