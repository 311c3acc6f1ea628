// TrialTokens: the short-lived tokens that an agent fetches, one for each trial and master, with what it was started with,
// and renews. It stands between the writers of a root, which show what is there now, and TokenRenewal, which decides when.
// Nobody waits for it: until a token is there, and where none is to be had, the agent's own is shown. Texts are in memory
// alone, but for what came of one that a writer brought: that is given to who keeps it (kept_tokens). Thread-safe; one thread, "agent-tokens", from the first wish on.
//
//   TrialTokens tokens({.own_token = text, .on_change = wake}, MakeTokenCalls(tls), clock);
//   const auto token = tokens.For("master:7817", "vision", "run-7");   // a writer's, as long as it is served
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/random/random.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/worker.h"
#include "client/agent/kept_tokens.h"
#include "client/agent/master_pauses.h"
#include "client/agent/token_calls.h"
#include "client/agent/token_renewal.h"
#include "client/agent/trial_token.h"

namespace stepwell::agent {

class TrialTokens {
 public:
  struct Options {
    // The agent's own, as it was started; empty = none.
    std::string own_token = {};
    // Its connections show a certificate.
    bool has_certificate = false;
    // Whether the agent's own token is for this master.
    std::function<bool(const std::string& server)> shows_own = [](const std::string&) {
      return true;
    };
    // Another one is to be shown; called on the thread, must not block.
    std::function<void()> on_change = [] {};
    // What an agent of before kept.
    std::vector<KeptToken> kept = {};
    // All that came of what writers brought, when it changed; called on the thread, may block.
    std::function<void(const std::vector<KeptToken>&)> keep = [](const std::vector<KeptToken>&) {};
    // What was refused, or let go of, is seen so often.
    absl::Duration look_interval = absl::Seconds(1);
  };
  // Kept at once; further trials show the agent's own.
  static constexpr std::size_t kTrialsMax = 1024;

  // `clock` outlives it. `calls` null: in plain, nothing is fetched.
  TrialTokens(Options options, std::unique_ptr<TokenCalls> calls, const Clock& clock);
  ~TrialTokens() { Stop(); }

  // What is shown for a trial, by whoever holds it; it is renewed as long as somebody does. `trial`: a name, or "id:7". Null where
  // there is nothing to fetch with, or no room. `brought`: what its writer has to fetch with in place of the agent's own, until that is
  // refused; empty = nothing. Not for writers that bring a token that is to be shown as it is.
  std::shared_ptr<TrialToken> For(const std::string& server, const std::string& project,
                                  const std::string& trial, const std::string& brought = "")
      ABSL_LOCKS_EXCLUDED(mu_);
  // What the agent shows to `server` for itself: its own token; where that is such a short-lived one itself, the newest that took
  // its place. Empty = none.
  std::string OwnFor(const std::string& server) const ABSL_LOCKS_EXCLUDED(mu_);
  // What a stream shows to `server`, whose writers show what is theirs: as OwnFor; where there is none, or it is one that a
  // training was given for a while, any that lives.
  std::string StreamFor(const std::string& server) const ABSL_LOCKS_EXCLUDED(mu_);
  // What is shown for an upload to a trial: its token, where one lives, also of a trial that is over; else the agent's own.
  std::string ShownFor(const std::string& server, const v1::TrialRef& trial) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // A master refused, as unknown or ended, what ShownFor or OwnFor gave. Heard within a second; about what was not fetched
  // nothing is done.
  void Reject(const std::string& server, const std::string& text) const ABSL_LOCKS_EXCLUDED(mu_);
  // The call under way is cut, and no other begins. Twice is fine.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // server, project, trial
  struct Entry {
    std::shared_ptr<TrialToken> token;  // and whoever shows it
    TokenRenewal renewal;
    // As For, the next one first: several runs of one trial bring each its own, and one that ended may be among them.
    std::vector<std::string> brought = {};
    bool is_of_fetched = false;  // what it was first fetched with was fetched as well
    bool is_of_own = false;      // that was the agent's own, or its writers bring the agent's own
    bool is_kept = false;        // it came of what a writer brought
    absl::Time ends = absl::InfinitePast();
    bool is_told = false;      // why none was to be had
    bool is_own_told = false;  // that the agent's own is refused
    // It takes the place of the agent's own.
    bool renews_own() const { return is_of_fetched && is_of_own; }
  };
  struct Due {
    Key key;
    std::string shown;
    std::string brought;
  };
  // It is kept from ending: somebody shows it, or it took the place of the agent's own.
  static bool IsRenewed(const Entry& entry) {
    return entry.renews_own() || entry.token.use_count() > 1;
  }
  bool HasOwn(const std::string& server) const {
    return !options_.own_token.empty() && options_.shows_own(server);
  }
  std::string OwnForLocked(const std::string& server) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddBroughtLocked(const Key& key, Entry& entry, const std::string& brought)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What was brought is refused, and there is something else to fetch with: that is next.
  bool TryOtherWayLocked(const Due& due, const absl::Status& why, Entry& entry, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<KeptToken> KeptLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void KeepNews() ABSL_LOCKS_EXCLUDED(mu_);
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  // False: it is over.
  bool AwaitDue() ABSL_LOCKS_EXCLUDED(mu_);
  // What happened meanwhile, and the first that is due.
  void FetchNext() ABSL_LOCKS_EXCLUDED(mu_);
  // When it is to be fetched, not while its master is left alone; or what is shown lapses.
  absl::Duration FetchTimeLocked(const Key& key, const Entry& entry, absl::Duration now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::optional<Due> FindDueLocked(absl::Duration now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<v1::FetchIngestTokenResponse> Ask(const Due& due) ABSL_LOCKS_EXCLUDED(mu_);
  void Take(const Due& due, absl::Duration asked,
            const absl::StatusOr<v1::FetchIngestTokenResponse>& response) ABSL_LOCKS_EXCLUDED(mu_);
  // True: what is shown changed.
  bool LookAroundLocked(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TellFailureLocked(const Due& due, Entry& entry, const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  const std::unique_ptr<TokenCalls> calls_;
  const Clock& clock_;
  std::vector<KeptToken> kept_;                              // as it was kept last; the thread's
  absl::BitGen chance_;                                      // the thread's
  absl::Duration failure_told_ = -absl::InfiniteDuration();  // the thread's

  mutable absl::Mutex mu_;
  std::map<Key, Entry> entries_ ABSL_GUARDED_BY(mu_);
  // What an agent of before kept, until somebody brings the same trial's.
  std::vector<KeptToken> unclaimed_ ABSL_GUARDED_BY(mu_);
  // A writer brought the agent's own: that ends soon.
  bool is_own_brief_ ABSL_GUARDED_BY(mu_) = false;
  MasterPauses pauses_ ABSL_GUARDED_BY(mu_);
  bool has_news_ ABSL_GUARDED_BY(mu_) = false;
  bool is_stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool is_started_ ABSL_GUARDED_BY(mu_) = false;
  Worker worker_;
};

}  // namespace stepwell::agent
