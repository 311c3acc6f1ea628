// DiskSensor: what all whole disks of the machine do together, from /proc/diskstats, each operation
// once. Confined to one thread.
#pragma once

#include <map>
#include <string>

#include "client/agent/sensors/kernel_text.h"
#include "client/agent/sensors/rate.h"
#include "client/agent/sensors/sensor.h"

namespace stepwell::agent {

class DiskSensor final : public Sensor {
 public:
  explicit DiskSensor(KernelText kernel)
      : Sensor({"disk", "disk", Cadence::kFast}), kernel_(std::move(kernel)) {}
  void Read(Reading& reading) override;
  void Forget() override { disks_.clear(); }

 private:
  struct Disk {
    bool whole = false;
    // Of a path: the multipath disk that it leads to.
    std::string head = {};
    // The kernel counts its operations.
    bool has_counted = false;
    Rate operations = {};
    Rate read_sectors = {};
    Rate written_sectors = {};
  };
  struct Sum {
    bool any = false;
    double operations = 0;
    double read_bytes = 0;
    double written_bytes = 0;
    void Add(const Sum& other) {
      any = any || other.any;
      operations += other.operations;
      read_bytes += other.read_bytes;
      written_bytes += other.written_bytes;
    }
  };
  bool IsWhole(const std::string& name) const;
  absl::StatusOr<Sum> ReadSum(absl::Duration now);
  static absl::StatusOr<Sum> ReadLine(const std::vector<absl::string_view>& words, Disk& disk,
                                      absl::Duration now);

  const KernelText kernel_;
  std::map<std::string, Disk> disks_;
};

}  // namespace stepwell::agent
