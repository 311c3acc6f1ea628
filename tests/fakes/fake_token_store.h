// FakeTokenStore: a TokenStore in memory that knows some trials. Thread-safe in what it does; its members are looked at, and set,
// while nobody else is at it.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "storage/token_store.h"

namespace stepwell {

class FakeTokenStore final : public TokenStore {
 public:
  absl::StatusOr<TokenRecord> Create(const TokenRecord& token) override {
    const absl::MutexLock lock(&mu);
    if (!status.ok()) return status;
    ++change_no;
    tokens.push_back(token);
    return token;
  }
  absl::StatusOr<std::vector<TokenRecord>> List(const TokenPage&) override { return tokens; }
  absl::StatusOr<TokenRecord> Revoke(const std::string& id) override {
    const absl::MutexLock lock(&mu);
    const auto found = std::find_if(tokens.begin(), tokens.end(),
                                    [&](const TokenRecord& token) { return token.id == id; });
    if (found == tokens.end()) return absl::NotFoundError(id);
    ++change_no;
    const TokenRecord revoked = *found;
    std::erase_if(tokens, [&](const TokenRecord& token) {
      const bool is_kin = !revoked.family.empty() && token.family == revoked.family;
      if (token.id != id && token.made_by != id && !is_kin) return false;
      ended.push_back(token);
      return true;
    });
    return revoked;
  }
  absl::StatusOr<TokenRecord> Fetch(const TokenFetch& fetch) override {
    const absl::MutexLock lock(&mu);
    if (!status.ok()) return status;
    TokenRecord token{.id = fetch.id, .digest = fetch.digest, .name = fetch.name};
    token.grants = {fetch.grant};
    token.made_by = fetch.made_by;
    token.family = fetch.family.empty() ? fetch.id : fetch.family;
    token.expires_time_us = absl::ToUnixMicros(absl::Now() + fetch.lifetime);
    ++fetch_no;
    tokens.push_back(token);
    fetched.push_back(token);
    return token;
  }
  absl::StatusOr<TokenNumbers> ReadNumbers() override {
    ++change_reads;
    if (before_change_read) before_change_read();
    const absl::MutexLock lock(&mu);
    if (!status.ok()) return status;
    return TokenNumbers{change_no, fetch_no};
  }
  absl::StatusOr<LivingTokens> ReadFetched(std::int64_t after) override {
    if (before_fetched_read) before_fetched_read();
    const absl::MutexLock lock(&mu);
    ++fetched_reads;
    if (!status.ok()) return status;
    return LivingTokens{{change_no, fetch_no}, {fetched.begin() + after, fetched.end()}};
  }
  absl::StatusOr<LivingTokens> ReadLiving() override {
    ++living_reads;
    LivingTokens living;
    {
      const absl::MutexLock lock(&mu);
      if (!status.ok()) return status;
      living = {{change_no, fetch_no}, tokens};
    }
    if (before_living_answer) before_living_answer();
    return living;
  }
  absl::StatusOr<std::vector<TokenRecord>> ReadEnded(int) override {
    if (!status.ok()) return status;
    return ended;
  }
  absl::Status NoteUsed(const std::vector<std::pair<std::string, std::int64_t>>& noted) override {
    used.insert(used.end(), noted.begin(), noted.end());
    return status;
  }
  absl::StatusOr<TrialPlace> FindPlace(const TrialSelector& trial) override {
    ++place_reads;
    if (before_place_read) before_place_read();
    if (!status.ok()) return status;
    for (const TrialPlace& place : places) {
      const bool is_named = place.project == trial.project &&
                            place.external_id == trial.external_id && !place.external_id.empty();
      if (trial.trial_id != 0 ? place.trial_id == trial.trial_id : is_named) return place;
    }
    return NoSuchTrial(trial);
  }

  std::vector<TokenRecord> tokens;
  std::vector<TrialPlace> places;
  std::vector<std::pair<std::string, std::int64_t>> used;
  std::vector<TokenRecord> fetched;
  std::vector<TokenRecord> ended;
  std::int64_t change_no = 0;
  std::int64_t fetch_no = 0;
  int fetched_reads = 0;
  int change_reads = 0;
  int living_reads = 0;
  std::atomic<int> place_reads = 0;
  std::function<void()> before_change_read;
  std::function<void()> before_fetched_read;
  std::function<void()> before_place_read;
  std::function<void()> before_living_answer;  // which is what was so before
  absl::Mutex mu;
  absl::Status status;  // of all calls
};

}  // namespace stepwell
