// NetworkSensor: what interfaces send and receive, from /proc/net/dev of the agent's network
// namespace: all but lo together, and each that is a device of the machine by itself; where the
// namespace has none of those (a container's), each but lo. Confined to one thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "client/agent/sensors/kernel_text.h"
#include "client/agent/sensors/rate.h"
#include "client/agent/sensors/sensor.h"

namespace stepwell::agent {

class NetworkSensor final : public Sensor {
 public:
  explicit NetworkSensor(KernelText kernel)
      : Sensor({"network", "network", Cadence::kFast}), kernel_(std::move(kernel)) {}
  void Read(Reading& reading) override;
  void Forget() override { interfaces_.clear(); }

 private:
  struct Interface {
    // Not a bridge, a tunnel, or one end of a container's pair.
    bool physical = false;
    Rate sent;
    Rate received;
  };
  struct Rates {
    std::string name;
    bool physical = false;
    double sent = 0;
    double received = 0;
  };
  // Of the interfaces that were there at the reading before.
  absl::StatusOr<std::vector<Rates>> ReadLines(absl::Duration now);
  bool HasPhysical() const;

  const KernelText kernel_;
  std::map<std::string, Interface> interfaces_;
};

}  // namespace stepwell::agent
