// TraceTally: what became of the traces that an outbox named: told in the log as it happens, and counted for whoever asks.
// Thread-safe.
//
//   tally.GiveUp({.path = job.path, .note = name}, status);
//   if (tally.counts().given_up > 0) ...
#pragma once

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace stepwell::agent {

class TraceTally {
 public:
  struct Counts {
    std::uint64_t uploaded = 0;  // the master has all of it
    std::uint64_t gone = 0;      // its file was not there any more
    std::uint64_t given_up = 0;  // nobody takes it, or it is none
    // Those whose notes stay: for files that lie where their notes alone lead, for directories that are not there, for what the
    // master says of them.
    std::uint64_t outside = 0;
    std::uint64_t absent = 0;
    std::uint64_t refused = 0;
    std::string why_given_up;  // the newest
    std::string why_refused;
  };
  struct Which {
    std::string path;
    std::string note;
  };

  void Uploaded() ABSL_LOCKS_EXCLUDED(mu_);
  // Its note goes. `is_gone`: its file was not there.
  void GiveUp(const Which& which, const absl::Status& why, bool is_gone) ABSL_LOCKS_EXCLUDED(mu_);
  // Of what is no note.
  void GiveUpNote(const std::string& note, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);
  // Once for each.
  void LeaveOutside(const std::string& path) ABSL_LOCKS_EXCLUDED(mu_);
  void LeaveAbsent(const Which& which, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);
  // So many are tried again after an answer that may be the last word, as of one of them.
  void SetRefused(std::uint64_t count, const std::string& why) ABSL_LOCKS_EXCLUDED(mu_);

  Counts counts() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void CountGivenUp(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);

  mutable absl::Mutex mu_;
  Counts counts_ ABSL_GUARDED_BY(mu_);
};

}  // namespace stepwell::agent
