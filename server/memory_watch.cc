#include "server/memory_watch.h"

#include <malloc.h>
#include <unistd.h>

#include <cstdio>

#include "base/log.h"

namespace stepwell {

std::int64_t ResidentBytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return -1;
  long long pages = 0;
  const bool is_read = std::fscanf(file, "%*d %lld", &pages) == 1;
  std::fclose(file);
  return is_read ? pages * sysconf(_SC_PAGESIZE) : -1;
}

void MemoryWatch::Look(SteadyTime now) {
  const std::int64_t resident_bytes = ResidentBytes();
  const MemoryPressure::Verdict verdict = pressure_.Look(resident_bytes, now);
  if (verdict.is_tight != is_tight()) {
    log::Info(verdict.is_tight ? "memory_tight" : "memory_eased",
              {{"resident_bytes", resident_bytes}, {"memory_bytes", shares_.limit_bytes}});
    rooms_.SetTight(verdict.is_tight);
    lists_.SetTight(verdict.is_tight);
  }
  if (verdict.trims) malloc_trim(0);
}

}  // namespace stepwell
