// amd_smi, of ROCm 6 and later. Structures are declared anew, with what follows the fields that are
// read as room: they differ between releases behind their first fields.
#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/agent/sensors/amd_library.h"

namespace stepwell::agent {
namespace {

using Handle = void*;

constexpr std::uint64_t kInitGpus = 2;
constexpr AmdResults kResults = {.not_supported = 2, .not_yet_implemented = 3, .no_permission = 10};
constexpr unsigned kHandleCountMax = 64;
constexpr int kVram = 0;
constexpr std::uint32_t kSocketPower = 0;
constexpr int kCurrent = 0;
constexpr int kClockShader = 0;
constexpr int kClockMemory = 4;
constexpr int kTemperatureEdge = 0;
constexpr int kTemperatureMemory = 2;
// What a value that is not known is filled with.
constexpr std::uint32_t kUnknown16 = 0xffff;
constexpr std::uint32_t kUnknown32 = 0xffffffff;

struct EngineUsage {
  std::uint32_t shader_percent;
  std::uint32_t memory_percent;
  std::uint32_t multimedia_percent;
  std::uint32_t room[61];
};
struct ClockInfo {
  std::uint32_t megahertz;
  std::uint32_t room[63];
};
struct PowerCap {
  std::uint64_t cap;
  std::uint64_t room[63];
};

class AmdSmi final : public AmdLibrary {
 public:
  explicit AmdSmi(void* library) {
    BindSymbol(library, init_, "amdsmi_init");
    BindSymbol(library, sockets_, "amdsmi_get_socket_handles");
    BindSymbol(library, processors_, "amdsmi_get_processor_handles");
    BindSymbol(library, uuid_, "amdsmi_get_gpu_device_uuid");
    BindSymbol(library, activity_, "amdsmi_get_gpu_activity");
    BindSymbol(library, memory_total_, "amdsmi_get_gpu_memory_total");
    BindSymbol(library, memory_usage_, "amdsmi_get_gpu_memory_usage");
    BindSymbol(library, energy_, "amdsmi_get_energy_count");
    BindSymbol(library, temperature_, "amdsmi_get_temp_metric");
    BindSymbol(library, clock_, "amdsmi_get_clock_info");
    BindSymbol(library, power_cap_, "amdsmi_get_power_cap_info");
    BindSymbol(library, table_, "amdsmi_get_gpu_metrics_info");
  }
  bool usable() const {
    return init_ != nullptr && sockets_ != nullptr && processors_ != nullptr && uuid_ != nullptr;
  }

