// GpuAnswers: what became of the questions to one GPU: which it cannot answer, and when to ask
// again. A failure is asked again at each tick, what device or driver cannot do once a minute; while
// it stands, its samples are missed at each reading. Confined to one thread.
//
//   if (answers.MayAsk(GpuQuestion::kPower, reading)) answers.Settle(GpuQuestion::kPower, status, reading);
#pragma once

#include <array>
#include <string>

#include "absl/status/status.h"
#include "client/agent/sensors/reading.h"

namespace stepwell::agent {

// One call each, or one field of a call for fields.
enum class GpuQuestion {
  kUtilization,  // of both, in one call
  kComputeUtilization,
  kMemoryUtilization,
  kMemory,
  kPower,
  kPowerLimit,
  kEnergy,
  kTemperature,
  kSmClock,
  kMemoryClock,
  kThrottle,
  kMemoryTemperature,
  kNvlinkSent,
  kNvlinkReceived,
  kPcieSent,
  kPcieReceived,
  kGpm,
};
inline constexpr std::size_t kGpuQuestionCount = static_cast<std::size_t>(GpuQuestion::kGpm) + 1;

class GpuAnswers {
 public:
  // `device` by its UUID, for absences.
  explicit GpuAnswers(std::string device) : device_(std::move(device)) {}

  // A new reading: the device is thought to be there.
  void Begin() { lost_ = absl::OkStatus(); }
  // kDataLoss once a call said so; nothing more is asked then.
  const absl::Status& lost() const { return lost_; }

  // True: nobody knows that it cannot be had, and someone wants it.
  bool MayAsk(GpuQuestion question, const Reading& reading) const;
  // True where `why` is none; else it stands, and the samples are missed.
  bool Settle(GpuQuestion question, const absl::Status& why, Reading& reading);
  // The samples of a question that was not asked, if they stand.
  void Miss(GpuQuestion question, Reading& reading) const;

 private:
  struct Standing {
    absl::Status why;
    absl::Duration ask_again_at = -absl::InfiniteDuration();
  };
  const Standing& StandingOf(GpuQuestion question) const {
    return standing_[static_cast<std::size_t>(question)];
  }

  const std::string device_;
  std::array<Standing, kGpuQuestionCount> standing_;
  absl::Status lost_;
};

}  // namespace stepwell::agent
