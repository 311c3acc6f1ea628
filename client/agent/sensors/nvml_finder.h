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
  // `path` of the library.
  NvmlFinder(std::string path, KernelText kernel)
      : SensorFinder("gpu"), path_(std::move(path)), kernel_(std::move(kernel)) {}
  Findings Find() override;

 private:
  bool HasGpu() const;
  void Miss(const absl::Status& why, Findings& findings) const;

  const std::string path_;
  const KernelText kernel_;
  std::shared_ptr<NvmlSession> session_;
  std::set<std::string> known_;
};

}  // namespace stepwell::agent
