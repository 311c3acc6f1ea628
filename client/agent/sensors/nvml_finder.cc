#include "client/agent/sensors/nvml_finder.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/agent/sensors/nvml_sensor.h"

namespace stepwell::agent {
namespace {

constexpr char kPciDevices[] = "sys/bus/pci/devices";

}  // namespace

// A display controller of this vendor: its absence is no failure, but a GPU without a library is.
bool NvmlFinder::HasGpu() const {
  for (const std::string& device : kernel_.List(kPciDevices)) {
    const std::string folder = absl::StrCat(kPciDevices, "/", device, "/");
    const auto vendor = kernel_.Read(folder + "vendor");
    if (!vendor.ok() || !absl::StartsWith(*vendor, "0x10de")) continue;
    const auto display = kernel_.Read(folder + "class");
    if (display.ok() && absl::StartsWith(*display, "0x03")) return true;
  }
  return false;
}

void NvmlFinder::Miss(const absl::Status& why, Findings& findings) const {
  if (!known_.empty() || HasGpu()) {
    findings.absences.push_back(
        {"gpu", KindOf(why), "nvml", 1, absl::StrCat("NVIDIA: ", why.message())});
  }
}

Findings NvmlFinder::Find() {
  Findings findings;
  if (session_ == nullptr) {
    absl::StatusOr<std::shared_ptr<NvmlSession>> session = NvmlSession::Of(path_);
    if (!session.ok()) {
      Miss(session.status(), findings);
      return findings;
    }
    session_ = *std::move(session);
  }
  const absl::StatusOr<std::vector<NvmlDeviceFace>> faces =
      session_->List(clock_, std::exchange(is_first_, false));
  if (!faces.ok()) {
    Miss(faces.status(), findings);
    return findings;
  }
  for (const NvmlDeviceFace& face : *faces) {
    if (!known_.insert(face.uuid).second) continue;
    findings.sensors.push_back(std::make_unique<NvmlSensor>(session_, face));
  }
  // Those that it had itself tell of themselves.
  for (const std::string& uuid : session_->Lost()) {
    if (known_.count(uuid) != 0) continue;
    findings.absences.push_back({"gpu", AbsenceKind::kFailed, uuid, 1,
                                 absl::StrCat(uuid, ": lost before this trial was sampled")});
  }
  return findings;
}

}  // namespace stepwell::agent
