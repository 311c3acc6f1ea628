// TlsReload: what certificate files hold now. They are looked at when somebody connects, at most once a
// second, so that a renewed certificate counts without a restart and without a thread. What is not
// whole (a key that is not written yet, a file that is gone) is told once and the last that was whole
// stays. Thread-safe.
//
//   STEPWELL_ASSIGN_OR_RETURN(auto reload, TlsReload::Open(files, TlsSide::kServer, clock));
//   const std::shared_ptr<const TlsMaterial> now = reload->Current();   // another pointer: it changed
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/tls/tls_files.h"

namespace stepwell {

class TlsReload {
 public:
  // Reads them once. Errors are those of ReadTls. `clock` outlives this.
  static absl::StatusOr<std::shared_ptr<TlsReload>> Open(TlsFiles files, TlsSide side,
                                                         const Clock& clock);

  std::shared_ptr<const TlsMaterial> Current() ABSL_LOCKS_EXCLUDED(mu_);
  // As named, not as read.
  const TlsFiles& files() const { return files_; }

 private:
  // Tells whether a file was changed since.
  using Stamps = std::vector<std::string>;
  TlsReload(TlsFiles files, TlsSide side, const Clock& clock)
      : files_(std::move(files)), side_(side), clock_(clock) {}
  Stamps LookAt() const;
  void Take(TlsMaterial read) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const TlsFiles files_;
  const TlsSide side_;
  const Clock& clock_;
  absl::Mutex mu_;
  std::shared_ptr<const TlsMaterial> current_ ABSL_GUARDED_BY(mu_);
  Stamps stamps_ ABSL_GUARDED_BY(mu_);
  Stamps refused_ ABSL_GUARDED_BY(mu_);  // those that were told last
  absl::Duration looked_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();  // Clock::Monotonic
};

}  // namespace stepwell
