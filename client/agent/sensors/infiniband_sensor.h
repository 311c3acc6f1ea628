// InfinibandSensor: what the ports of InfiniBand (and RoCE) adapters send and receive, from their
// counters in sysfs. A counter is asked of the adapter's firmware, so a reading may hang: it is
// watched. A machine without adapters has nothing to say. Confined to one thread.
#pragma once

#include <map>
#include <string>

#include "client/agent/sensors/kernel_text.h"
#include "client/agent/sensors/rate.h"
#include "client/agent/sensors/sensor.h"

namespace stepwell::agent {

class InfinibandSensor final : public Sensor {
 public:
  explicit InfinibandSensor(KernelText kernel)
      : Sensor({"infiniband", "network", Cadence::kFast}), kernel_(std::move(kernel)) {}
  // Adapters are not plugged in under way.
  static bool HasAdapters(const KernelText& kernel);

  void Read(Reading& reading) override;
  void Forget() override { ports_.clear(); }

 private:
  struct Port {
    std::string folder;
    Rate sent;
    Rate received;
  };
  void FindPorts();
  absl::Status ReadPort(Reading& reading, const std::string& name, Port& port) const;

  const KernelText kernel_;
  std::map<std::string, Port> ports_;  // "mlx5_0/1"
};

}  // namespace stepwell::agent
