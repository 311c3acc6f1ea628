#include "client/agent/sensors/nvml_session.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"

namespace stepwell::agent {
namespace {

// Of one machine; a GPU has at most seven slices.
constexpr unsigned kGpuCountMax = 64;
constexpr unsigned kSliceCountMax = 16;
// For calls to end before the library is shut down: they began with the tick that asked for the look.
constexpr absl::Duration kCallsPatience = absl::Milliseconds(250);

}  // namespace

NvmlSession::Call::Call(NvmlSession& session, const std::string& uuid) : session_(session) {
  absl::MutexLock lock(&session_.mu_);
  ++session_.calls_under_way_;
  const auto found = session_.device_by_uuid_.find(uuid);
  if (found != session_.device_by_uuid_.end()) device_ = found->second;
  is_beginning_ = session_.beginning_;
}

NvmlSession::Call::~Call() {
  absl::MutexLock lock(&session_.mu_);
  --session_.calls_under_way_;
}

absl::StatusOr<std::shared_ptr<NvmlSession>> NvmlSession::Of(const std::string& path) {
  struct All {
    absl::Mutex mu;
    std::map<std::string, std::shared_ptr<NvmlSession>> by_path ABSL_GUARDED_BY(mu);
  };
  static All& all = *new All;
  // Loading may take its time, but asks no device.
  STEPWELL_ASSIGN_OR_RETURN(auto library, NvmlLibrary::Load(path));
  absl::MutexLock lock(&all.mu);
  std::shared_ptr<NvmlSession>& session = all.by_path[path];
  if (session == nullptr) session = std::make_shared<NvmlSession>(std::move(library));
  return session;
}

std::vector<std::string> NvmlSession::Lost() {
  absl::MutexLock lock(&mu_);
  return {lost_.begin(), lost_.end()};
}

void NvmlSession::Doubt(const std::string& uuid) {
  absl::MutexLock lock(&mu_);
  doubted_.insert(uuid);
}

bool NvmlSession::HasHealthy() const {
  return std::any_of(device_by_uuid_.begin(), device_by_uuid_.end(),
                     [this](const auto& device) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
                       return doubted_.count(device.first) == 0;
                     });
}

NvmlSession::Step NvmlSession::NextStep(absl::Duration now, bool afresh) {
  if (!begun_) return Step::kBegin;
  const bool is_due = pace_.IsDue(now);
  if (doubted_.empty() && lost_.empty()) {
    // Readings that follow a beginning have had their time to doubt again.
    if (is_due) pace_.Reset();
  } else if (!HasHealthy() || is_due) {
    return Step::kBeginAnew;
  }
  return afresh || device_by_uuid_.empty() ? Step::kLook : Step::kNone;
}

absl::StatusOr<std::vector<NvmlDeviceFace>> NvmlSession::List(const Clock& clock, bool afresh) {
  const absl::Duration began_at = clock.Monotonic();
  Step step = Step::kNone;
  {
    absl::MutexLock lock(&mu_);
    if (!looking_) step = NextStep(began_at, afresh);
    if (step == Step::kNone) {
      if (!begun_) return absl::UnavailableError("nvmlInit: is under way");
      return faces_;
    }
    looking_ = true;
    const auto is_idle = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return calls_under_way_ == 0; };
    if (step == Step::kBeginAnew &&
        !mu_.AwaitWithTimeout(absl::Condition(&is_idle), kCallsPatience)) {
      // While a call hangs on one GPU, the others go on without a new beginning.
      looking_ = false;
      return faces_;
    }
    if (step != Step::kLook) {
      begun_ = false;
      beginning_ = true;
      device_by_uuid_.clear();
    }
  }
  const absl::Status status = TakeStep(step);
  absl::MutexLock lock(&mu_);
  looking_ = false;
  beginning_ = false;
  if (step == Step::kBeginAnew) pace_.Began(began_at, clock.Monotonic());
  if (!status.ok()) return status;
  return faces_;
}

// Calls find no device while the library begins.
absl::Status NvmlSession::TakeStep(Step step) {
  if (step == Step::kBeginAnew) library_->shutdown();
  if (step != Step::kLook) {
    STEPWELL_RETURN_IF_ERROR(library_->StatusOf(library_->init(), "nvmlInit"));
    absl::MutexLock lock(&mu_);
    begun_ = true;
  }
  std::vector<NvmlDeviceFace> faces;
  std::map<std::string, nvml::Device> devices;
  STEPWELL_RETURN_IF_ERROR(ListAll(faces, devices));
  absl::MutexLock lock(&mu_);
  if (step != Step::kLook) {
    lost_.merge(std::exchange(doubted_, {}));
    // A slice that is gone was cut away, as a rule.
    for (const NvmlDeviceFace& face : faces_) {
      if (face.is_slice()) lost_.erase(face.uuid);
    }
  }
  std::erase_if(lost_, [&](const std::string& uuid) { return devices.count(uuid) != 0; });
  device_by_uuid_ = std::move(devices);
  faces_ = std::move(faces);
  return absl::OkStatus();
}

absl::Status NvmlSession::ListAll(std::vector<NvmlDeviceFace>& faces,
                                  std::map<std::string, nvml::Device>& devices) const {
  unsigned count = 0;
  STEPWELL_RETURN_IF_ERROR(
      library_->StatusOf(library_->device_count(&count), "nvmlDeviceGetCount"));
  for (unsigned i = 0; i < count && i < kGpuCountMax; ++i) {
    nvml::Device device = nullptr;
    // One that is lost or not ours to see hides no other.
    if (library_->device_by_index(i, &device) != nvml::kSuccess) continue;
    ListOne(device, faces, devices).IgnoreError();
  }
  return absl::OkStatus();
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
