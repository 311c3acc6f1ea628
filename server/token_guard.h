// TokenGuard: whose token a call shows, or whose certificate where it shows no token. Both ports ask it before
// anything else of a call is looked at; what shows none that lives is refused. Three kinds are known: the one
// in a file, which may do everything and of which another in the file takes the place within two seconds,
// those of the database, which TokenLoop tells it of, and among these the ones that a certificate's name opens
// and no secret. Digests alone are kept, also of those that ended (EndedTokens). Thread-safe; waits for nobody.
//
//   STEPWELL_ASSIGN_OR_RETURN(auto guard, TokenGuard::Open("/etc/stepwell/token", clock));
//   STEPWELL_ASSIGN_OR_RETURN(const Caller caller, guard->Identify(request.Authorization()));
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "server/caller.h"
#include "server/ended_tokens.h"
#include "server/token_file.h"

namespace stepwell {

class TokenGuard {
 public:
  // What the database said counts for so long without being confirmed.
  static constexpr absl::Duration kMemory = absl::Seconds(5);

  // Where there is no file one is made, of mode 0600, with a new token. kFailedPrecondition: others than its
  // owner may read it, or it holds no token; kUnavailable and the like as the file says. `clock` outlives it.
  static absl::StatusOr<std::shared_ptr<TokenGuard>> Open(const std::string& path,
                                                          const Clock& clock);

  // Whether Open made the file.
  bool has_made_file() const { return has_made_file_; }

  // Of an Authorization header, and of a token by itself. kUnauthenticated: it lives not (IsEndedTokenRefusal), or was never one;
  // kUnavailable: it may be one, and the database did not say so of late.
  absl::StatusOr<Caller> Identify(std::string_view authorization) ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<Caller> IdentifyToken(const std::string& token) ABSL_LOCKS_EXCLUDED(mu_);
  // Of a connection whose client showed a certificate with these names (CertificateNames), and no token.
  // kUnauthenticated: no grants are given to any of them, or to several, for nobody knows which are meant.
  absl::StatusOr<Caller> IdentifyCertificate(const std::vector<std::string>& names)
      ABSL_LOCKS_EXCLUDED(mu_);
  // `caller`, on a connection whose client's certificate ends then (microseconds since 1970; 0: it showed none): one that ends
  // with either. kUnauthenticated: the certificate has ended, however long the connection is there.
  absl::StatusOr<Caller> Until(const Caller& caller, std::int64_t certificate_end_us)
      ABSL_LOCKS_EXCLUDED(mu_);
  // An Authorization by which one part of this process names `caller` to another that has no certificate of
  // theirs. Nobody outside can make one: it has 256 bits of chance of this process.
  std::string InsideAuthorization(const TokenHolder& caller) const;

  // These are all that live; those that are not among them have ended. What cannot be understood is left out.
  // `asked`: when the database was, by Clock::Monotonic.
  void Learn(const std::vector<TokenRecord>& living, absl::Duration asked) ABSL_LOCKS_EXCLUDED(mu_);
  // These were fetched, and live beside those that are known.
  void LearnFetched(const std::vector<TokenRecord>& fetched, absl::Duration asked)
      ABSL_LOCKS_EXCLUDED(mu_);
  // These ended before they could be learned of, the last one last.
  void LearnEnded(const std::vector<TokenRecord>& ended) ABSL_LOCKS_EXCLUDED(mu_);
  // What was learned is so still.
  void Confirm(absl::Duration asked) ABSL_LOCKS_EXCLUDED(mu_);
  // Revoked: for good, and not to be learned of first; with those that it made, and its family. A list that the database was
  // asked for before this brings none of them back.
  void EndNow(const std::string& id) ABSL_LOCKS_EXCLUDED(mu_);
  // Reads the file again, where that is due, and ends those that have expired. One that a clock ended which
  // has gone back since lives again; calls of before have ended.
  void LookAround() ABSL_LOCKS_EXCLUDED(mu_);
  // Once: the wall clock was set back to before the end of some that were forgotten, so that all have to be learned
  // again.
  bool TakeMissing() ABSL_LOCKS_EXCLUDED(mu_);
  // Whose end ends what `caller` fetches: its own, or that of who made it.
  static std::string MakerOf(const TokenHolder& caller);
  // Whether one with this id was learned of, and did not end since.
  bool Knows(const std::string& id) const ABSL_LOCKS_EXCLUDED(mu_);
  // Those that live and were fetched, of all masters, as of the last look.
  std::int64_t fetched_count() const ABSL_LOCKS_EXCLUDED(mu_);
  // How many have ended, ever: who has open calls looks again when it has grown.
  std::int64_t ended_count() const ABSL_LOCKS_EXCLUDED(mu_);
  // Those of the database that were shown since the last time, and when.
  std::vector<std::pair<std::string, std::int64_t>> TakeUsed() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Revoked {
    std::string id;
    std::string family;     // empty: has none, or is not known yet
    absl::Duration time{};  // by Clock::Monotonic

    bool Ends(const TokenHolder& holder) const;
  };
  using Holders = absl::flat_hash_map<std::string, Caller>;  // by id

