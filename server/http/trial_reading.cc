#include "server/http/trial_reading.h"

#include <string>

#include "server/trial_metrics.h"

namespace stepwell {
namespace {

// Each call walks all series of its trial, whatever it chooses of them: up to so many are taken as a whole.
// A machine has some seventy.
constexpr std::int64_t kSeriesAtOnce = 1000;

}  // namespace

TrialReading::TrialReading(RpcFrom from, v1::Trial trial, SteadyTime deadline, Done done)
    : from_(std::move(from)),
      trial_(std::move(trial)),
      deadline_(deadline),
      done_(std::move(done)),
      is_small_(trial_.series_count() <= kSeriesAtOnce) {}

void TrialReading::Start() { Next(); }

void TrialReading::Next() {
  v1::LatestValuesRequest request;
  request.mutable_trial()->set_trial_id(trial_.trial_id());
  if (!is_small_) {
    request.mutable_selector()->set_metric_group(std::string(kMachineGroups[next_group_]));
  }
  chain_.Start<v1::LatestValuesResponse>(
      from_, "/stepwell.v1.QueryService/LatestValues", request, deadline_,
      [self = shared_from_this()](const RpcStatus& status, v1::LatestValuesResponse& answer) {
        self->Take(status, answer);
      });
}

void TrialReading::Take(const RpcStatus& status, v1::LatestValuesResponse& answer) {
  if (!status.ok()) return End(status);
  latest_.mutable_completeness()->set_answered_time_us(answer.completeness().answered_time_us());
  for (auto& value : *answer.mutable_values()) latest_.add_values()->Swap(&value);
  if (!is_small_ && ++next_group_ < kMachineGroups.size()) return Next();
  End(status);
}

void TrialReading::End(const RpcStatus& status) {
  // What it holds may hold this.
  std::exchange(done_, nullptr)(status);
}

}  // namespace stepwell
