#include "client/agent/sensors/infiniband_sensor.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace stepwell::agent {
namespace {

constexpr char kAdapters[] = "sys/class/infiniband";
// The data counters of the InfiniBand specification count words of four octets.
constexpr double kWordBytes = 4;
constexpr std::size_t kPortCountMax = 64;

}  // namespace

bool InfinibandSensor::HasAdapters(const KernelText& kernel) {
  return !kernel.List(kAdapters).empty();
}

void InfinibandSensor::FindPorts() {
  for (const std::string& adapter : kernel_.List(kAdapters)) {
    const std::string folder = absl::StrCat(kAdapters, "/", adapter, "/ports");
    for (const std::string& port : kernel_.List(folder)) {
      if (ports_.size() == kPortCountMax) return;
      ports_[absl::StrCat(adapter, "/", port)].folder =
          absl::StrCat(folder, "/", port, "/counters/");
    }
  }
}

void InfinibandSensor::Read(Reading& reading) {
  if (ports_.empty()) FindPorts();
  for (auto& [name, port] : ports_) {
    if (const absl::Status status = ReadPort(reading, name, port); !status.ok()) {
      reading.Miss("network", name, 2, status);
    }
  }
}

absl::Status InfinibandSensor::ReadPort(Reading& reading, const std::string& name,
                                        Port& port) const {
  STEPWELL_ASSIGN_OR_RETURN(const std::uint64_t sent_words,
                            kernel_.ReadNumber(port.folder + "port_xmit_data"));
  STEPWELL_ASSIGN_OR_RETURN(const std::uint64_t received_words,
                            kernel_.ReadNumber(port.folder + "port_rcv_data"));
  const auto sent = port.sent.Next(sent_words, reading.Now());
  const auto received = port.received.Next(received_words, reading.Now());
  if (!sent || !received) return absl::OkStatus();
  reading.Add(metrics::kNetInfinibandSent, {{"port", name}}, *sent * kWordBytes);
  reading.Add(metrics::kNetInfinibandRecv, {{"port", name}}, *received * kWordBytes);
  return absl::OkStatus();
}

}  // namespace stepwell::agent
