// ProfileEvent: what an event of a native profiler's trace (Kineto's JSON) is to the time of its step. Pure functions.
//
//   const ProfileCategory* category = CategoryOf(event);
//   const std::optional<Interval> at = ProfileTimes(event);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/trace/interval_set.h"
#include "base/trace/trace_event.h"

namespace stepwell {

enum class StepClass {
  kKernel,
  kMemcpy,
  kMemset,
  kCommunication,
  kRuntime,
  kDataLoader,
  kProcessor,
  kOther
};
inline constexpr std::size_t kStepClassCount = 8;
const char* StepClassName(StepClass step_class);

enum class ProfileKind { kDevice, kRuntime, kOperator };

struct ProfileCategory {
  std::string_view name;  // as it stands in the file, in quotes
  ProfileKind kind;
  StepClass step_class;
};
// Null: it is of no time of a step.
const ProfileCategory* CategoryOf(const TraceEvent& event);

// Nothing: it has none, or one that no clock shows.
std::optional<Interval> ProfileTimes(const TraceEvent& event);

// Names as they stand in the file, in quotes.
bool IsProfilerStep(std::string_view name);
bool IsLoader(std::string_view name);
// Of operators, and of kernels where they say so themselves.
bool IsCommunication(std::string_view name);
bool IsCommunicationKernel(std::string_view name);

// What joins a call to what it started, and a kernel to its operator; 0: nothing says.
std::int64_t CorrelationOf(const TraceEvent& event);
std::int64_t ExternalIdOf(const TraceEvent& event);

}  // namespace stepwell
