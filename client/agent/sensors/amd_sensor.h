// AmdSensor: one AMD GPU, by whichever of the two libraries there is; AmdFinder: loads it and makes a
// sensor of each GPU. As with NVIDIA's, each question stands alone, and calls can hang: both are
// watched. Each is confined to one thread.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "client/agent/sensors/amd_library.h"
#include "client/agent/sensors/amd_throttle.h"
#include "client/agent/sensors/gpu_answers.h"
#include "client/agent/sensors/kernel_text.h"
#include "client/agent/sensors/rate.h"
#include "client/agent/sensors/sensor.h"

namespace stepwell::agent {

class AmdSensor final : public Sensor {
 public:
  AmdSensor(std::shared_ptr<const AmdLibrary> library, AmdLibrary::Device device);
  void Read(Reading& reading) override;
  void Forget() override;

 private:
  // Asks where it may be asked, and adds what comes as `metric`.
  template <typename Ask>
  void ReadOne(GpuQuestion question, const SystemMetric& metric, Reading& reading, Ask ask);
  void ReadMemory(Reading& reading);
  void ReadEnergy(Reading& reading);
  // Throttling and links, of one call.
  void ReadTable(Reading& reading);
  void TakeThrottle(const absl::StatusOr<AmdTable>& table, Reading& reading);
  void TakeLinks(GpuQuestion question, const SystemMetric& metric,
                 const absl::StatusOr<AmdTable>& table, AmdTable::LinkKib AmdTable::*totals,
                 std::array<Rate, kXgmiLinkCount>& rates, Reading& reading);
  // What other GPUs have and this one's library does not say.
  void MissOthers(Reading& reading);

  const std::shared_ptr<const AmdLibrary> library_;
  const AmdLibrary::Device device_;
  const std::map<std::string, std::string> labels_;
  GpuAnswers answers_;
  Rate millijoules_;
  AmdThrottle throttle_;
  std::array<Rate, kXgmiLinkCount> received_;
  std::array<Rate, kXgmiLinkCount> sent_;
};

class AmdFinder final : public SensorFinder {
 public:
  AmdFinder(AmdLibrary::Paths paths, KernelText kernel)
      : SensorFinder("gpu"), paths_(std::move(paths)), kernel_(std::move(kernel)) {}
  Findings Find() override;

 private:
  bool HasGpu() const;

  const AmdLibrary::Paths paths_;
  const KernelText kernel_;
  std::shared_ptr<const AmdLibrary> library_;
  std::set<std::string> known_;
};

}  // namespace stepwell::agent
