#include "client/agent/sensors/network_sensor.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace stepwell::agent {
namespace {

constexpr char kNetDev[] = "proc/net/dev";
// A node of many containers has a thousand pairs that come and go.
constexpr std::size_t kInterfaceCountMax = 4096;

}  // namespace

void NetworkSensor::Read(Reading& reading) {
  if (const absl::Status status = ReadLines(reading); !status.ok()) {
    reading.Miss("network", "network", 2, status);
  }
}

absl::Status NetworkSensor::ReadLines(Reading& reading) {
  STEPWELL_ASSIGN_OR_RETURN(const std::string text, kernel_.Read(kNetDev));
  const absl::Duration now = reading.Now();
  double sent_sum = 0;
  double received_sum = 0;
  bool any = false;
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
    if (!sent || !received) continue;
    any = true;
    sent_sum += *sent;
    received_sum += *received;
    if (!interface.physical) continue;
    reading.Add(metrics::kNetInterfaceSent, {{"interface", name}}, *sent);
    reading.Add(metrics::kNetInterfaceRecv, {{"interface", name}}, *received);
  }
  // One that went away and comes back is a new one.
  interfaces_ = std::move(seen);
  if (!any) return absl::OkStatus();
  reading.Add(metrics::kNetThroughputSent, sent_sum);
  reading.Add(metrics::kNetThroughputRecv, received_sum);
  return absl::OkStatus();
}

}  // namespace stepwell::agent
