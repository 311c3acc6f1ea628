// TokenStore: the tokens that the database knows, and where a trial lies, which decides what a token may do
// with it. PgTokenStore is the real one.
//
//   STEPWELL_ASSIGN_OR_RETURN(TokenRecord token, store.Create({.id = id, .digest = sha, ...}));
//   STEPWELL_ASSIGN_OR_RETURN(LivingTokens living, store.ReadLiving());
//
// Errors: kUnavailable = come again. Thread-safe; each call blocks on the database.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "storage/ingest_store.h"

namespace stepwell {

// Those that live at once: masters hold them in memory.
inline constexpr std::int64_t kTokensLivingMax = 10'000;
// Of those that were fetched, which are beside them: of one maker for one trial.
inline constexpr std::int64_t kFetchedPerTrialMax = 10'000;
// Of one maker for all trials, those of the last ten minutes that live no more among them.
inline constexpr std::int64_t kFetchedPerMakerMax = 50'000;
// Of those that were renewed one from the other: a thousand machines may have been given the first, and renew it. One that
// renews again and again takes no other's place.
inline constexpr std::int64_t kFamilyLivingMax = 2048;
// So long after the first of them the last one ends.
inline constexpr absl::Duration kFamilyAgeMax = absl::Hours(90 * 24);

struct TokenRecord {
  std::string id = {};      // 12 of [0-9a-f]
  std::string digest = {};  // SHA-256 of the secret; empty where a certificate opens it
  std::string name = {};
  std::vector<std::string> grants = {};  // as written on command lines
  std::int64_t created_time_us = 0;
  std::int64_t expires_time_us = 0;  // 0 = never
  std::int64_t used_time_us = 0;     // 0 = not yet
  std::int64_t revoked_time_us = 0;  // 0 = it lives
  std::string certificate = {};  // "dns:agent-7.lab": the name that opens it; empty = a secret does
  // Whose end ends it, where it was fetched: an id, or "admin:" and what tells one token of a file from the
  // next; empty = Create made it.
  std::string made_by = {};
  std::string family = {};  // the id of the first of those that were renewed one from the other
};

// A token to be made by who shows another one.
struct TokenFetch {
  std::string id = {};
  std::string digest = {};
  std::string name = {};
  std::string grant = {};  // of one trial
  // Whose end ends it, as in TokenRecord; and the id of what was shown, where the database has that: both are
  // looked at as it is made.
  std::string made_by = {};
  std::string shown_id = {};
  std::string family = {};       // empty = it is the first
  absl::Duration lifetime = {};  // shortened to its maker's
};

// Both grow with what was done, ever.
struct TokenNumbers {
  std::int64_t change_no = 0;  // by Create and Revoke
  std::int64_t fetch_no = 0;   // by Fetch
  bool operator==(const TokenNumbers&) const = default;
};

// Neither revoked nor expired, at one moment.
struct LivingTokens {
  TokenNumbers numbers = {};  // as they were before, at the latest
  std::vector<TokenRecord> tokens = {};
};

// Newest first.
struct TokenPage {
  bool with_ended = false;
  bool with_fetched = false;
  // The last of the page before.
  struct After {
    std::int64_t created_time_us = 0;
    std::string id = {};
  };
  std::optional<After> after = {};
  std::int32_t limit = 100;
};

struct TrialPlace {
  std::int64_t trial_id = 0;  // 0 = not known
  std::string project = {};
  std::string external_id = {};  // empty = known by number alone
};

class TokenStore {
 public:
  virtual ~TokenStore() = default;

  // With its times as the database gave them. kResourceExhausted beyond kTokensLivingMax; kAlreadyExists where
  // another that lives is opened by the same certificate. What ended 30 days ago goes meanwhile.
  // REQUIRES: one of digest and certificate.
  [[nodiscard]] virtual absl::StatusOr<TokenRecord> Create(const TokenRecord& token) = 0;
  [[nodiscard]] virtual absl::StatusOr<std::vector<TokenRecord>> List(const TokenPage& page) = 0;
  // With its times as the database gave them. kUnauthenticated: its maker, or what was shown, has ended;
  // kResourceExhausted beyond kFetchedPerTrialMax, kFetchedPerMakerMax or kFamilyLivingMax. What ended ten minutes ago
  // goes meanwhile; of a family that lives the last 4096 that ended stay, for Revoke.
  [[nodiscard]] virtual absl::StatusOr<TokenRecord> Fetch(const TokenFetch& fetch) = 0;
  // For good, and with it those that it made, those of its family too; once more changes nothing. kNotFound.
  [[nodiscard]] virtual absl::StatusOr<TokenRecord> Revoke(const std::string& id) = 0;
  [[nodiscard]] virtual absl::StatusOr<TokenNumbers> ReadNumbers() = 0;
  [[nodiscard]] virtual absl::StatusOr<LivingTokens> ReadLiving() = 0;
  // Those that live no more and have a secret, by no certificate: the `limit` that ended last, of these the last one last.
  [[nodiscard]] virtual absl::StatusOr<std::vector<TokenRecord>> ReadEnded(int limit) = 0;
  // Those that were fetched beyond `fetch_no`, and live.
  [[nodiscard]] virtual absl::StatusOr<LivingTokens> ReadFetched(std::int64_t fetch_no) = 0;
  // Pairs of id and microseconds since 1970; an older time than the stored one changes nothing.
  [[nodiscard]] virtual absl::Status NoteUsed(
      const std::vector<std::pair<std::string, std::int64_t>>& used) = 0;
  // Of a trial that is or was there: a deleted one has its place still. kNotFound.
  [[nodiscard]] virtual absl::StatusOr<TrialPlace> FindPlace(const TrialSelector& trial) = 0;
};

// What whoever may not see a trial hears, and whoever asks for one that is not there.
absl::Status NoSuchTrial(const TrialSelector& trial);

}  // namespace stepwell
