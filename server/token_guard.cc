#include "server/token_guard.h"

#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "server/token_text.h"

namespace stepwell {
namespace {

constexpr absl::Duration kLookEach = absl::Seconds(1);

constexpr absl::string_view kInside = "Inside_";
// How long one that was fetched is remembered after its end, for a clock that is set back.
constexpr std::int64_t kFetchedGraceUs = 60'000'000;
// How far the database's clock may be from this machine's.
constexpr std::int64_t kClocksApartUs = 60'000'000;
constexpr char kCertificateEnded[] =
    "the grants of this client's certificate were revoked, or have expired";

constexpr char kAdminId[] = "admin";
// The same words for both: who guesses learns nothing.
constexpr char kNotKnown[] = "this master knows no such token, or it was revoked";

// Another for another token in the file; of a digest of a digest, which tells nobody what the token is.
std::string AdminMaker(const std::string& digest) {
  const std::string mark = TokenDigest(digest).substr(0, kTokenIdDigits / 2);
  return absl::StrCat(kAdminId, ":", absl::BytesToHexString(mark));
}

EndedTokens::Kind KindOf(const std::string& made_by) {
  return made_by.empty() ? EndedTokens::Kind::kCreated : EndedTokens::Kind::kFetched;
}

// has_ended is never taken back: another holder lives.
Caller Anew(const TokenHolder& like) {
  auto holder = std::make_shared<TokenHolder>();
  holder->id = like.id;
  holder->digest = like.digest;
  holder->name = like.name;
  holder->certificate = like.certificate;
  holder->grants = like.grants;
  holder->expires_time_us = like.expires_time_us;
  holder->made_by = like.made_by;
  holder->family = like.family;
  return holder;
}

// Null: not understood; of a newer master, perhaps.
Caller HolderOf(const TokenRecord& token) {
  absl::StatusOr<Grants> grants = Grants::Parse(token.grants);
  if (!grants.ok()) {
    log::Warning("token_not_understood", {{"token", token.id}, {"why", grants.status().message()}});
    return nullptr;
  }
  auto holder = std::make_shared<TokenHolder>();
  holder->id = token.id;
  holder->digest = token.digest;
  holder->name = token.name;
  holder->certificate = token.certificate;
  holder->grants = *std::move(grants);
  holder->expires_time_us = token.expires_time_us;
  holder->made_by = token.made_by;
  holder->family = token.family;
  return holder;
}

absl::flat_hash_map<std::string, Caller> HoldersOf(const std::vector<TokenRecord>& tokens) {
  absl::flat_hash_map<std::string, Caller> holders;
  for (const TokenRecord& token : tokens) {
    if (Caller holder = HolderOf(token)) holders.emplace(token.id, std::move(holder));
  }
  return holders;
}

// Whether it may be one that InsideAuthorization made: of no form that clients show.
bool IsInsideAuthorization(std::string_view authorization) {
  return absl::StartsWith({authorization.data(), authorization.size()}, kInside);
}

}  // namespace

TokenGuard::TokenGuard(std::string path, const Clock& clock)
    : path_(std::move(path)), clock_(clock), inside_(absl::StrCat(kInside, MakeSecret(), "_")) {}

absl::StatusOr<std::shared_ptr<TokenGuard>> TokenGuard::Open(const std::string& path,
                                                             const Clock& clock) {
  STEPWELL_ASSIGN_OR_RETURN(const bool has_made_file, MakeTokenFile(path));
  std::shared_ptr<TokenGuard> guard(new TokenGuard(path, clock));
  guard->has_made_file_ = has_made_file;
  STEPWELL_ASSIGN_OR_RETURN(StoredToken stored, ReadTokenFile(path));
  const absl::MutexLock lock(&guard->mu_);
  guard->Take(std::move(stored));
  guard->looked_ = clock.Monotonic();
  return guard;
}

absl::StatusOr<Caller> TokenGuard::Identify(std::string_view authorization) {
  const std::string_view secret = authorization.substr(0, inside_.size());
  if (IsInsideAuthorization(authorization) && IsSameDigest(secret, inside_)) {
    return IdentifyInside(authorization.substr(inside_.size()));
  }
  return IdentifyToken(ShownToken(authorization));
}

std::string TokenGuard::InsideAuthorization(const TokenHolder& caller) const {
  return inside_ + caller.id;
}

absl::StatusOr<Caller> TokenGuard::IdentifyInside(std::string_view id) {
  const absl::MutexLock lock(&mu_);
  STEPWELL_RETURN_IF_ERROR(CheckMemory());
  const auto found = holders_.find(std::string(id));
  if (found == holders_.end()) return absl::UnauthenticatedError(kCertificateEnded);
  return Use(found->second);
}

absl::StatusOr<Caller> TokenGuard::IdentifyCertificate(const std::vector<std::string>& names) {
  if (names.empty()) return absl::UnauthenticatedError(kNoToken);
  const absl::MutexLock lock(&mu_);
  STEPWELL_RETURN_IF_ERROR(CheckMemory());
  std::vector<Caller> meant;
  for (const std::string& name : names) {
    const auto [first, last] = named_.equal_range(name);
    for (auto at = first; at != last; ++at) {
      const auto found = holders_.find(at->second);
      if (found != holders_.end()) meant.push_back(found->second);
    }
  }
  if (meant.size() == 1) return Use(meant.front());
  if (meant.empty()) {
    return absl::UnauthenticatedError(
        absl::StrCat(kNoToken, "; no grants are given to this client's certificate"));
  }
  return absl::UnauthenticatedError(
      absl::StrCat("grants are given to several names of this client's certificate, ",
                   meant[0]->certificate, " (", meant[0]->id, ") and ", meant[1]->certificate, " (",
                   meant[1]->id, "), and it cannot be told which are meant: revoke one"));
}

absl::StatusOr<Caller> TokenGuard::Until(const Caller& caller, std::int64_t certificate_end_us) {
  if (caller == nullptr || certificate_end_us == 0) return caller;
  if (certificate_end_us <= absl::ToUnixMicros(clock_.Now())) {
    return absl::UnauthenticatedError(kPeerCertificateEnded);
  }
  const absl::MutexLock lock(&mu_);
  Caller& known = on_connections_[{caller.get(), certificate_end_us}];
  // One that a clock ended which has gone back since is ended for its calls.
  if (known == nullptr || known->has_ended) {
    known = Anew(*caller);
    known->of = caller;
  }
  return known;
}

void TokenGuard::LookAtConnections(std::int64_t now_us) {
  absl::erase_if(on_connections_, [&](const auto& entry) {
    TokenHolder& holder = *entry.second;
    if (entry.first.second <= now_us) End(holder);
    return holder.has_ended || entry.second.use_count() == 1;
  });
}

absl::Status TokenGuard::CheckMemory() const {
  if (clock_.Monotonic() - confirmed_ <= kMemory) return absl::OkStatus();
  return absl::UnavailableError("tokens cannot be looked up: the database does not answer");
}

absl::StatusOr<Caller> TokenGuard::Use(const Caller& caller) {
  const std::int64_t now_us = absl::ToUnixMicros(clock_.Now());
  if (caller->expires_time_us != 0 && caller->expires_time_us <= now_us) End(*caller);
  if (!MakerLives(*caller, now_us)) {
    End(*caller);
    return EndedTokenRefusal("the token that fetched this one has ended");
  }
  if (caller->has_ended) {
    return EndedTokenRefusal(caller->certificate.empty() ? "this token has expired"
                                                         : kCertificateEnded);
  }
  caller->used_time_us.store(now_us, std::memory_order_relaxed);
  return caller;
}

absl::StatusOr<Caller> TokenGuard::IdentifyToken(const std::string& token) {
  const std::optional<TokenParts> parts = SplitToken(token);
  const std::string whole = TokenDigest(token);
  const std::string secret = parts ? TokenDigest(parts->secret) : "";
  LookAgain();
  const absl::MutexLock lock(&mu_);
  if (token.empty()) return absl::UnauthenticatedError(kNoToken);
  if (admin_ != nullptr && IsSameDigest(whole, admin_->digest)) return admin_;
  // The one in the file is in no form that tells its id.
  if (!parts) {
    return ended_.Knows(AdminMaker(whole), whole) ? EndedTokenRefusal(kNotKnown)
                                                  : absl::UnauthenticatedError(kNotKnown);
  }
  STEPWELL_RETURN_IF_ERROR(CheckMemory());
  const auto found = holders_.find(std::string(parts->id));
  if (found == holders_.end()) {
    return ended_.Knows(parts->id, secret) ? EndedTokenRefusal(kNotKnown)
                                           : absl::UnauthenticatedError(kNotKnown);
  }
  if (!IsSameDigest(secret, found->second->digest)) return absl::UnauthenticatedError(kNotKnown);
  return Use(found->second);
}

void TokenGuard::Take(StoredToken stored) {
  if (admin_ == nullptr || !IsSameDigest(admin_->digest, stored.digest)) {
    if (admin_ != nullptr) {
      End(*admin_);
      ended_.Note(AdminMaker(admin_->digest), admin_->digest);
    }
    admin_ = std::make_shared<TokenHolder>();
    admin_->id = kAdminId;
    admin_->name = "the one in the file";
    admin_->digest = stored.digest;
    admin_->grants = Grants::Admin();
    admin_maker_ = AdminMaker(stored.digest);
    admin_since_us_ = absl::ToUnixMicros(clock_.Now());
  }
  stored_ = std::move(stored);
  is_gone_ = false;
}

void TokenGuard::End(TokenHolder& holder) {
  if (!holder.has_ended.exchange(true)) ++ended_count_;
}

bool TokenGuard::BeginLook() {
  const absl::MutexLock lock(&mu_);
  if (is_looking_ || clock_.Monotonic() - looked_ < kLookEach) return false;
  looked_ = clock_.Monotonic();
  is_looking_ = true;
  return true;
}

void TokenGuard::LookAgain() {
  if (!BeginLook()) return;
  absl::StatusOr<StoredToken> read = ReadTokenFile(path_);
  const absl::MutexLock lock(&mu_);
  is_looking_ = false;
  const bool is_known = !absl::IsUnavailable(read.status());
  if (!is_known && !is_unread_) {
    log::Error("token_file_not_read",
               {{"why", read.status().message()}, {"then", "what was known of it goes on"}});
  }
  is_unread_ = !is_known;
  if (!is_known) return;
  if (!read.ok()) return NoteGone(read.status());
  if (read->stamp != stored_.stamp) log::Info("token_taken", {{"file", path_}});
  Take(*std::move(read));
}

// Who takes the file away, or spoils it, means it: nobody has the token of before any more.
void TokenGuard::NoteGone(const absl::Status& why) {
  if (!is_gone_) log::Error("token_gone", {{"why", why.message()}});
  is_gone_ = true;
  stored_ = {};
  if (admin_ != nullptr) {
    End(*admin_);
    ended_.Note(AdminMaker(admin_->digest), admin_->digest);
  }
  admin_ = nullptr;
}

void TokenGuard::Learn(const std::vector<TokenRecord>& living, absl::Duration asked) {
  Holders holders = HoldersOf(living);
  std::multimap<std::string, std::string> named;
  for (const auto& [id, holder] : holders) {
    if (!holder->certificate.empty()) named.emplace(holder->certificate, id);
  }
  const absl::MutexLock lock(&mu_);
  LookAtMakers(living);
  TakeOutRevoked(holders, asked);
  for (const auto& [id, holder] : holders_) {
    const auto same = holders.find(id);
    const bool goes_on = same != holders.end() && !holder->has_ended &&
                         IsSameDigest(same->second->digest, holder->digest) &&
                         same->second->certificate == holder->certificate &&
                         same->second->grants.texts() == holder->grants.texts() &&
                         same->second->expires_time_us == holder->expires_time_us;
    // Calls that are under way hold the one of before.
    goes_on ? void(same->second = holder) : End(*holder);
    if (same == holders.end()) ended_.Note(id, holder->digest, KindOf(holder->made_by));
  }
  holders_ = std::move(holders);
  named_ = std::move(named);
  Confirmed(asked);
}

void TokenGuard::LearnFetched(const std::vector<TokenRecord>& fetched, absl::Duration asked) {
  Holders holders = HoldersOf(fetched);
  const absl::MutexLock lock(&mu_);
  LookAtMakers(fetched);
  TakeOutRevoked(holders, asked);
  // One that is known may be shown by calls that are under way, and stays.
  holders_.merge(holders);
  Confirmed(asked);
}

void TokenGuard::LookAtMakers(const std::vector<TokenRecord>& tokens) {
  if (admin_ == nullptr || is_other_told_) return;
  const std::string of_file = absl::StrCat(kAdminId, ":");
  for (const TokenRecord& token : tokens) {
    const bool is_others =
        absl::StartsWith(token.made_by, of_file) && token.made_by != admin_maker_;
    // Of before it may be this file's own, which had another token.
    if (!is_others || token.created_time_us < admin_since_us_ + kClocksApartUs) continue;
    is_other_told_ = true;
    return log::Warning("token_of_another_file",
                        {{"token", token.id},
                         {"made_by", token.made_by},
                         {"file", path_},
                         {"why",
                          "another master of this database has another token in its file: "
                          "that one, and what was fetched with it, opens nothing here; put "
                          "the same file at all of them"}});
  }
}

bool TokenGuard::Revoked::Ends(const TokenHolder& holder) const {
  return holder.id == id || holder.made_by == id || (!family.empty() && holder.family == family);
}

void TokenGuard::TakeOutRevoked(Holders& learned, absl::Duration asked) {
  for (Revoked& each : revoked_) {
    // Asked later, the database knew of it.
    if (each.time < asked) continue;
    // Of one that this master had not learned of.
    const auto found = learned.find(each.id);
    if (found != learned.end()) each.family = found->second->family;
    absl::erase_if(learned, [&](const auto& entry) { return each.Ends(*entry.second); });
  }
}

void TokenGuard::Confirmed(absl::Duration asked) {
  confirmed_ = asked;
  // Who learns does so in the order of asking.
  std::erase_if(revoked_, [&](const Revoked& each) { return each.time < asked; });
}

void TokenGuard::EndNow(const std::string& id) {
  const absl::MutexLock lock(&mu_);
  const auto found = holders_.find(id);
  const Revoked revoked{.id = id,
                        .family = found == holders_.end() ? "" : found->second->family,
                        .time = clock_.Monotonic()};
  revoked_.push_back(revoked);
  absl::erase_if(holders_, [&](const auto& entry) {
    TokenHolder& holder = *entry.second;
    if (!revoked.Ends(holder)) return false;
    End(holder);
    ended_.Note(holder.id, holder.digest, KindOf(holder.made_by));
    return true;
  });
}

void TokenGuard::LearnEnded(const std::vector<TokenRecord>& ended) {
  const absl::MutexLock lock(&mu_);
  for (const TokenRecord& token : ended) {
    ended_.Note(token.id, token.digest, KindOf(token.made_by));
  }
}

void TokenGuard::Confirm(absl::Duration asked) {
  const absl::MutexLock lock(&mu_);
  Confirmed(asked);
}

void TokenGuard::LookAround() {
  LookAgain();
  const absl::MutexLock lock(&mu_);
  const std::int64_t now_us = absl::ToUnixMicros(clock_.Now());
  // Forgotten as over, and alive by the clock of now.
  if (now_us < forgotten_us_) {
    misses_some_ = true;
    forgotten_us_ = 0;
  }
  LookAtConnections(now_us);
  fetched_count_ = 0;
  for (auto& [id, holder] : holders_) {
    if (holder->expires_time_us == 0) continue;
    if (holder->expires_time_us <= now_us || !MakerLives(*holder, now_us)) {
      End(*holder);
    } else if (holder->has_ended) {
      holder = Anew(*holder);
    }
    if (!holder->made_by.empty() && !holder->has_ended) ++fetched_count_;
  }
  const auto forgotten = absl::erase_if(holders_, [&](const auto& entry) {
    const TokenHolder& holder = *entry.second;
    if (holder.made_by.empty() || holder.expires_time_us >= now_us - kFetchedGraceUs) return false;
    ended_.Note(holder.id, holder.digest, KindOf(holder.made_by));
    return true;
  });
  if (forgotten > 0) forgotten_us_ = now_us - kFetchedGraceUs;
}

bool TokenGuard::TakeMissing() {
  const absl::MutexLock lock(&mu_);
  return std::exchange(misses_some_, false);
}

bool TokenGuard::MakerLives(const TokenHolder& holder, std::int64_t now_us) const {
  if (holder.made_by.empty()) return true;
  if (admin_ != nullptr && holder.made_by == admin_maker_) return true;
  const auto maker = holders_.find(holder.made_by);
  if (maker == holders_.end()) return false;
  const std::int64_t expires_us = maker->second->expires_time_us;
  return expires_us == 0 || expires_us > now_us;
}

std::string TokenGuard::MakerOf(const TokenHolder& caller) {
  if (!caller.made_by.empty()) return caller.made_by;
  return caller.id == kAdminId ? AdminMaker(caller.digest) : caller.id;
}

bool TokenGuard::Knows(const std::string& id) const {
  const absl::MutexLock lock(&mu_);
  const auto found = holders_.find(id);
  return found != holders_.end() && !found->second->has_ended;
}

std::int64_t TokenGuard::fetched_count() const {
  const absl::MutexLock lock(&mu_);
  return fetched_count_;
}

std::int64_t TokenGuard::ended_count() const {
  const absl::MutexLock lock(&mu_);
  return ended_count_;
}

std::vector<std::pair<std::string, std::int64_t>> TokenGuard::TakeUsed() {
  std::vector<std::pair<std::string, std::int64_t>> used;
  const absl::MutexLock lock(&mu_);
  for (const auto& [id, holder] : holders_) {
    const std::int64_t time_us = holder->used_time_us.exchange(0, std::memory_order_relaxed);
    if (time_us != 0) used.emplace_back(id, time_us);
  }
  return used;
}

}  // namespace stepwell
