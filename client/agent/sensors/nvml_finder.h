// NvmlFinder: loads NVIDIA's library where the machine has such a GPU, and makes a sensor of each GPU
// and slice. Confined to one thread.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "client/agent/sensors/kernel_text.h"
#include "client/agent/sensors/nvml_session.h"
#include "client/agent/sensors/sensor.h"

namespace stepwell::agent {

class NvmlFinder final : public SensorFinder {
 public:
  // `path` of the library. `clock` outlives the finder, and a thread that hangs in it.
  NvmlFinder(std::string path, KernelText kernel, const Clock& clock)
      : SensorFinder("gpu"), path_(std::move(path)), kernel_(std::move(kernel)), clock_(clock) {}
  Findings Find() override;

 private:
  bool HasGpu() const;
  void Miss(const absl::Status& why, Findings& findings) const;

  const std::string path_;
  const KernelText kernel_;
  const Clock& clock_;
  bool is_first_ = true;
  std::shared_ptr<NvmlSession> session_;
  std::set<std::string> known_;
};

}  // namespace stepwell::agent
