// MachineSensors: all sensors that a machine's sampler has. The one place that lists them.
//
//   std::unique_ptr<SensorSet> set = MakeMachineSensors({.root = "/"}, clock);
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "client/agent/sensors/amd_library.h"
#include "client/agent/sensors/container_sensor.h"
#include "client/agent/sensors/nvml_library.h"
#include "client/agent/sensors/sensor_set.h"

namespace stepwell::agent {

struct MachineOptions {
  // Below it lie proc and sys.
  std::string root = "/";
  std::string nvml_path = NvmlLibrary::PathToLoad();
  AmdLibrary::Paths amd_paths = AmdLibrary::PathsToLoad();
  SensorSet::Options set = {};
  ContainerOptions container = {};
};

// `clock` outlives the set.
std::unique_ptr<SensorSet> MakeMachineSensors(const MachineOptions& options, const Clock& clock);

}  // namespace stepwell::agent
