#include "server/ended_tokens.h"

#include "server/token_text.h"

namespace stepwell {
namespace {

// Stays in this process: nobody is told by it.
constexpr char kPayload[] = "stepwell/token_ended";

}  // namespace

void EndedTokens::Note(const std::string& id, const std::string& digest, Kind kind) {
  if (digest.empty()) return;
  if (!digests_.insert_or_assign(id, digest).second) return;
  std::deque<std::string>& ids = ids_.at(static_cast<std::size_t>(kind));
  ids.push_back(id);
  if (ids.size() <= count_max_) return;
  digests_.erase(ids.front());
  ids.pop_front();
}

bool EndedTokens::Knows(std::string_view id, std::string_view digest) const {
  const auto found = digests_.find(absl::string_view(id.data(), id.size()));
  return found != digests_.end() && IsSameDigest(digest, found->second);
}

absl::Status EndedTokenRefusal(absl::string_view words) {
  absl::Status status = absl::UnauthenticatedError(words);
  status.SetPayload(kPayload, absl::Cord());
  return status;
}

bool IsEndedTokenRefusal(const absl::Status& status) {
  return status.GetPayload(kPayload).has_value();
}

}  // namespace stepwell
