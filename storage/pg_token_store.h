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
    int connections_max = 2;  // and two more
    // For tests.
    std::int64_t fetched_per_trial_max = kFetchedPerTrialMax;
    std::int64_t fetched_per_maker_max = kFetchedPerMakerMax;
    std::int64_t family_living_max = kFamilyLivingMax;
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
  absl::StatusOr<std::vector<TokenRecord>> ReadEnded(int limit) override;
  absl::StatusOr<LivingTokens> ReadFetched(std::int64_t fetch_no) override;
  absl::Status NoteUsed(const std::vector<std::pair<std::string, std::int64_t>>& used) override;
  absl::StatusOr<TrialPlace> FindPlace(const TrialSelector& trial) override;

 private:
  // kResourceExhausted: no more may be made. Within Fetch's transaction.
  absl::Status CheckRoom(PgConnection& connection, const TokenFetch& fetch) const;

  const std::int64_t fetched_per_trial_max_;
  const std::int64_t fetched_per_maker_max_;
  const std::int64_t family_living_max_;
  // ReadNumbers, ReadLiving, ReadFetched, NoteUsed: within two seconds or not at all.
  PgShelf watch_;
  PgShelf shelf_;
  PgShelf
      fetches_;  // Fetch, one after the other: anybody may ask, and revoking waits for none of them
};

}  // namespace stepwell
