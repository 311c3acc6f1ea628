// ContainerSensor: what a container uses and may use, under names of its own and with the label
// `container`, so that nobody takes it for the machine: the agent's own container, or those of the
// recording processes. Outside a container it has nothing to say. ContainerCpuSensor and
// ContainerMemorySensor stand on ContainerGroups. Each confined to one thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/agent/sensors/cgroup_reader.h"
#include "client/agent/sensors/container_claims.h"
#include "client/agent/sensors/rate.h"
#include "client/agent/sensors/recording_processes.h"
#include "client/agent/sensors/sensor.h"

namespace stepwell::agent {

struct ContainerOptions {
  // Null: the agent's own container.
  std::shared_ptr<const RecordingProcesses> processes = nullptr;
  // Null: no other agent is there.
  std::shared_ptr<ContainerClaims> claims = nullptr;
};

// The containers to be read now, each with its reader and what its rates need.
class ContainerGroups {
 public:
  // Of one trial on one machine; further ones are left out.
  static constexpr std::size_t kCountMax = 64;

  struct Container {
    explicit Container(KernelText kernel) : reader(std::move(kernel)) {}
    CgroupReader reader;
    Rate usage_us;
    Rate periods;
    Rate throttled;
  };
  ContainerGroups(KernelText kernel, ContainerOptions options)
      : kernel_(std::move(kernel)), options_(std::move(options)) {}

  // By the label `container`: those that have a process and are this agent's to measure. Of others
  // the reading tells that another agent measures them, as an absence of `face`, told once.
  std::map<std::string, Container*> Find(const SensorFace& face, Reading& reading);
  void Forget();

 private:
  // Hardly ever changes, and looking costs more than reading.
  struct Known {
    std::string container;
    int uses_left = 0;
  };
  std::vector<std::string> Processes() const;
  // "" = it is gone.
  const std::string& ContainerOf(const std::string& process);

  const KernelText kernel_;
  const ContainerOptions options_;
  std::map<std::string, Known> known_;  // by process
  std::map<std::string, Container> containers_;
};

class ContainerCpuSensor final : public Sensor {
 public:
  explicit ContainerCpuSensor(KernelText kernel, ContainerOptions options = {})
      : Sensor({"container cpu", "cpu", Cadence::kFast, SeenBy::kContainer}),
        groups_(std::move(kernel), std::move(options)) {}
  void Read(Reading& reading) override;
  void Forget() override { groups_.Forget(); }

 private:
  ContainerGroups groups_;
};

class ContainerMemorySensor final : public Sensor {
 public:
  explicit ContainerMemorySensor(KernelText kernel, ContainerOptions options = {})
      : Sensor({"container memory", "memory", Cadence::kFast, SeenBy::kContainer}),
        groups_(std::move(kernel), std::move(options)) {}
  void Read(Reading& reading) override;

 private:
  ContainerGroups groups_;
};

}  // namespace stepwell::agent
