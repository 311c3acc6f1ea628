#include "client/agent/sensors/network_sensor.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace stepwell::agent {
namespace {

constexpr char kNetDev[] = "proc/net/dev";
// A node of many containers has a thousand pairs that come and go.
constexpr std::size_t kInterfaceCountMax = 4096;
// Where none is a device: a container has one or two.
constexpr std::size_t kVirtualCountMax = 64;

}  // namespace

void NetworkSensor::Read(Reading& reading) {
  const absl::StatusOr<std::vector<Rates>> rates = ReadLines(reading.Now());
  if (!rates.ok()) return reading.Miss("network", "network", 2, rates.status());
  if (rates->empty()) return;
  // Of devices that carry the others' bytes, too, or of what a container has in their place.
  const bool has_physical = HasPhysical();
  std::size_t virtual_count = 0;
  double sent_sum = 0;
  double received_sum = 0;
  for (const Rates& interface : *rates) {
    sent_sum += interface.sent;
    received_sum += interface.received;
    const bool is_named = has_physical ? interface.physical : virtual_count++ < kVirtualCountMax;
    if (!is_named) continue;
    reading.Add(metrics::kNetInterfaceSent, {{"interface", interface.name}}, interface.sent);
    reading.Add(metrics::kNetInterfaceRecv, {{"interface", interface.name}}, interface.received);
  }
  reading.Add(metrics::kNetThroughputSent, sent_sum);
  reading.Add(metrics::kNetThroughputRecv, received_sum);
}

bool NetworkSensor::HasPhysical() const {
  return std::any_of(interfaces_.begin(), interfaces_.end(),
                     [](const auto& entry) { return entry.second.physical; });
}

absl::StatusOr<std::vector<NetworkSensor::Rates>> NetworkSensor::ReadLines(absl::Duration now) {
  STEPWELL_ASSIGN_OR_RETURN(const std::string text, kernel_.Read(kNetDev));
  std::vector<Rates> rates;
  std::map<std::string, Interface> seen;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::size_t colon = line.find(':');
    if (colon == absl::string_view::npos) continue;  // the two heading lines
    const std::vector<absl::string_view> names = Words(line.substr(0, colon));
    const std::vector<absl::string_view> words = Words(line.substr(colon + 1));
    if (names.size() != 1 || words.size() < 9) return Unexpected(kNetDev, "a line is too short");
    if (names[0] == "lo" || seen.size() == kInterfaceCountMax) continue;
    const auto received_total = Number(words[0]);
    const auto sent_total = Number(words[8]);
    if (!received_total || !sent_total) return Unexpected(kNetDev, "a line has no numbers");
    const std::string name(names[0]);
    const auto known = interfaces_.find(name);
    Interface& interface = seen[name];
    if (known != interfaces_.end()) {
      interface = known->second;
    } else {
      interface.physical = kernel_.Exists(absl::StrCat("sys/class/net/", name, "/device"));
    }
    const auto sent = interface.sent.Next(*sent_total, now);
    const auto received = interface.received.Next(*received_total, now);
    if (sent && received) rates.push_back({name, interface.physical, *sent, *received});
  }
  // One that went away and comes back is a new one.
  interfaces_ = std::move(seen);
  return rates;
}

}  // namespace stepwell::agent