  TokenGuard(std::string path, const Clock& clock);
  void LookAtConnections(std::int64_t now_us) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Reads the file where that is due and nobody is at it: without the lock, for a disk may keep it waiting, and others
  // go on with what is known.
  void LookAgain() ABSL_LOCKS_EXCLUDED(mu_);
  bool BeginLook() ABSL_LOCKS_EXCLUDED(mu_);
  void Take(StoredToken stored) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteGone(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void End(TokenHolder& holder) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Of one that was fetched; of others always.
  bool MakerLives(const TokenHolder& holder, std::int64_t now_us) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Tells once of those that another file's token fetched while this one's lives: the masters of a database want the same file.
  void LookAtMakers(const std::vector<TokenRecord>& tokens) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes those that were revoked since it was asked for out of what the database said.
  void TakeOutRevoked(Holders& learned, absl::Duration asked) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Confirmed(absl::Duration asked) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckMemory() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // One that was shown just now, unless it has ended.
  absl::StatusOr<Caller> Use(const Caller& holder) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<Caller> IdentifyInside(std::string_view id) ABSL_LOCKS_EXCLUDED(mu_);

  const std::string path_;
  const Clock& clock_;
  const std::string inside_;  // "Inside_<secret>_"
  bool has_made_file_ = false;
  mutable absl::Mutex mu_;
  StoredToken stored_ ABSL_GUARDED_BY(mu_);
  Caller admin_ ABSL_GUARDED_BY(mu_);             // null: the file is gone
  std::string admin_maker_ ABSL_GUARDED_BY(mu_);  // TokenRecord::made_by of what that one makes
  std::int64_t admin_since_us_ ABSL_GUARDED_BY(mu_) = 0;
  bool is_other_told_ ABSL_GUARDED_BY(mu_) = false;  // of LookAtMakers
  EndedTokens ended_ ABSL_GUARDED_BY(mu_);
  bool is_gone_ ABSL_GUARDED_BY(mu_) = false;    // which was told
  bool is_unread_ ABSL_GUARDED_BY(mu_) = false;  // likewise
  bool is_looking_ ABSL_GUARDED_BY(mu_) = false;
  absl::Duration looked_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();  // Clock::Monotonic
  Holders holders_ ABSL_GUARDED_BY(mu_);
  // Of connections, by whose they are and when their certificates end: as long as calls hold them.
  absl::flat_hash_map<std::pair<const TokenHolder*, std::int64_t>, Caller> on_connections_
      ABSL_GUARDED_BY(mu_);
  // Until the database has answered what it was asked later.
  std::vector<Revoked> revoked_ ABSL_GUARDED_BY(mu_);
  // Ids by the name of a certificate; some may be no more among holders_.
  std::multimap<std::string, std::string> named_ ABSL_GUARDED_BY(mu_);
  absl::Duration confirmed_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  std::int64_t ended_count_ ABSL_GUARDED_BY(mu_) = 0;
  std::int64_t fetched_count_ ABSL_GUARDED_BY(mu_) = 0;
  // What ended before that may be forgotten; 0 = nothing was.
  std::int64_t forgotten_us_ ABSL_GUARDED_BY(mu_) = 0;
  bool misses_some_ ABSL_GUARDED_BY(mu_) = false;
};

// What a caller without one is told.
inline constexpr char kPeerCertificateEnded[] =
    "the certificate of this client has ended since it connected";
inline constexpr char kNoToken[] = "this master wants its token, in STEPWELL_TOKEN or as a bearer";

}  // namespace stepwell
