#include "base/trace/profile_event.h"

#include "base/trace/exact_time.h"
#include "base/trace/json_members.h"

namespace stepwell {
namespace {

// 73 years either way: sums and differences of such times fit into 64 bits.
constexpr std::int64_t kTimeMaxNs = std::int64_t{1} << 61;

// Kineto's names, and those of before 2022.
constexpr ProfileCategory kCategories[] = {
    {"\"kernel\"", ProfileKind::kDevice, StepClass::kKernel},
    {"\"Kernel\"", ProfileKind::kDevice, StepClass::kKernel},
    {"\"gpu_memcpy\"", ProfileKind::kDevice, StepClass::kMemcpy},
    {"\"Memcpy\"", ProfileKind::kDevice, StepClass::kMemcpy},
    {"\"gpu_memset\"", ProfileKind::kDevice, StepClass::kMemset},
    {"\"Memset\"", ProfileKind::kDevice, StepClass::kMemset},
    {"\"cuda_runtime\"", ProfileKind::kRuntime, StepClass::kRuntime},
    {"\"cuda_driver\"", ProfileKind::kRuntime, StepClass::kRuntime},
    {"\"Runtime\"", ProfileKind::kRuntime, StepClass::kRuntime},
    {"\"cpu_op\"", ProfileKind::kOperator, StepClass::kProcessor},
    {"\"user_annotation\"", ProfileKind::kOperator, StepClass::kProcessor},
    {"\"Operator\"", ProfileKind::kOperator, StepClass::kProcessor},
};

std::int64_t IdOf(const TraceEvent& event, std::string_view name) {
  return event.args.empty() ? 0 : WholeNumber(MemberOf(event.args, name)).value_or(0);
}

}  // namespace

const char* StepClassName(StepClass step_class) {
  switch (step_class) {
    case StepClass::kKernel:
      return "kernel";
    case StepClass::kMemcpy:
      return "memcpy";
    case StepClass::kMemset:
      return "memset";
    case StepClass::kCommunication:
      return "communication";
    case StepClass::kRuntime:
      return "runtime";
    case StepClass::kDataLoader:
      return "data loader";
    case StepClass::kProcessor:
      return "processor";
    case StepClass::kOther:
      return "other";
  }
  return "other";
}

const ProfileCategory* CategoryOf(const TraceEvent& event) {
  for (const ProfileCategory& each : kCategories) {
    if (each.name == event.category) return &each;
  }
  return nullptr;
}

std::optional<Interval> ProfileTimes(const TraceEvent& event) {
  const std::optional<std::int64_t> begin = NsOfMicros(event.time);
  const std::optional<std::int64_t> length = NsOfMicros(event.duration);
  if (!begin.has_value() || !length.has_value() || *length < 0) return std::nullopt;
  if (*begin > kTimeMaxNs || *begin < -kTimeMaxNs || *length > kTimeMaxNs) return std::nullopt;
  return Interval{*begin, *begin + *length};
}

bool IsProfilerStep(std::string_view name) { return name.starts_with("\"ProfilerStep#"); }

bool IsLoader(std::string_view name) {
  return name.starts_with("\"enumerate(DataLoader)#") || name.starts_with("\"enumerate(DataPipe)#");
}

bool IsCommunication(std::string_view name) {
  return name.starts_with("\"nccl:") || name.starts_with("\"gloo:");
}

bool IsCommunicationKernel(std::string_view name) { return name.starts_with("\"nccl"); }

std::int64_t CorrelationOf(const TraceEvent& event) { return IdOf(event, "correlation"); }

std::int64_t ExternalIdOf(const TraceEvent& event) {
  const std::int64_t id = IdOf(event, "External id");
  // Kernels of before 2022 write it so.
  return id != 0 ? id : IdOf(event, "external id");
}

}  // namespace stepwell
