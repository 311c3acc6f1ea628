#include "client/agent/sensors/nvml_session.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace stepwell::agent {
namespace {

// Of one machine; a GPU has at most seven slices.
constexpr unsigned kGpuCountMax = 64;
constexpr unsigned kSliceCountMax = 16;

}  // namespace

NvmlSession::Call::Call(NvmlSession& session, const std::string& uuid) : session_(session) {
  absl::MutexLock lock(&session_.mu_);
  ++session_.calls_under_way_;
  const auto found = session_.device_by_uuid_.find(uuid);
  if (found != session_.device_by_uuid_.end()) device_ = found->second;
}

NvmlSession::Call::~Call() {
  absl::MutexLock lock(&session_.mu_);
  --session_.calls_under_way_;
}

void NvmlSession::Doubt() {
  absl::MutexLock lock(&mu_);
  doubted_ = true;
}

bool NvmlSession::IsSettled() {
  absl::MutexLock lock(&mu_);
  return begun_ && !doubted_ && !device_by_uuid_.empty();
}

absl::Status NvmlSession::Begin() {
  bool end_first = false;
  {
    absl::MutexLock lock(&mu_);
    if (begun_ && !doubted_) return absl::OkStatus();
    // While a call hangs on one GPU, the others go on without a new beginning.
    if (begun_ && calls_under_way_ > 0) return absl::OkStatus();
    end_first = begun_;
    begun_ = false;
    doubted_ = false;
    device_by_uuid_.clear();
  }
  // Calls find no device meanwhile.
  if (end_first) library_->shutdown();
  STEPWELL_RETURN_IF_ERROR(library_->StatusOf(library_->init(), "nvmlInit"));
  absl::MutexLock lock(&mu_);
  begun_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<NvmlDeviceFace>> NvmlSession::List() {
  STEPWELL_RETURN_IF_ERROR(Begin());
  unsigned count = 0;
  STEPWELL_RETURN_IF_ERROR(
      library_->StatusOf(library_->device_count(&count), "nvmlDeviceGetCount"));
  std::vector<NvmlDeviceFace> faces;
  std::map<std::string, nvml::Device> devices;
  for (unsigned i = 0; i < count && i < kGpuCountMax; ++i) {
    nvml::Device device = nullptr;
    // One that is lost or not ours to see hides no other.
    if (library_->device_by_index(i, &device) != nvml::kSuccess) continue;
    ListOne(device, faces, devices).IgnoreError();
  }
  absl::MutexLock lock(&mu_);
  device_by_uuid_ = std::move(devices);
  return faces;
}

absl::Status NvmlSession::ListOne(nvml::Device device, std::vector<NvmlDeviceFace>& faces,
                                  std::map<std::string, nvml::Device>& devices) const {
  char uuid[nvml::kUuidBytesMax] = {};
  STEPWELL_RETURN_IF_ERROR(
      library_->StatusOf(library_->uuid(device, uuid, sizeof(uuid) - 1), "nvmlDeviceGetUUID"));
  faces.push_back({uuid});
  devices[uuid] = device;
  unsigned is_on = 0;
  unsigned pending = 0;
  if (library_->mig_mode != nullptr &&
      library_->mig_mode(device, &is_on, &pending) == nvml::kSuccess && is_on != 0) {
    ListSlices(device, uuid, faces, devices);
  }
  return absl::OkStatus();
}

void NvmlSession::ListSlices(nvml::Device device, const std::string& uuid,
                             std::vector<NvmlDeviceFace>& faces,
                             std::map<std::string, nvml::Device>& devices) const {
  unsigned count = 0;
  if (library_->mig_count_max == nullptr || library_->mig_by_index == nullptr ||
      library_->mig_count_max(device, &count) != nvml::kSuccess) {
    return;
  }
  for (unsigned i = 0; i < count && i < kSliceCountMax; ++i) {
    nvml::Device slice = nullptr;
    char slice_uuid[nvml::kUuidBytesMax] = {};
    if (library_->mig_by_index(device, i, &slice) != nvml::kSuccess) continue;
    if (library_->uuid(slice, slice_uuid, sizeof(slice_uuid) - 1) != nvml::kSuccess) continue;
    NvmlDeviceFace face{slice_uuid, uuid};
    if (library_->gpu_instance != nullptr) library_->gpu_instance(slice, &face.gpu_instance);
    faces.push_back(face);
    devices[slice_uuid] = slice;
  }
}

}  // namespace stepwell::agent
