#include "client/agent/sensors/amd_library.h"

#include <dlfcn.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace stepwell::agent {
namespace {

std::string FromEnvironment(const char* variable, const char* otherwise) {
  const char* path = std::getenv(variable);
  return path != nullptr && *path != '\0' ? path : otherwise;
}

}  // namespace

AmdLibrary::Paths AmdLibrary::PathsToLoad() {
  return {FromEnvironment("STEPWELL_AMD_SMI_PATH", "libamd_smi.so"),
          FromEnvironment("STEPWELL_ROCM_SMI_PATH", "librocm_smi64.so")};
}

absl::StatusOr<std::shared_ptr<const AmdLibrary>> AmdLibrary::Load(const Paths& paths) {
  auto library = LoadAmdSmi(paths.amd_smi);
  return library.ok() ? library : LoadRocmSmi(paths.rocm_smi);
}

void* SymbolOf(void* library, const char* name) { return dlsym(library, name); }

// The two cannot be mistaken: no GPU takes 100 kW, and none is kept below 1 W.
absl::StatusOr<double> AmdWatts(std::uint64_t limit) {
  constexpr std::uint64_t kWattsMax = 100'000;
  constexpr std::uint64_t kMicro = 1'000'000;
  if (limit > 0 && limit < kWattsMax) return static_cast<double>(limit);
  if (limit >= kMicro && limit < kWattsMax * kMicro) return static_cast<double>(limit) / kMicro;
  return absl::UnimplementedError(absl::StrCat("a power limit of ", limit, " in no known unit"));
}

absl::Status AmdStatus(const char* name, int result, const AmdResults& results) {
  if (result == 0) return absl::OkStatus();
  const std::string text = absl::StrCat(name, ": error ", result);
  if (result == results.not_supported || result == results.not_yet_implemented) {
    return absl::UnimplementedError(text);
  }
  if (result == results.no_permission) return absl::PermissionDeniedError(text);
  return absl::UnavailableError(text);
}

}  // namespace stepwell::agent
