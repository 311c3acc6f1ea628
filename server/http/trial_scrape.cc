#include "server/http/trial_scrape.h"

#include <utility>

#include "server/http/connect_error.h"
#include "server/http/http_routes.h"

namespace stepwell {
namespace {

// A thousand machines would be a scrape each second of a thread's time; /sd divides it.
constexpr int kTrialsMax = 100;
constexpr absl::Duration kScrapeWait = absl::Seconds(8);

// Other trials would not be answered either.
bool EndsAll(absl::StatusCode code) {
  return code == absl::StatusCode::kDeadlineExceeded || code == absl::StatusCode::kUnavailable ||
         code == absl::StatusCode::kCancelled;
}

}  // namespace

v1::ListTrialsRequest RunningTrials(int count) {
  v1::ListTrialsRequest request;
  request.set_state(v1::TRIAL_STATE_RUNNING);
  request.set_page_size(count);
  return request;
}

SteadyTime ScrapeDeadline() { return SteadyTime::Now() + kScrapeWait; }

TrialScrape::TrialScrape(RpcFrom from, MetricFamilies families,
                         std::shared_ptr<HttpExchange> exchange)
    : from_(std::move(from)),
      deadline_(ScrapeDeadline()),
      families_(std::move(families)),
      exchange_(std::move(exchange)) {}

void TrialScrape::StartAll() {
  chain_.Start<v1::ListTrialsResponse>(
      from_, kListTrials, RunningTrials(kTrialsMax), deadline_,
      [self = shared_from_this()](const RpcStatus& status, v1::ListTrialsResponse& answer) {
        self->TakeTrials(status, answer);
      });
}

void TrialScrape::StartOne(std::int64_t trial_id) {
  is_alone_ = true;
  v1::GetTrialRequest request;
  request.mutable_trial()->set_trial_id(trial_id);
  chain_.Start<v1::GetTrialResponse>(
      from_, "/stepwell.v1.QueryService/GetTrial", request, deadline_,
      [self = shared_from_this()](const RpcStatus& status, v1::GetTrialResponse& answer) {
        self->TakeTrial(status, answer);
      });
}

void TrialScrape::Cancel() {
  chain_.Cancel();
  const absl::MutexLock lock(&mu_);
  cancelled_ = true;
  for (const Read& read : wave_) read.reading->Cancel();
}

void TrialScrape::TakeTrials(const RpcStatus& status, v1::ListTrialsResponse& answer) {
  if (!status.ok() || !answer.next_page_token().empty()) metrics_.NoteIncomplete();
  trials_.assign(answer.trials().begin(), answer.trials().end());
  NextWave();
}

void TrialScrape::TakeTrial(const RpcStatus& status, v1::GetTrialResponse& answer) {
  if (!status.ok()) return Refuse(status);
  if (answer.trial().state() != v1::TRIAL_STATE_RUNNING) {
    return Refuse({absl::StatusCode::kNotFound, "the trial does not run (any more)"});
  }
  trials_.push_back(answer.trial());
  NextWave();
}

void TrialScrape::NextWave() {
  if (next_ == trials_.size()) return Answer();
  std::vector<std::shared_ptr<TrialReading>> readings;
  for (; next_ < trials_.size() && readings.size() < kTrialsAtOnce; ++next_) {
    readings.push_back(std::make_shared<TrialReading>(
        from_, std::move(trials_[next_]), deadline_,
        [self = shared_from_this(), place = readings.size()](const RpcStatus& status) {
          self->NoteRead(place, status);
        }));
  }
  {
    const absl::MutexLock lock(&mu_);
    wave_.clear();
    for (const auto& reading : readings) wave_.push_back({reading, {}});
    unread_ = readings.size();
    if (cancelled_) {
      for (const auto& reading : readings) reading->Cancel();
    }
  }
  // The next wave may begin before the last of these returns.
  for (const auto& reading : readings) reading->Start();
}

void TrialScrape::NoteRead(std::size_t place, const RpcStatus& status) {
  {
    const absl::MutexLock lock(&mu_);
    wave_[place].status = status;
    if (--unread_ > 0) return;
  }
  TakeWave();
}

void TrialScrape::TakeWave() {
  std::vector<Read> wave;
  {
    const absl::MutexLock lock(&mu_);
    wave.swap(wave_);
  }
  bool ends = false;
  for (const Read& read : wave) {
    if (read.status.ok()) {
      metrics_.Add(read.reading->trial(), read.reading->latest());
    } else if (is_alone_) {
      return Refuse(read.status);
    } else if (read.status.code != absl::StatusCode::kNotFound) {
      // One that was deleted meanwhile is no loss.
      metrics_.NoteIncomplete();
      ends |= EndsAll(read.status.code);
    }
  }
  ends ? Answer() : NextWave();
}

void TrialScrape::Answer() {
  metrics_.Finish();
  std::exchange(exchange_, nullptr)->Answer({200, kMetricsContentType, families_.Text()});
}

void TrialScrape::Refuse(const RpcStatus& status) {
  // An empty answer would pass for a trial that measures nothing.
  std::exchange(exchange_, nullptr)->Answer(PlainErrorAnswer(status));
}

}  // namespace stepwell
