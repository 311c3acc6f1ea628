#include "client/agent/clock_anchor.h"

#include <ctime>
#include <fstream>

namespace stepwell::agent {
namespace {

std::uint64_t ReadNs(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

std::uint64_t MonotonicNs() { return ReadNs(CLOCK_MONOTONIC); }

ClockAnchor ClockAnchor::Take() {
  ClockAnchor best;
  std::uint64_t best_width_ns = UINT64_MAX;
  for (int i = 0; i < 5; ++i) {
    const std::uint64_t before_ns = MonotonicNs();
    const std::uint64_t realtime_ns = ReadNs(CLOCK_REALTIME);
    const std::uint64_t width_ns = MonotonicNs() - before_ns;
    if (width_ns >= best_width_ns) continue;
    best_width_ns = width_ns;
    best.realtime_us = static_cast<std::int64_t>(realtime_ns / 1000);
    best.monotonic_ns = before_ns + width_ns / 2;
  }
  return best;
}

std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace stepwell::agent
