// NvmlGpm: how busy the parts of a GPU were between two samples of its performance monitors (GPM, on
// Hopper and later): multiprocessors, tensor cores, memory. Confined to one thread.
//
//   if (gpm.Supported(device)) ok = gpm.Sample(device, now); ... gpm.percent(nvml::kGpmSmUtil)
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/agent/sensors/nvml_session.h"

namespace stepwell::agent {

class NvmlGpm {
 public:
  // Two samples closer than this say nothing, as the library's documentation has it.
  static constexpr absl::Duration kSpanMin = absl::Milliseconds(100);

  NvmlGpm(std::shared_ptr<NvmlSession> session, NvmlDeviceFace face)
      : session_(std::move(session)), face_(std::move(face)) {}
  ~NvmlGpm();
  NvmlGpm(const NvmlGpm&) = delete;
  NvmlGpm& operator=(const NvmlGpm&) = delete;

  // By metric, in the library's units, over the time since the sample before; empty at the first,
  // and where the last is younger than kSpanMin. `device` is a slice's GPU where it is one of a
  // slice. kUnimplemented: this device has none.
  absl::StatusOr<std::map<unsigned, double>> Sample(nvml::Device device, absl::Duration now);
  void Forget() { has_before_ = false; }

 private:
  absl::Status Prepare(nvml::Device device);
  absl::Status Take(nvml::Device device);
  absl::StatusOr<std::map<unsigned, double>> Compare() const;

  const std::shared_ptr<NvmlSession> session_;
  const NvmlDeviceFace face_;
  bool prepared_ = false;
  bool has_before_ = false;
  absl::Duration taken_at_;
  nvml::GpmSample before_ = nullptr;
  nvml::GpmSample after_ = nullptr;
};

}  // namespace stepwell::agent
