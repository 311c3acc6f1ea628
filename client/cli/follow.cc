#include "client/cli/follow.h"

#include <poll.h>
#include <unistd.h>

#include <iostream>
#include <ostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/backoff.h"
#include "client/cli/completeness_text.h"
#include "client/cli/followed_view.h"
#include "client/cli/not_found.h"
#include "client/cli/selector_options.h"
#include "client/cli/stoppable.h"
#include "client/cli/units.h"
#include "client/cli/words.h"

namespace stepwell::cli {
namespace {

// What the contract allows.
constexpr absl::Duration kLookbackMax = absl::Minutes(1);

absl::StatusOr<v1::FollowSamplesRequest> RequestOf(const CommandOptions& options) {
  v1::FollowSamplesRequest request;
  STEPWELL_ASSIGN_OR_RETURN(*request.mutable_trial(),
                            ParseTrialRef(options.argument(), options.project()));
  STEPWELL_ASSIGN_OR_RETURN(*request.add_selectors(), SelectorOf(options));
  for (const char* name : {"from", "to"}) {
    if (!options.Has(name)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--", name, " is for samples that are stored; --follow takes --lookback TIME"));
  }
  STEPWELL_ASSIGN_OR_RETURN(
      const absl::Duration lookback,
      options.Duration("lookback", absl::ZeroDuration(), absl::ZeroDuration(), kLookbackMax));
  request.set_lookback_us(absl::ToInt64Microseconds(lookback));
  return request;
}

// Whoever read our output is gone.
bool OutputClosed(const std::ostream& out) {
  if (&out != &std::cout) return false;
  pollfd watched{STDOUT_FILENO, 0, 0};
  return poll(&watched, 1, 0) > 0 && (watched.revents & POLLERR) != 0;
}

// One `read --follow`. Run on one thread, Stop on another.
class Following {
 public:
  Following(v1::FollowSamplesRequest request, const CommandOptions& options, std::int64_t limit,
            Streams streams)
      : request_(std::move(request)),
        master_(options.master()),
        address_(options.server()),
        view_(options.json() ? SamplesView::Form::kJson : SamplesView::Form::kText, limit),
        streams_(streams) {}

  void Run() {
    for (;;) {
      view_.StreamBegan();
      const absl::Status status = master_.FollowSamples(
          request_, [this](const v1::FollowSamplesResponse& response) { return Take(response); });
      if (status.ok() || stopped_.HasBeenNotified()) return;
      if (!began_ || !GoesOn(status)) {
        exit_ = ReportTrialFailure(status, request_.trial(), master_, address_, streams_);
        return;
      }
    }
  }

  // From any thread; more than once is fine.
  void Stop() {
    if (!stopped_.HasBeenNotified()) stopped_.Notify();
    master_.Cancel();
  }
  int exit() const { return exit_; }

 private:
  bool Take(const v1::FollowSamplesResponse& response) {
    if (waiting_) streams_.err << "stepwell: the master is back\n";
    began_ = true;
    waiting_ = false;
    backoff_.Reset();
    if (response.missing_before_time_us() != 0) TellMissing(response.missing_before_time_us());
    streams_.out << view_.Lines(response) << std::flush;
    request_.set_cursor(response.cursor());
    if (response.state() != v1::TRIAL_STATE_RUNNING) TellEnd(response);
    return !view_.full() && streams_.out.good();
  }

  // Waits for what passes by itself.
  bool GoesOn(const absl::Status& status) {
    if (absl::IsOutOfRange(status)) {
      std::int64_t from_us = 0;
      const auto from = status.GetPayload("stepwell/read_from_time_us");
      if (from && absl::SimpleAtoi(std::string(*from), &from_us)) TellMissing(from_us);
      request_.clear_cursor();
      request_.set_lookback_us(0);
      return true;
    }
    // Cancelled, but not by us: the master ended all calls. Exhausted: it has no turn for one that followed before it went.
    const bool has_no_turn = absl::IsResourceExhausted(status);
    if (!absl::IsUnavailable(status) && !absl::IsCancelled(status) && !has_no_turn) return false;
    if (!waiting_) {
      streams_.err << "stepwell: the master at " << address_
                   << (has_no_turn ? " has no turn for this now" : " does not answer")
                   << "; waiting for it (Ctrl-C ends)\n";
    }
    waiting_ = true;
    stopped_.WaitForNotificationWithTimeout(backoff_.NextDelay());
    return !stopped_.HasBeenNotified();
  }

  void TellMissing(std::int64_t from_us) {
    streams_.err << "stepwell: not all samples since " << IsoTimeText(from_us)
                 << " were shown: the master no longer held them in memory. 'stepwell read TRIAL"
                    " --from "
                 << IsoTimeText(from_us) << "' shows them\n";
  }

  void TellEnd(const v1::FollowSamplesResponse& response) {
    streams_.err << "stepwell: the trial is " << StateWord(response.state()) << "\n";
    if (!response.completeness().contiguous()) {
      streams_.err << CompletenessText(response.completeness()) << "\n";
    }
  }

  v1::FollowSamplesRequest request_;
  MasterClient master_;
  const std::string address_;
  FollowedView view_;
  Streams streams_;
  absl::Notification stopped_;
  Backoff backoff_{{.first = absl::Milliseconds(200), .longest = absl::Seconds(2)}};
  bool began_ = false;    // a message came
  bool waiting_ = false;  // for the master, which was told
  int exit_ = kExitOk;
};

}  // namespace

int Follow(const CommandOptions& options, Streams streams) {
  absl::StatusOr<v1::FollowSamplesRequest> request = RequestOf(options);
  if (!request.ok()) return options.UsageError(request.status(), streams);
  const absl::StatusOr<std::int64_t> limit = options.Integer("limit", 0, 0, 1'000'000'000'000);
  if (!limit.ok()) return options.UsageError(limit.status(), streams);
  const HeldSignals signals;  // before any thread is started
  Following following(*std::move(request), options, *limit == 0 ? INT64_MAX : *limit, streams);
  RunStoppable(
      signals, "stepwell-follow", [&] { following.Run(); }, [&] { following.Stop(); },
      [&] {
        if (OutputClosed(streams.out)) following.Stop();
      });
  return following.exit();
}

}  // namespace stepwell::cli
