// EndedTokens: tokens that lived and do no more, so that who shows one is told from who guesses: an agent goes on showing
// its own after it was revoked. By the digest of what makes each one nobody else's; the newest are kept, of those that were fetched
// and of all others apart: agents end the first by the thousand. A core; confined.
//
//   ended.Note(holder.id, holder.digest);
//   if (ended.Knows(parts->id, TokenDigest(parts->secret))) return EndedTokenRefusal("this token was revoked");
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace stepwell {

class EndedTokens {
 public:
  enum class Kind { kCreated, kFetched };

  // `count_max`: of each kind.
  explicit EndedTokens(std::size_t count_max = 20'000) : count_max_(count_max) {}

  // Of one id the last digest counts. An empty digest is of nothing that can be shown, and is left out.
  void Note(const std::string& id, const std::string& digest, Kind kind = Kind::kCreated);
  // Takes as long wherever the digests differ.
  bool Knows(std::string_view id, std::string_view digest) const;
  std::size_t count() const { return digests_.size(); }

 private:
  const std::size_t count_max_;
  absl::flat_hash_map<std::string, std::string> digests_;  // by id
  std::array<std::deque<std::string>, 2> ids_;  // of each kind, in the order of their ends
};

// kUnauthenticated, of a token that was shown whole and is over: no guess (WrongTokens). What its caller hears is `words`.
absl::Status EndedTokenRefusal(absl::string_view words);
bool IsEndedTokenRefusal(const absl::Status& status);

}  // namespace stepwell
