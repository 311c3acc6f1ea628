// PgTokenStore: TokenStore on PostgreSQL, on connections of its own, so that nobody's door waits for
// somebody's read; what keeps tokens true has one that no caller's questions can take. Thread-safe.
//
//   PgTokenStore store({.url = url});
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "storage/pg_shelf.h"
#include "storage/token_store.h"

namespace stepwell {

class PgTokenStore final : public TokenStore {
 public:
  struct Options {
    std::string url;
    int connections_max = 2;  // and one more
    // For tests.
    std::int64_t fetched_per_trial_max = kFetchedPerTrialMax;
    // Of all its connections; null = none.
    std::shared_ptr<const PgCut> cut = nullptr;
  };
  // Connects at the first call. REQUIRES: the schema is migrated.
  explicit PgTokenStore(const Options& options);

  absl::StatusOr<TokenRecord> Create(const TokenRecord& token) override;
  absl::StatusOr<std::vector<TokenRecord>> List(const TokenPage& page) override;
  absl::StatusOr<TokenRecord> Fetch(const TokenFetch& fetch) override;
  absl::StatusOr<TokenRecord> Revoke(const std::string& id) override;
  absl::StatusOr<TokenNumbers> ReadNumbers() override;
  absl::StatusOr<LivingTokens> ReadLiving() override;
  absl::StatusOr<LivingTokens> ReadFetched(std::int64_t fetch_no) override;
  absl::Status NoteUsed(const std::vector<std::pair<std::string, std::int64_t>>& used) override;
  absl::StatusOr<TrialPlace> FindPlace(const TrialSelector& trial) override;

 private:
  const std::int64_t fetched_per_trial_max_;
  PgShelf
      watch_;  // ReadNumbers, ReadLiving, ReadFetched, NoteUsed: within two seconds or not at all
  PgShelf shelf_;
};

}  // namespace stepwell
