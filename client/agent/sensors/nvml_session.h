// NvmlSession: the library, initialised, and the devices that it shows. A device that is lost is
// seen again only by a library that was shut down and initialised anew; that waits until no call is
// under way. Thread-safe.
//
//   const NvmlSession::Call call(*session, uuid);
//   if (call.device() != nullptr) session->library().power_usage(call.device(), &milliwatts);
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
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

  const NvmlLibrary& library() const { return *library_; }

  // Initialises where that is to be done, and lists what there is now. May take seconds.
  absl::StatusOr<std::vector<NvmlDeviceFace>> List() ABSL_LOCKS_EXCLUDED(mu_);
  // A device was found lost: the next List begins anew.
  void Doubt() ABSL_LOCKS_EXCLUDED(mu_);
  // There were devices at the last List, and none was found lost since. Listing costs milliseconds
  // for each.
  bool IsSettled() ABSL_LOCKS_EXCLUDED(mu_);

  // As long as it lives, the library is not shut down.
  class Call {
   public:
    Call(NvmlSession& session, const std::string& uuid);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    // Null: not seen at the last List.
    nvml::Device device() const { return device_; }

   private:
    NvmlSession& session_;
    nvml::Device device_ = nullptr;
  };

 private:
  absl::Status Begin() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status ListOne(nvml::Device device, std::vector<NvmlDeviceFace>& faces,
                       std::map<std::string, nvml::Device>& devices) const;
  void ListSlices(nvml::Device device, const std::string& uuid, std::vector<NvmlDeviceFace>& faces,
                  std::map<std::string, nvml::Device>& devices) const;

  const std::shared_ptr<const NvmlLibrary> library_;
  absl::Mutex mu_;
  bool begun_ ABSL_GUARDED_BY(mu_) = false;
  bool doubted_ ABSL_GUARDED_BY(mu_) = false;
  int calls_under_way_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<std::string, nvml::Device> device_by_uuid_ ABSL_GUARDED_BY(mu_);
};

}  // namespace stepwell::agent
