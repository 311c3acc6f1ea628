#include "tests/faults/checker/bounds.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace stepwell::faults {
namespace {

// AddressSanitizer's shadow and its zones around each object: a program that only tells its help has 269 MiB with it.
#ifdef __SANITIZE_ADDRESS__
constexpr std::int64_t kSanitizerKib = 256 * 1024;
// Of a limit that is filled, too.
constexpr std::int64_t kSanitizerKibOfLimit = 512 * 1024;
#else
constexpr std::int64_t kSanitizerKib = 0;
constexpr std::int64_t kSanitizerKibOfLimit = 0;
#endif

void Compare(const Usage& usage, const char* what, std::int64_t used, std::int64_t bound,
             std::vector<std::string>& findings) {
  if (used <= bound) return;
  findings.push_back(usage.name + ": " + std::to_string(used) + " " + what + ", bound " +
                     std::to_string(bound));
}

}  // namespace

// At least twice what the fault tests were seen to need: an agent of 40 processes that record holds 340
// descriptors, a master 40 of them and 40 threads. One of 200 agents has a thread and a connection for each.
Bounds Bounds::OfMaster() { return {400 * 1024 + kSanitizerKib, 500, 400}; }
Bounds Bounds::OfMaster(std::int64_t limit_kib) {
  Bounds bounds = OfMaster();
  bounds.memory_kib = limit_kib + kSanitizerKibOfLimit;
  return bounds;
}
Bounds Bounds::OfAgent() { return {150 * 1024 + kSanitizerKib, 800, 60}; }
// Three times what was seen: 10 MiB of one that is held with full rings, 9 descriptors, 3 threads.
Bounds Bounds::OfTrainer() { return {32 * 1024 + kSanitizerKib, 40, 9}; }

Usage ReadUsage(int pid, const std::string& name) {
  Usage usage = {.name = name + " " + std::to_string(pid)};
  const std::string folder = "/proc/" + std::to_string(pid);
  std::ifstream status(folder + "/status");
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string key;
    std::int64_t number = 0;
    if (!(words >> key >> number)) continue;
    if (key == "VmHWM:") usage.memory_kib = number;
    if (key == "Threads:") usage.threads = number;
  }
  std::error_code gone;
  for (std::filesystem::directory_iterator entry(folder + "/fd", gone), end; !gone && entry != end;
       entry.increment(gone)) {
    ++usage.descriptors;
  }
  return usage;
}

void TakeMost(const Usage& seen, Usage& most) {
  most.name = seen.name;
  most.memory_kib = std::max(most.memory_kib, seen.memory_kib);
  most.descriptors = std::max(most.descriptors, seen.descriptors);
  most.threads = std::max(most.threads, seen.threads);
}

std::vector<std::string> Exceeded(const Usage& usage, const Bounds& bounds) {
  std::vector<std::string> findings;
  Compare(usage, "KiB resident", usage.memory_kib, bounds.memory_kib, findings);
  Compare(usage, "descriptors", usage.descriptors, bounds.descriptors, findings);
  Compare(usage, "threads", usage.threads, bounds.threads, findings);
  return findings;
}

std::string ToText(const Usage& usage) {
  return usage.name + ": " + std::to_string(usage.memory_kib / 1024) + " MiB, " +
         std::to_string(usage.descriptors) + " descriptors, " + std::to_string(usage.threads) +
         " threads";
}

}  // namespace stepwell::faults
