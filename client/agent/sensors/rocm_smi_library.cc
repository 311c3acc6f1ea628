// rocm_smi, of ROCm 4 and 5.
#include <dlfcn.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "client/agent/sensors/amd_library.h"

namespace stepwell::agent {
namespace {

constexpr AmdResults kResults = {.not_supported = 2, .not_yet_implemented = 9, .no_permission = 4};
constexpr std::uint32_t kDeviceCountMax = 64;
constexpr int kVram = 0;
constexpr std::uint32_t kSocketPower = 0;
constexpr int kCurrent = 0;
constexpr int kClockSystem = 0;
constexpr int kClockMemory = 4;
constexpr std::uint32_t kTemperatureEdge = 0;
constexpr std::uint32_t kTemperatureMemory = 2;

// How many frequencies there are, which of them is the present one, and what they are. Later releases
// have a flag before it; see FrequencyOf.
struct Frequencies {
  std::uint32_t count;
  std::uint32_t current;
  std::uint64_t hertz[40];
};

// The present frequency in either layout; none where it is neither. With the flag the first word is 0
// or 1 and the second the count, which is then no index below the first.
std::optional<std::uint64_t> FrequencyOf(const Frequencies& found) {
  constexpr std::uint64_t kCountMax = 33;
  if (found.count <= kCountMax && found.current < found.count) return found.hertz[found.current];
  const std::uint64_t current = found.hertz[0] & 0xffffffff;
  if (found.count <= 1 && found.current <= kCountMax && current < found.current) {
    return found.hertz[1 + current];
  }
  return std::nullopt;
}

class RocmSmi final : public AmdLibrary {
 public:
  explicit RocmSmi(void* library) {
    BindSymbol(library, init_, "rsmi_init");
    BindSymbol(library, device_count_, "rsmi_num_monitor_devices");
    BindSymbol(library, unique_id_, "rsmi_dev_unique_id_get");
    BindSymbol(library, pci_id_, "rsmi_dev_pci_id_get");
    BindSymbol(library, busy_, "rsmi_dev_busy_percent_get");
    BindSymbol(library, memory_busy_, "rsmi_dev_memory_busy_percent_get");
    BindSymbol(library, memory_total_, "rsmi_dev_memory_total_get");
    BindSymbol(library, memory_usage_, "rsmi_dev_memory_usage_get");
    BindSymbol(library, energy_, "rsmi_dev_energy_count_get");
    BindSymbol(library, temperature_, "rsmi_dev_temp_metric_get");
    BindSymbol(library, frequencies_, "rsmi_dev_gpu_clk_freq_get");
    BindSymbol(library, power_cap_, "rsmi_dev_power_cap_get");
    BindSymbol(library, table_, "rsmi_dev_gpu_metrics_info_get");
  }
  bool usable() const { return init_ != nullptr && device_count_ != nullptr; }

