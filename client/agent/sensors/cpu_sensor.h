// CpuSensor: how busy the machine's processors are, from /proc/stat. Confined to one thread.
#pragma once

#include <map>
#include <string>

#include "client/agent/sensors/kernel_text.h"
#include "client/agent/sensors/sensor.h"

namespace stepwell::agent {

class CpuSensor final : public Sensor {
 public:
  explicit CpuSensor(KernelText kernel)
      : Sensor({"cpu", "cpu", Cadence::kFast}), kernel_(std::move(kernel)) {}
  void Read(Reading& reading) override;
  void Forget() override { earlier_.clear(); }

 private:
  // Since boot, in clock ticks.
  struct Times {
    std::uint64_t busy = 0;
    std::uint64_t total = 0;
  };
  static absl::StatusOr<Times> ParseTimes(const std::vector<absl::string_view>& words);
  absl::Status ReadTimes(Reading& reading);
  void AddUtil(Reading& reading, const std::string& processor, const Times& times);

  const KernelText kernel_;
  std::map<std::string, Times> earlier_;  // "cpu" is all of them, "cpu0" the first
};

}  // namespace stepwell::agent
