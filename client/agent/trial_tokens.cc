#include "client/agent/trial_tokens.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "absl/random/distributions.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/log.h"
#include "client/agent/file_owner.h"

namespace stepwell::agent {
namespace {

// The thread's own time, whatever a core or a master says.
constexpr absl::Duration kLookIntervalMin = absl::Microseconds(100);
constexpr absl::Duration kTellInterval = absl::Minutes(1);
// Of one trial: of so many runs on this machine the newest.
constexpr std::size_t kBroughtMax = 8;

v1::TrialRef RefOf(const std::string& project, const std::string& trial) {
  v1::TrialRef ref;
  absl::string_view text = trial;
  std::int64_t id = 0;
  if (absl::ConsumePrefix(&text, "id:") && absl::SimpleAtoi(text, &id)) {
    ref.set_trial_id(id);
  } else {
    ref.set_project(project);
    ref.set_external_id(trial);
  }
  return ref;
}

// By the master's own clock.
absl::Duration LifeOf(const v1::Token& token) {
  return absl::FromUnixMicros(token.expires_time_us()) -
         absl::FromUnixMicros(token.created_time_us());
}

// A master that lies, too, is shown nothing that a header cannot carry, and not asked without end.
absl::Status CheckFetched(const v1::FetchIngestTokenResponse& response_untrusted) {
  if (!IsTokenText(response_untrusted.text())) {
    return absl::InvalidArgumentError("what the master sent is no token");
  }
  if (LifeOf(response_untrusted.token()) <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("the token that the master sent has ended");
  }
  return absl::OkStatus();
}

// Who is asked may say what it was shown, and what it says is logged.
absl::Status WithoutText(const absl::Status& status, const std::string& text) {
  if (text.empty()) return status;
  return absl::Status(status.code(), absl::StrReplaceAll(status.message(), {{text, "(a token)"}}));
}

}  // namespace

TrialTokens::TrialTokens(Options options, std::unique_ptr<TokenCalls> calls, const Clock& clock)
    : options_(std::move(options)),
      calls_(std::move(calls)),
      clock_(clock),
      kept_(options_.kept),
      unclaimed_(options_.kept) {}

std::shared_ptr<TrialToken> TrialTokens::For(const std::string& server, const std::string& project,
                                             const std::string& trial, const std::string& brought) {
  if (calls_ == nullptr) return nullptr;
  if (!HasOwn(server) && !options_.has_certificate && brought.empty()) return nullptr;
  const absl::MutexLock lock(&mu_);
  if (is_stopping_) return nullptr;
  has_news_ = true;
  const auto known = entries_.find({server, project, trial});
  if (known != entries_.end()) {
    AddBroughtLocked(known->first, known->second, brought);
    return known->second.token;
  }
  if (entries_.size() >= kTrialsMax) {
    // Of trials that are over, and may have something to upload still.
    std::erase_if(entries_, [](const auto& each) { return !IsRenewed(each.second); });
    if (entries_.size() >= kTrialsMax) return nullptr;
  }
  auto token = std::make_shared<TrialToken>();
  const auto added =
      entries_.emplace(Key{server, project, trial}, Entry{token, TokenRenewal(clock_.Monotonic())});
  AddBroughtLocked(added.first->first, added.first->second, brought);
  if (!is_started_) {
    is_started_ = true;
    worker_ = Worker("agent-tokens", [this] { Run(); });
  }
  return token;
}

void TrialTokens::AddBroughtLocked(const Key& key, Entry& entry, const std::string& brought) {
  if (brought.empty()) return;
  const bool is_own = brought == options_.own_token;
  entry.is_of_own = entry.is_of_own || is_own;
  is_own_brief_ = is_own_brief_ || is_own;
  const auto add = [&entry](const std::string& text) {
    auto& all = entry.brought;
    if (std::find(all.begin(), all.end(), text) != all.end()) return;
    // The newest is good for longest.
    all.insert(all.begin(), text);
    if (all.size() > kBroughtMax) all.pop_back();
  };
  add(brought);
  std::erase_if(unclaimed_, [&](const KeptToken& each) {
    if (Key{each.server, each.project, each.trial} != key) return false;
    add(each.text);
    return true;
  });
}

std::string TrialTokens::OwnForLocked(const std::string& server) const {
  if (!HasOwn(server)) return "";
  for (const auto& [key, entry] : entries_) {
    if (std::get<0>(key) != server || !entry.renews_own()) continue;
    if (std::string newest = entry.token->shown().text; !newest.empty()) return newest;
  }
  return options_.own_token;
}

std::string TrialTokens::OwnFor(const std::string& server) const {
  const absl::MutexLock lock(&mu_);
  return OwnForLocked(server);
}

std::string TrialTokens::StreamFor(const std::string& server) const {
  const absl::MutexLock lock(&mu_);
  std::string own = OwnForLocked(server);
  // A certificate is looked at where no token is shown.
  const bool is_good =
      own.empty() ? options_.has_certificate : own != options_.own_token || !is_own_brief_;
  if (is_good) return own;
  for (const auto& [key, entry] : entries_) {
    if (std::get<0>(key) != server) continue;
    if (std::string text = entry.token->shown().text; !text.empty()) return text;
  }
  return own;
}

std::string TrialTokens::ShownFor(const std::string& server, const v1::TrialRef& trial) const {
  const bool is_by_number = trial.trial_id() != 0;
  const std::string name =
      is_by_number ? absl::StrCat("id:", trial.trial_id()) : trial.external_id();
  {
    const absl::MutexLock lock(&mu_);
    for (const auto& [key, entry] : entries_) {
      const auto& [of_server, of_project, of_trial] = key;
      if (of_server != server || of_trial != name) continue;
      // A number says which, whatever project was named beside it.
      if (!is_by_number && of_project != trial.project()) continue;
      if (std::string text = entry.token->shown().text; !text.empty()) return text;
    }
  }
  return OwnFor(server);
}

void TrialTokens::Reject(const std::string& server, const std::string& text) const {
  const absl::MutexLock lock(&mu_);
  for (const auto& [key, entry] : entries_) {
    if (std::get<0>(key) == server) entry.token->Reject(text);
  }
}

void TrialTokens::Stop() {
  {
    const absl::MutexLock lock(&mu_);
    is_stopping_ = true;
  }
  if (calls_ != nullptr) calls_->Cancel();
  worker_.Join();
}

void TrialTokens::Run() {
  // It may have been started while its starter acted as a user, who may not read the agent's certificate.
  const ActAs oneself(FileOwner{geteuid(), getegid()});
  while (AwaitDue()) FetchNext();
}

bool TrialTokens::AwaitDue() {
  const absl::MutexLock lock(&mu_);
  const auto happened = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return is_stopping_ || has_news_;
  };
  if (entries_.empty()) {
    mu_.Await(absl::Condition(&happened));
  } else {
    const absl::Duration now = clock_.Monotonic();
    absl::Duration next = now + options_.look_interval;
    for (const auto& [key, entry] : entries_) {
      if (IsRenewed(entry)) next = std::min(next, FetchTimeLocked(key, entry, now));
    }
    mu_.AwaitWithTimeout(absl::Condition(&happened), std::max(next - now, kLookIntervalMin));
  }
  has_news_ = false;
  return !is_stopping_;
}

