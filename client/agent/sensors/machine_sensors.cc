#include "client/agent/sensors/machine_sensors.h"

#include "client/agent/sensors/amd_sensor.h"
#include "client/agent/sensors/container_sensor.h"
#include "client/agent/sensors/cpu_sensor.h"
#include "client/agent/sensors/disk_sensor.h"
#include "client/agent/sensors/infiniband_sensor.h"
#include "client/agent/sensors/load_sensor.h"
#include "client/agent/sensors/memory_sensor.h"
#include "client/agent/sensors/mount_sensor.h"
#include "client/agent/sensors/network_sensor.h"
#include "client/agent/sensors/nvml_finder.h"
#include "client/agent/sensors/pressure_sensor.h"

namespace stepwell::agent {

std::unique_ptr<SensorSet> MakeMachineSensors(const MachineOptions& options, const Clock& clock) {
  const KernelText kernel(options.root);
  auto set = std::make_unique<SensorSet>(options.set, clock);
  set->Add(std::make_unique<CpuSensor>(kernel));
  set->Add(std::make_unique<LoadSensor>(kernel));
  set->Add(std::make_unique<MemorySensor>(kernel));
  set->Add(std::make_unique<DiskSensor>(kernel));
  set->Add(std::make_unique<NetworkSensor>(kernel));
  for (const auto of :
       {PressureSensor::Of::kCpu, PressureSensor::Of::kMemory, PressureSensor::Of::kDisk}) {
    set->Add(std::make_unique<PressureSensor>(of, kernel));
  }
  set->Add(std::make_unique<ContainerCpuSensor>(kernel, options.container));
  set->Add(std::make_unique<ContainerMemorySensor>(kernel, options.container));
  set->Add(std::make_unique<LocalMountSensor>(kernel));
  set->AddFinder(std::make_unique<MountFinder>(kernel));
  set->AddFinder(std::make_unique<NvmlFinder>(options.nvml_path, kernel, clock));
  set->AddFinder(std::make_unique<AmdFinder>(options.amd_paths, kernel));
  set->AddFinder(std::make_unique<InfinibandFinder>(kernel));
  return set;
}

}  // namespace stepwell::agent
