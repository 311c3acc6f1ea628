// NvmlSession: the library, initialised, and the devices that it shows. All samplers of the process share
// one: the library counts who initialised it, and only the last who leaves shuts it down. A device that
// is lost is seen again only by a library that was shut down and initialised anew, in which time none
// is there: that waits until no call is under way, and ever longer while other devices are well.
// Thread-safe.
//
//   const NvmlSession::Call call(*session, uuid);
//   if (call.device() != nullptr) session->library().power_usage(call.device(), &milliwatts);
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "client/agent/sensors/loss_pace.h"
#include "client/agent/sensors/nvml_library.h"

namespace stepwell::agent {

// What can be sampled: a GPU, or a slice of one (MIG).
struct NvmlDeviceFace {
  std::string uuid;
  // Of a slice: the GPU that it is cut from, and which part of it.
  std::string parent_uuid = {};
  unsigned gpu_instance = 0;
  bool is_slice() const { return !parent_uuid.empty(); }
};

class NvmlSession {
 public:
  explicit NvmlSession(std::shared_ptr<const NvmlLibrary> library) : library_(std::move(library)) {}
  // The process's one of that library, which stays for ever, as the library does. kNotFound: there is
  // none.
  static absl::StatusOr<std::shared_ptr<NvmlSession>> Of(const std::string& path);

  const NvmlLibrary& library() const { return *library_; }

  // What there is. Looks for it where nothing is known, where a device was found lost (then the library
  // begins anew, if that is due) and where `afresh` says so: slices may have been cut anew. May take
  // seconds; while another sampler's look does, it is what was known before.
  absl::StatusOr<std::vector<NvmlDeviceFace>> List(const Clock& clock, bool afresh = false)
      ABSL_LOCKS_EXCLUDED(mu_);
  // That device was found lost.
  void Doubt(const std::string& uuid) ABSL_LOCKS_EXCLUDED(mu_);
  // GPUs that the library showed once and does not show since it began anew for them.
  std::vector<std::string> Lost() ABSL_LOCKS_EXCLUDED(mu_);

  // As long as it lives, the library is not shut down.
  class Call {
   public:
    Call(NvmlSession& session, const std::string& uuid);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    // Null: not seen at the last List.
    nvml::Device device() const { return device_; }
    // There is no device at this moment, and none is lost for that.
    bool is_beginning() const { return is_beginning_; }

   private:
    NvmlSession& session_;
    nvml::Device device_ = nullptr;
    bool is_beginning_ = false;
  };

 private:
  enum class Step { kNone, kLook, kBegin, kBeginAnew };
  Step NextStep(absl::Duration now, bool afresh) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool HasHealthy() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status TakeStep(Step step) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status ListAll(std::vector<NvmlDeviceFace>& faces,
                       std::map<std::string, nvml::Device>& devices) const;
  absl::Status ListOne(nvml::Device device, std::vector<NvmlDeviceFace>& faces,
                       std::map<std::string, nvml::Device>& devices) const;
  void ListSlices(nvml::Device device, const std::string& uuid, std::vector<NvmlDeviceFace>& faces,
                  std::map<std::string, nvml::Device>& devices) const;

  const std::shared_ptr<const NvmlLibrary> library_;
  absl::Mutex mu_;
  bool begun_ ABSL_GUARDED_BY(mu_) = false;
  // One sampler looks for all.
  bool looking_ ABSL_GUARDED_BY(mu_) = false;
  bool beginning_ ABSL_GUARDED_BY(mu_) = false;
  // Found lost since the library began.
  std::set<std::string> doubted_ ABSL_GUARDED_BY(mu_);
  // Those for which it began, and which it has not shown since: whoever sampled them may have ended.
  std::set<std::string> lost_ ABSL_GUARDED_BY(mu_);
  LossPace pace_ ABSL_GUARDED_BY(mu_);
  int calls_under_way_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<NvmlDeviceFace> faces_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, nvml::Device> device_by_uuid_ ABSL_GUARDED_BY(mu_);
};

}  // namespace stepwell::agent