bool TrialTokens::LookAroundLocked(absl::Duration now) {
  bool changed = false;
  for (auto& [key, entry] : entries_) {
    if (const std::string rejected = entry.token->TakeRejected(); !rejected.empty()) {
      entry.renewal.OnRejected(rejected, now);
    }
    const std::uint64_t before = entry.token->version();
    entry.token->Set(entry.renewal.Shown(now));
    changed = changed || entry.token->version() != before;
  }
  // Nobody shows it any more, and it has ended: the next one who does begins anew.
  std::erase_if(entries_, [now](const auto& each) {
    return !IsRenewed(each.second) && each.second.renewal.Shown(now).empty();
  });
  return changed;
}

std::vector<KeptToken> TrialTokens::KeptLocked() const {
  std::vector<KeptToken> own;
  for (const auto& [key, entry] : entries_) {
    std::string text = entry.is_kept ? entry.token->shown().text : "";
    if (text.empty()) continue;
    const auto& [server, project, trial] = key;
    own.push_back({server, project, trial, std::move(text), entry.ends});
  }
  return InOrderToKeep(std::move(own), unclaimed_, clock_.Now());
}

void TrialTokens::KeepNews() {
  std::vector<KeptToken> kept;
  {
    const absl::MutexLock lock(&mu_);
    kept = KeptLocked();
  }
  if (kept == kept_) return;
  options_.keep(kept);
  kept_ = std::move(kept);
}

absl::Duration TrialTokens::FetchTimeLocked(const Key& key, const Entry& entry,
                                            absl::Duration now) const {
  const absl::Duration paused = pauses_.Until(std::get<0>(key));
  const absl::Duration next = entry.renewal.NextTime(now);
  // What is shown lapses whether or not its master is asked.
  return entry.renewal.IsFetchDue(next) ? std::max(next, paused) : next;
}

// Who waited longest, so that no master's trials stand before all others'.
std::optional<TrialTokens::Due> TrialTokens::FindDueLocked(absl::Duration now) const {
  std::optional<Due> due;
  absl::Duration first = absl::InfiniteDuration();
  for (const auto& [key, entry] : entries_) {
    if (!IsRenewed(entry) || !entry.renewal.IsFetchDue(now)) continue;
    const absl::Duration since = FetchTimeLocked(key, entry, now);
    if (since > now || since >= first) continue;
    first = since;
    due = Due{key, entry.renewal.Shown(now), entry.brought.empty() ? "" : entry.brought.front()};
  }
  return due;
}

