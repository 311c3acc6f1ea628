// NvmlSensor: one NVIDIA GPU, or one slice of it. Each call stands alone: what a device or driver
// cannot do is told and asked for again once a minute; a device that is lost is absent as a whole and
// comes back when the library sees it again. Calls can hang: it is watched. Confined to one thread.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "client/agent/sensors/gpu_answers.h"
#include "client/agent/sensors/nvml_gpm.h"
#include "client/agent/sensors/nvml_session.h"
#include "client/agent/sensors/rate.h"
#include "client/agent/sensors/sensor.h"

namespace stepwell::agent {

inline constexpr std::size_t kThrottleReasonCount = 6;

class NvmlSensor final : public Sensor {
 public:
  NvmlSensor(std::shared_ptr<NvmlSession> session, NvmlDeviceFace face);
  void Read(Reading& reading) override;
  void Forget() override;

 private:
  using Question = GpuQuestion;

  // Calls `function(device, arguments...)` where it may be asked.
  template <typename Function, typename... Arguments>
  bool Ask(Question question, const char* name, Function function, Reading& reading,
           Arguments... arguments);
  void Add(Reading& reading, const SystemMetric& metric, double value);

  void ReadWhole(Reading& reading);
  void ReadUtilization(Reading& reading);
  void ReadMemory(Reading& reading);
  void ReadPower(Reading& reading);
  void ReadTemperature(Reading& reading);
  void ReadClocks(Reading& reading);
  void ReadThrottle(Reading& reading);
  void ReadFields(Reading& reading);
  void TakeField(Question question, double value, bool is_wide, Reading& reading);
  void ReadGpm(Reading& reading);
  void ReadPcie(Reading& reading);
  void ReadPcieOf(Question question, unsigned direction, const SystemMetric& metric,
                  std::optional<double> counted, Reading& reading);
  void MissAll(Reading& reading, const absl::Status& why) const;

  const std::shared_ptr<NvmlSession> session_;
  const NvmlLibrary& nvml_;
  const NvmlDeviceFace face_;
  const std::map<std::string, std::string> labels_;
  NvmlGpm gpm_;
  GpuAnswers answers_;
  std::map<const SystemMetric*, const SensedSeries*> series_;
  std::array<const SensedSeries*, kThrottleReasonCount> throttle_series_ = {};
  std::array<Rate, kGpuQuestionCount> rates_;
  // Of this reading.
  nvml::Device device_ = nullptr;
  std::optional<double> pcie_sent_;
  std::optional<double> pcie_received_;
  // The monitors' second sample is to come.
  bool gpm_pending_ = false;
  // Of a reading that went well.
  int sample_count_ = 1;
};

}  // namespace stepwell::agent
