// Caller: who shows a token, or a certificate, as long as its calls and writers live: what it may do, whether it
// has ended since. Null where this master asks nobody for a token: whoever calls may do everything.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "server/grants.h"
#include "storage/project_filter.h"
#include "storage/trial_filter.h"

namespace stepwell {

// Thread-safe.
struct TokenHolder {
  std::string id;  // "admin" for the one in the file
  std::string
      digest;  // of the secret; of the whole for the one in the file; empty: no secret opens it
  std::string name;         // for people
  std::string certificate;  // whose name opens it, as in CertificateNames; empty = its secret does
  Grants grants;
  std::int64_t expires_time_us = 0;  // 0 = never
  // As in TokenRecord: of one that was fetched.
  std::string made_by;
  std::string family;
  // Revoked, expired, or no more in its file. Never taken back.
  std::atomic<bool> has_ended{false};
  // When it was last shown; 0 = not since that was noted.
  std::atomic<std::int64_t> used_time_us{0};
  // Of a connection whose certificate ends before it, or may: the one that is shown there, whose end is this one's, too.
  std::shared_ptr<TokenHolder> of;
};

using Caller =
    std::shared_ptr<TokenHolder>;  // token_guard, and all calls and writers that showed it

// Whose allowances it uses: whoever fetches many has no more of them. What the file's token fetched names that
// one with a mark of its secret, which it pays without.
inline std::string PayerOf(const TokenHolder& holder) {
  if (holder.made_by.empty()) return holder.id;
  return holder.made_by.substr(0, holder.made_by.find(':'));
}

// Empty where nobody is asked.
inline std::string PayerOf(const Caller& caller) {
  return caller == nullptr ? std::string() : PayerOf(*caller);
}

inline bool HasEnded(const Caller& caller) {
  return caller != nullptr &&
         (caller->has_ended.load(std::memory_order_relaxed) || HasEnded(caller->of));
}

// Of which trials it may be told.
inline ProjectFilter ReadableProjects(const Caller& caller) {
  return caller == nullptr ? kAllProjects : caller->grants.ReadableProjects();
}

// To which trials it may add.
inline TrialFilter IngestibleTrials(const Caller& caller) {
  return caller == nullptr ? kAllProjects : caller->grants.IngestibleTrials();
}

}  // namespace stepwell
