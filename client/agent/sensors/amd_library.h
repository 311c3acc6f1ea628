// AmdLibrary: one of AMD's two management libraries, loaded at run time: amd_smi, and where there is
// none, rocm_smi. What both know is asked in one way; each call is optional. What calls it may hang in
// it. Thread-safe, as the libraries are.
//
//   STEPWELL_ASSIGN_OR_RETURN(auto library, AmdLibrary::Load(AmdLibrary::PathsToLoad()));
//   absl::StatusOr<double> percent = library->Util(device);
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/agent/sensors/amd_table.h"

namespace stepwell::agent {

class AmdLibrary {
 public:
  struct Device {
    // "GPU-" and the card's own number, or where it stands on the bus.
    std::string name;
    // The library's own.
    std::uint64_t handle = 0;
  };
  struct Bytes {
    std::uint64_t total = 0;
    std::uint64_t used = 0;
  };
  enum class Clock { kShader, kMemory };
  enum class Sensor { kEdge, kMemory };

  struct Paths {
    std::string amd_smi;
    std::string rocm_smi;
  };
  // STEPWELL_AMD_SMI_PATH and STEPWELL_ROCM_SMI_PATH, else the names that ROCm installs.
  static Paths PathsToLoad();
  // kNotFound: there is neither. It stays loaded for ever: a thread may hang in it.
  static absl::StatusOr<std::shared_ptr<const AmdLibrary>> Load(const Paths& paths);

  virtual ~AmdLibrary() = default;
  // May take seconds at the first call, which initialises.
  virtual absl::StatusOr<std::vector<Device>> List() const = 0;
  // All: kUnimplemented for what this device or driver cannot do, kPermissionDenied, kUnavailable
  // else.
  virtual absl::StatusOr<double> UtilPercent(const Device& device) const = 0;
  virtual absl::StatusOr<double> MemoryUtilPercent(const Device& device) const = 0;
  virtual absl::StatusOr<Bytes> Memory(const Device& device) const = 0;
  // Since the driver was loaded.
  virtual absl::StatusOr<double> Joules(const Device& device) const = 0;
  virtual absl::StatusOr<double> Celsius(const Device& device, Sensor sensor) const = 0;
  virtual absl::StatusOr<double> Hertz(const Device& device, Clock clock) const = 0;
  // The limit in force.
  virtual absl::StatusOr<double> PowerLimitWatts(const Device& device) const = 0;
  virtual absl::StatusOr<AmdTable> Table(const Device& device) const = 0;
};

// By each library's own file.
absl::StatusOr<std::shared_ptr<const AmdLibrary>> LoadAmdSmi(const std::string& path);
absl::StatusOr<std::shared_ptr<const AmdLibrary>> LoadRocmSmi(const std::string& path);
// Null where the library has no such function.
void* SymbolOf(void* library, const char* name);
template <typename Function>
void BindSymbol(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(SymbolOf(library, name));
}
// What each library's results mean beside 0, which is success.
struct AmdResults {
  int not_supported;
  int not_yet_implemented;
  int no_permission;
};
// Of a limit of power, whose unit differs between releases: watts in some, millionths in others. What
// no GPU can have in either is kUnimplemented, as is 0, which is no limit.
absl::StatusOr<double> AmdWatts(std::uint64_t limit);
absl::Status AmdStatus(const char* name, int result, const AmdResults& results);
template <typename Function, typename... Arguments>
absl::Status CallAmd(const AmdResults& results, const char* name, Function function,
                     Arguments... arguments) {
  if (function == nullptr) return absl::UnimplementedError(std::string(name) + ": none");
  return AmdStatus(name, function(arguments...), results);
}

}  // namespace stepwell::agent