  absl::StatusOr<std::vector<Device>> List() const override {
    STEPWELL_RETURN_IF_ERROR(Call("rsmi_init", init_, std::uint64_t{0}));
    std::uint32_t count = 0;
    STEPWELL_RETURN_IF_ERROR(Call("rsmi_num_monitor_devices", device_count_, &count));
    std::vector<Device> devices;
    for (std::uint32_t i = 0; i < count && i < kDeviceCountMax; ++i) {
      devices.push_back({NameOf(i), i});
    }
    return devices;
  }
  absl::StatusOr<double> UtilPercent(const Device& device) const override {
    std::uint32_t percent = 0;
    STEPWELL_RETURN_IF_ERROR(Call("rsmi_dev_busy_percent_get", busy_, Of(device), &percent));
    return percent;
  }
  absl::StatusOr<double> MemoryUtilPercent(const Device& device) const override {
    std::uint32_t percent = 0;
    STEPWELL_RETURN_IF_ERROR(
        Call("rsmi_dev_memory_busy_percent_get", memory_busy_, Of(device), &percent));
    return percent;
  }
  absl::StatusOr<Bytes> Memory(const Device& device) const override {
    Bytes bytes;
    STEPWELL_RETURN_IF_ERROR(
        Call("rsmi_dev_memory_total_get", memory_total_, Of(device), kVram, &bytes.total));
    STEPWELL_RETURN_IF_ERROR(
        Call("rsmi_dev_memory_usage_get", memory_usage_, Of(device), kVram, &bytes.used));
    return bytes;
  }
  absl::StatusOr<double> Joules(const Device& device) const override {
    std::uint64_t count = 0;
    float microjoules = 0;
    std::uint64_t time_ns = 0;
    STEPWELL_RETURN_IF_ERROR(
        Call("rsmi_dev_energy_count_get", energy_, Of(device), &count, &microjoules, &time_ns));
    return static_cast<double>(count) * static_cast<double>(microjoules) * 1e-6;
  }
  absl::StatusOr<double> Celsius(const Device& device, Sensor sensor) const override {
    std::int64_t millidegrees = 0;
    STEPWELL_RETURN_IF_ERROR(Call("rsmi_dev_temp_metric_get", temperature_, Of(device),
                                  sensor == Sensor::kEdge ? kTemperatureEdge : kTemperatureMemory,
                                  kCurrent, &millidegrees));
    return static_cast<double>(millidegrees) / 1000;
  }
  absl::StatusOr<double> Hertz(const Device& device, Clock clock) const override {
    Frequencies found{};
    STEPWELL_RETURN_IF_ERROR(Call("rsmi_dev_gpu_clk_freq_get", frequencies_, Of(device),
                                  clock == Clock::kShader ? kClockSystem : kClockMemory, &found));
    const std::optional<std::uint64_t> hertz = FrequencyOf(found);
    if (!hertz) return absl::UnimplementedError("rsmi_dev_gpu_clk_freq_get: of another release");
    return static_cast<double>(*hertz);
  }
  absl::StatusOr<double> PowerLimitWatts(const Device& device) const override {
    std::uint64_t limit = 0;
    STEPWELL_RETURN_IF_ERROR(
        Call("rsmi_dev_power_cap_get", power_cap_, Of(device), kSocketPower, &limit));
    return AmdWatts(limit);
  }
  absl::StatusOr<AmdTable> Table(const Device& device) const override {
    return ReadAmdTable([&](void* room) {
      return Call("rsmi_dev_gpu_metrics_info_get", table_, Of(device), room);
    });
  }

 private:
  static std::uint32_t Of(const Device& device) {
    return static_cast<std::uint32_t>(device.handle);
  }
  std::string NameOf(std::uint32_t index) const {
    std::uint64_t number = 0;
    if (unique_id_ != nullptr && unique_id_(index, &number) == 0 && number != 0) {
      return absl::StrFormat("GPU-%016x", number);
    }
    if (pci_id_ != nullptr && pci_id_(index, &number) == 0) {
      return absl::StrFormat("GPU-pci-%04x:%02x:%02x.%x", number >> 32, (number >> 8) & 0xff,
                             (number >> 3) & 0x1f, number & 7);
    }
    return absl::StrCat("GPU-", index);
  }
  template <typename... Arguments>
  static absl::Status Call(Arguments... arguments) {
    return CallAmd(kResults, arguments...);
  }

  int (*init_)(std::uint64_t) = nullptr;
  int (*device_count_)(std::uint32_t*) = nullptr;
  int (*unique_id_)(std::uint32_t, std::uint64_t*) = nullptr;
  int (*pci_id_)(std::uint32_t, std::uint64_t*) = nullptr;
  int (*busy_)(std::uint32_t, std::uint32_t*) = nullptr;
  int (*memory_busy_)(std::uint32_t, std::uint32_t*) = nullptr;
  int (*memory_total_)(std::uint32_t, int, std::uint64_t*) = nullptr;
  int (*memory_usage_)(std::uint32_t, int, std::uint64_t*) = nullptr;
  int (*energy_)(std::uint32_t, std::uint64_t*, float*, std::uint64_t*) = nullptr;
  int (*temperature_)(std::uint32_t, std::uint32_t, int, std::int64_t*) = nullptr;
  int (*frequencies_)(std::uint32_t, int, Frequencies*) = nullptr;
  int (*power_cap_)(std::uint32_t, std::uint32_t, std::uint64_t*) = nullptr;
  int (*table_)(std::uint32_t, void*) = nullptr;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const AmdLibrary>> LoadRocmSmi(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::NotFoundError(path);
  auto smi = std::make_shared<RocmSmi>(library);
  if (!smi->usable()) return absl::NotFoundError(absl::StrCat(path, " is no rocm_smi"));
  return std::shared_ptr<const AmdLibrary>(std::move(smi));
}

}  // namespace stepwell::agent
