// TokenRenewal: which token is shown for one trial, and when the next one is fetched: at about half of its life,
// so that two overlap; what cannot be renewed is shown until shortly before its end, then what it was fetched
// with. Whatever a master says, it is asked seldom. A core; times are the monotonic clock's.
//
//   if (renewal.IsFetchDue(now)) Fetch(renewal.Shown(now));   // empty: with the credential of before
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/backoff.h"

namespace stepwell::agent {

class TokenRenewal {
 public:
  // Fetched first at `now`.
  explicit TokenRenewal(absl::Duration now) : fetch_at_(now) {}

  // Empty: none that was fetched.
  std::string Shown(absl::Duration now) const {
    return now < until_ && !is_aside_ ? text_ : std::string();
  }
  bool IsFetchDue(absl::Duration now) const { return now >= fetch_at_; }
  // When a fetch is due, or what is shown changes: not before.
  absl::Duration NextTime(absl::Duration now) const;

  // `lives` > 0. `asked`: when, so that the way there and back counts as its life. `chance` in [0, 1): agents
  // that began together do not renew together.
  void OnFetched(std::string text, absl::Duration lives, absl::Duration asked, double chance);
  // The fetch failed that was asked with `shown`.
  void OnFailed(const absl::Status& why, const std::string& shown, absl::Duration now);
  // There is something else to fetch with than what was refused: it is due soon.
  void TrySoon(absl::Duration now);
  // A master refused it: another one is fetched soon, and it is shown no more, unless there is nothing else to show.
  void OnRejected(const std::string& text, absl::Duration now);
  // What the first one was fetched with ends soon itself: from now on one that is refused is shown on.
  void SetOnlyOne() { is_only_one_ = true; }

 private:
  // The next try after a refusal: before the end of what is left.
  void AwaitNextTry(absl::Duration now);

  std::string text_;
  bool is_refused_ = false;  // `text_`, by a master
  bool is_aside_ = false;    // `text_`: refused, and what it was fetched with is shown
  bool is_only_one_ = false;
  absl::Duration until_ = -absl::InfiniteDuration();
  absl::Duration fetch_at_;
  absl::Duration lives_longest_;  // of those that were fetched
  Backoff backoff_{{.first = absl::Seconds(1), .longest = absl::Minutes(1)}};
  // Of refusals, until one that was fetched is good until its turn.
  Backoff rejections_{{.first = absl::Seconds(1), .longest = absl::Minutes(5)}};
};

}  // namespace stepwell::agent
