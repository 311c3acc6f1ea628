#include "client/agent/sensors/memory_sensor.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace stepwell::agent {
namespace {

constexpr char kMeminfo[] = "proc/meminfo";

// The file counts in KiB and says kB.
std::optional<double> Bytes(const std::string& text, absl::string_view key) {
  const std::optional<std::uint64_t> kib = NumberBehind(text, key);
  if (!kib) return std::nullopt;
  return static_cast<double>(*kib) * 1024;
}

absl::Status Missing(absl::string_view text, const char* key) {
  if (!absl::StrContains(text, key)) {
    return absl::NotFoundError(absl::StrCat("/", kMeminfo, ": no ", key));
  }
  return Unexpected(kMeminfo, absl::StrCat(key, " is no number, or more than there is"));
}

}  // namespace

void MemorySensor::Read(Reading& reading) {
  const absl::StatusOr<std::string> text = kernel_.Read(kMeminfo);
  if (!text.ok()) return reading.Miss("memory", "memory", 5, text.status());
  const std::optional<double> total = Bytes(*text, "MemTotal");
  if (!total) return reading.Miss("memory", "memory", 5, Missing(*text, "MemTotal"));
  reading.Add(metrics::kMemoryTotal, *total);
  // Before Linux 3.14 the kernel does not say; an estimate would be another metric.
  const std::optional<double> available = Bytes(*text, "MemAvailable");
  if (available && *available <= *total) {
    reading.Add(metrics::kMemoryFree, *available);
    reading.Add(metrics::kMemoryUsed, *total - *available);
  } else {
    reading.Miss("memory", "memory_free", 2, Missing(*text, "MemAvailable"));
  }
  // What a kernel does not have (no swap, no slab cache) it does not show; that counts as none.
  const auto or_none = [&](absl::string_view key) { return Bytes(*text, key).value_or(0); };
  reading.Add(metrics::kMemoryCached,
              or_none("Cached") + or_none("Buffers") + or_none("SReclaimable"));
  // lxcfs has shown more of it free than there is.
  reading.Add(metrics::kMemorySwapUsed, std::max(0.0, or_none("SwapTotal") - or_none("SwapFree")));
}

}  // namespace stepwell::agent