  absl::StatusOr<std::vector<Device>> List() const override {
    STEPWELL_RETURN_IF_ERROR(Call("amdsmi_init", init_, kInitGpus));
    Handle sockets[kHandleCountMax] = {};
    std::uint32_t socket_count = kHandleCountMax;
    STEPWELL_RETURN_IF_ERROR(Call("amdsmi_get_socket_handles", sockets_, &socket_count, sockets));
    std::vector<Device> devices;
    for (std::uint32_t i = 0; i < socket_count && i < kHandleCountMax; ++i) {
      Handle found[kHandleCountMax] = {};
      std::uint32_t count = kHandleCountMax;
      if (processors_(sockets[i], &count, found) != 0) continue;
      for (std::uint32_t j = 0; j < count && j < kHandleCountMax; ++j) {
        char uuid[128] = {};
        std::uint32_t size = sizeof(uuid) - 1;
        if (uuid_(found[j], &size, uuid) != 0) continue;
        devices.push_back({absl::StrCat("GPU-", uuid), reinterpret_cast<std::uintptr_t>(found[j])});
      }
    }
    return devices;
  }
  absl::StatusOr<double> UtilPercent(const Device& device) const override {
    STEPWELL_ASSIGN_OR_RETURN(const EngineUsage usage, Activity(device));
    return Known(usage.shader_percent);
  }
  absl::StatusOr<double> MemoryUtilPercent(const Device& device) const override {
    STEPWELL_ASSIGN_OR_RETURN(const EngineUsage usage, Activity(device));
    return Known(usage.memory_percent);
  }
  absl::StatusOr<Bytes> Memory(const Device& device) const override {
    Bytes bytes;
    STEPWELL_RETURN_IF_ERROR(
        Call("amdsmi_get_gpu_memory_total", memory_total_, Of(device), kVram, &bytes.total));
    STEPWELL_RETURN_IF_ERROR(
        Call("amdsmi_get_gpu_memory_usage", memory_usage_, Of(device), kVram, &bytes.used));
    return bytes;
  }
  absl::StatusOr<double> Joules(const Device& device) const override {
    std::uint64_t count = 0;
    float microjoules = 0;
    std::uint64_t time_ns = 0;
    STEPWELL_RETURN_IF_ERROR(
        Call("amdsmi_get_energy_count", energy_, Of(device), &count, &microjoules, &time_ns));
    return static_cast<double>(count) * static_cast<double>(microjoules) * 1e-6;
  }
  absl::StatusOr<double> Celsius(const Device& device, Sensor sensor) const override {
    std::int64_t celsius = 0;
    STEPWELL_RETURN_IF_ERROR(Call("amdsmi_get_temp_metric", temperature_, Of(device),
                                  sensor == Sensor::kEdge ? kTemperatureEdge : kTemperatureMemory,
                                  kCurrent, &celsius));
    return static_cast<double>(celsius);
  }
  absl::StatusOr<double> Hertz(const Device& device, Clock clock) const override {
    ClockInfo info{};
    STEPWELL_RETURN_IF_ERROR(Call("amdsmi_get_clock_info", clock_, Of(device),
                                  clock == Clock::kShader ? kClockShader : kClockMemory, &info));
    STEPWELL_ASSIGN_OR_RETURN(const double megahertz, Known(info.megahertz));
    return megahertz * 1e6;
  }
  absl::StatusOr<double> PowerLimitWatts(const Device& device) const override {
    PowerCap found{};
    STEPWELL_RETURN_IF_ERROR(
        Call("amdsmi_get_power_cap_info", power_cap_, Of(device), kSocketPower, &found));
    return AmdWatts(found.cap);
  }
  absl::StatusOr<AmdTable> Table(const Device& device) const override {
    return ReadAmdTable(
        [&](void* room) { return Call("amdsmi_get_gpu_metrics_info", table_, Of(device), room); });
  }

 private:
  static Handle Of(const Device& device) {
    return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(device.handle));
  }
  static absl::StatusOr<double> Known(std::uint32_t value) {
    if (value == kUnknown16 || value == kUnknown32) {
      return absl::UnimplementedError("amd_smi: not known on this device");
    }
    return static_cast<double>(value);
  }
  template <typename... Arguments>
  static absl::Status Call(Arguments... arguments) {
    return CallAmd(kResults, arguments...);
  }
  absl::StatusOr<EngineUsage> Activity(const Device& device) const {
    EngineUsage usage{};
    STEPWELL_RETURN_IF_ERROR(Call("amdsmi_get_gpu_activity", activity_, Of(device), &usage));
    return usage;
  }

  int (*init_)(std::uint64_t) = nullptr;
  int (*sockets_)(std::uint32_t*, Handle*) = nullptr;
  int (*processors_)(Handle, std::uint32_t*, Handle*) = nullptr;
  int (*uuid_)(Handle, std::uint32_t*, char*) = nullptr;
  int (*activity_)(Handle, EngineUsage*) = nullptr;
  int (*memory_total_)(Handle, int, std::uint64_t*) = nullptr;
  int (*memory_usage_)(Handle, int, std::uint64_t*) = nullptr;
  int (*energy_)(Handle, std::uint64_t*, float*, std::uint64_t*) = nullptr;
  int (*temperature_)(Handle, int, int, std::int64_t*) = nullptr;
  int (*clock_)(Handle, int, ClockInfo*) = nullptr;
  int (*power_cap_)(Handle, std::uint32_t, PowerCap*) = nullptr;
  int (*table_)(Handle, void*) = nullptr;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const AmdLibrary>> LoadAmdSmi(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::NotFoundError(path);
  auto smi = std::make_shared<AmdSmi>(library);
  if (!smi->usable()) return absl::NotFoundError(absl::StrCat(path, " is no amd_smi"));
  return std::shared_ptr<const AmdLibrary>(std::move(smi));
}

}  // namespace stepwell::agent