void TrialTokens::FetchNext() {
  std::optional<Due> due;
  bool changed = false;
  {
    const absl::MutexLock lock(&mu_);
    const absl::Duration now = clock_.Monotonic();
    changed = LookAroundLocked(now);
    due = FindDueLocked(now);
  }
  if (changed) options_.on_change();
  if (!due) return;
  const absl::Duration asked = clock_.Monotonic();
  Take(*due, asked, Ask(*due));
  KeepNews();
}

absl::StatusOr<v1::FetchIngestTokenResponse> TrialTokens::Ask(const Due& due) {
  const auto& [server, project, trial] = due.key;
  v1::FetchIngestTokenRequest request;
  *request.mutable_trial() = RefOf(project, trial);
  const std::string with = !due.shown.empty()     ? due.shown
                           : !due.brought.empty() ? due.brought
                                                  : OwnFor(server);
  auto response = calls_->Fetch(server, with, request);
  if (!response.ok()) return WithoutText(response.status(), with);
  if (const absl::Status usable = CheckFetched(*response); !usable.ok()) return usable;
  return response;
}

void TrialTokens::Take(const Due& due, absl::Duration asked,
                       const absl::StatusOr<v1::FetchIngestTokenResponse>& response) {
  {
    const absl::MutexLock lock(&mu_);
    const absl::Duration now = clock_.Monotonic();
    pauses_.OnAnswer(std::get<0>(due.key), response.status(), !due.shown.empty(), now);
    const auto found = entries_.find(due.key);
    if (found == entries_.end()) return;
    Entry& entry = found->second;
    if (response.ok()) {
      const absl::Duration lives = LifeOf(response->token());
      const bool begins_family = due.shown.empty() && response->renews();
      if (due.shown.empty()) {
        entry.is_of_fetched = begins_family;
        entry.is_kept = begins_family && !due.brought.empty();
        entry.is_of_own = entry.is_of_own || due.brought.empty();
      }
      entry.ends = clock_.Now() + lives;
      if (begins_family) entry.renewal.SetOnlyOne();
      entry.is_told = entry.is_own_told = false;
      entry.renewal.OnFetched(response->text(), lives, asked, absl::Uniform(chance_, 0.0, 1.0));
      log::Debug("token_fetched", {{"server", std::get<0>(due.key)},
                                   {"trial", std::get<2>(due.key)},
                                   {"token", response->token().token_id()},
                                   {"seconds", absl::ToInt64Seconds(lives)}});
    } else {
      entry.renewal.OnFailed(response.status(), due.shown, now);
      if (!TryOtherWayLocked(due, response.status(), entry, now)) {
        TellFailureLocked(due, entry, response.status());
      }
    }
    entry.token->Set(entry.renewal.Shown(now));
  }
  options_.on_change();
}

bool TrialTokens::TryOtherWayLocked(const Due& due, const absl::Status& why, Entry& entry,
                                    absl::Duration now) {
  const bool is_over = absl::IsUnauthenticated(why);
  if (!due.shown.empty() || due.brought.empty()) return false;
  if (!is_over && !absl::IsPermissionDenied(why)) return false;
  const bool has_own = HasOwn(std::get<0>(due.key)) && due.brought != options_.own_token;
  const bool has_other = entry.brought.size() > 1 || has_own || options_.has_certificate;
  // It has ended, as one of an older process does, or is not of this trial. The last one is kept where that may pass.
  if (is_over || has_other) std::erase(entry.brought, due.brought);
  if (has_other) entry.renewal.TrySoon(now);
  return has_other;
}

void TrialTokens::TellFailureLocked(const Due& due, Entry& entry, const absl::Status& why) {
  // An older master, and one that asks nobody, have none to give: no reason to look.
  if (absl::IsUnimplemented(why) || absl::IsFailedPrecondition(why) || absl::IsCancelled(why)) {
    return;
  }
  // Of a trial once until it goes well again, once more where the agent's own is refused, and of all of them one in a minute.
  const bool is_own_refused = due.shown.empty() && absl::IsUnauthenticated(why);
  bool& is_told = is_own_refused ? entry.is_own_told : entry.is_told;
  const absl::Duration now = clock_.Monotonic();
  if (is_told || now - failure_told_ < kTellInterval) return;
  is_told = true;
  failure_told_ = now;
  const char* then = !entry.renewal.Shown(now).empty() ? "the one of before is shown"
                     : is_own_refused ? "the agent's own is shown, though it was refused"
                                      : "the agent's own is shown";
  log::Warning("token_not_fetched", {{"server", std::get<0>(due.key)},
                                     {"trial", std::get<2>(due.key)},
                                     {"why", std::string(why.message())},
                                     {"then", then}});
}

}  // namespace stepwell::agent
