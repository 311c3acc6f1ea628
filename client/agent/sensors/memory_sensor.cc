#include "client/agent/sensors/memory_sensor.h"

namespace stepwell::agent {
namespace {

constexpr char kMeminfo[] = "proc/meminfo";

// The file counts in KiB and says kB.
std::optional<double> Bytes(const std::string& text, absl::string_view key) {
  const std::optional<std::uint64_t> kib = NumberBehind(text, key);
  if (!kib) return std::nullopt;
  return static_cast<double>(*kib) * 1024;
}

}  // namespace

void MemorySensor::Read(Reading& reading) {
  const absl::StatusOr<std::string> text = kernel_.Read(kMeminfo);
  if (!text.ok()) return reading.Miss("memory", "memory", 5, text.status());
  const std::optional<double> total = Bytes(*text, "MemTotal");
  const std::optional<double> available = Bytes(*text, "MemAvailable");
  if (!total || !available || *available > *total) {
    const char* what = !available ? "no MemAvailable" : "no MemTotal, or less than is available";
    return reading.Miss("memory", "memory", 5, Unexpected(kMeminfo, what));
  }
  reading.Add(metrics::kMemoryFree, *available);
  reading.Add(metrics::kMemoryUsed, *total - *available);
  reading.Add(metrics::kMemoryTotal, *total);
  // What a kernel does not have (no swap, no slab cache) it does not show; that counts as none.
  const auto or_none = [&](absl::string_view key) { return Bytes(*text, key).value_or(0); };
  reading.Add(metrics::kMemoryCached,
              or_none("Cached") + or_none("Buffers") + or_none("SReclaimable"));
  reading.Add(metrics::kMemorySwapUsed, or_none("SwapTotal") - or_none("SwapFree"));
}

}  // namespace stepwell::agent
