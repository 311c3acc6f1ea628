// TokenGuard: whether who calls shows the token of this master. Both ports ask it before anything else of a
// call is looked at; what shows none is refused. The token lies in a file, of which the digest alone is
// kept here; another one in the file counts within two seconds. Thread-safe.
//
//   STEPWELL_ASSIGN_OR_RETURN(auto guard, TokenGuard::Open("/etc/stepwell/token", clock));
//   if (!guard->Allows(request.Header("Authorization"))) return Unauthorized();
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace stepwell {

class TokenGuard {
 public:
  // Where there is no file one is made, of mode 0600, with a new token. kFailedPrecondition: others than its
  // owner may read it, or it holds no token; kUnavailable and the like as the file says. `clock` outlives it.
  static absl::StatusOr<std::shared_ptr<TokenGuard>> Open(const std::string& path,
                                                          const Clock& clock);

  // An Authorization header: "Bearer TOKEN", or "Basic" with the token as password, as browsers ask for it.
  bool Allows(std::string_view authorization) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Stored {
    std::string digest;
    std::string stamp;  // of the file that it was read from
  };
  TokenGuard(std::string path, const Clock& clock) : path_(std::move(path)), clock_(clock) {}
  absl::StatusOr<Stored> Read() const;
  void LookAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string path_;
  const Clock& clock_;
  absl::Mutex mu_;
  Stored stored_ ABSL_GUARDED_BY(mu_);
  bool is_gone_ ABSL_GUARDED_BY(mu_) = false;                               // which was told
  absl::Duration looked_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();  // Clock::Monotonic
};

// "stepwell_admin_" and 256 bits of chance, in 64 digits.
std::string MakeToken();
// What a caller without it is told.
inline constexpr char kNoToken[] = "this master wants its token, in STEPWELL_TOKEN or as a bearer";

// What an Authorization header shows; empty where it is in no form that is known.
std::string ShownToken(std::string_view authorization);

}  // namespace stepwell
