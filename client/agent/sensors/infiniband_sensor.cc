#include "client/agent/sensors/infiniband_sensor.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace stepwell::agent {
namespace {

constexpr char kAdapters[] = "sys/class/infiniband";
// The data counters of the InfiniBand specification count words of four octets.
constexpr double kWordBytes = 4;

struct HealthCounter {
  const SystemMetric& metric;
  const char* file;
};
constexpr HealthCounter kHealthCounters[] = {
    {metrics::kNetInfinibandPacketsSent, "port_xmit_packets"},
    {metrics::kNetInfinibandPacketsRecv, "port_rcv_packets"},
    {metrics::kNetInfinibandSendWaits, "port_xmit_wait"},
    {metrics::kNetInfinibandSendDiscards, "port_xmit_discards"},
    {metrics::kNetInfinibandRecvErrors, "port_rcv_errors"},
    {metrics::kNetInfinibandSymbolErrors, "symbol_error"},
    {metrics::kNetInfinibandLinkDowned, "link_downed"},
};
static_assert(std::size(kHealthCounters) == InfinibandHealthSensor::kCounterCount);

}  // namespace

void InfinibandPortSensor::Forget() {
  sent_.Forget();
  received_.Forget();
}

void InfinibandPortSensor::Read(Reading& reading) {
  if (const absl::Status status = ReadPort(reading); !status.ok()) {
    reading.Miss("network", port_, 2, status);
  }
}

absl::Status InfinibandPortSensor::ReadPort(Reading& reading) {
  STEPWELL_ASSIGN_OR_RETURN(const std::uint64_t sent_words,
                            kernel_.ReadNumber(folder_ + "port_xmit_data"));
  STEPWELL_ASSIGN_OR_RETURN(const std::uint64_t received_words,
                            kernel_.ReadNumber(folder_ + "port_rcv_data"));
  const auto sent = sent_.Next(sent_words, reading.Now());
  const auto received = received_.Next(received_words, reading.Now());
  if (!sent || !received) return absl::OkStatus();
  reading.Add(metrics::kNetInfinibandSent, {{"port", port_}}, *sent * kWordBytes);
  reading.Add(metrics::kNetInfinibandRecv, {{"port", port_}}, *received * kWordBytes);
  return absl::OkStatus();
}

void InfinibandHealthSensor::Read(Reading& reading) {
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    const HealthCounter& counter = kHealthCounters[i];
    if (!reading.Wants(counter.metric)) continue;
    const absl::StatusOr<std::uint64_t> total = kernel_.ReadNumber(folder_ + counter.file);
    if (!total.ok()) {
      reading.Miss(counter.metric, port_, total.status());
    } else if (const auto rate = rates_[i].Next(*total, reading.Now())) {
      reading.Add(counter.metric, {{"port", port_}}, *rate);
    }
  }
}

Findings InfinibandFinder::Find() {
  Findings findings;
  std::size_t left_out = 0;
  for (const std::string& adapter : kernel_.List(kAdapters)) {
    const std::string ports = absl::StrCat(kAdapters, "/", adapter, "/ports");
    for (const std::string& number : kernel_.List(ports)) {
      const std::string port = absl::StrCat(adapter, "/", number);
      if (known_.count(port) != 0) continue;
      if (known_.size() == kPortCountMax) {
        ++left_out;
        continue;
      }
      known_.insert(port);
      const std::string folder = absl::StrCat(ports, "/", number, "/counters/");
      findings.sensors.push_back(std::make_unique<InfinibandPortSensor>(port, folder, kernel_));
      findings.sensors.push_back(std::make_unique<InfinibandHealthSensor>(port, folder, kernel_));
    }
  }
  if (left_out > 0) {
    findings.absences.push_back({"network", AbsenceKind::kUnsupported, "infiniband", 1,
                                 absl::StrCat("infiniband: of more than ", kPortCountMax, " ports ",
                                              left_out, " are not sampled")});
  }
  return findings;
}

}  // namespace stepwell::agent
