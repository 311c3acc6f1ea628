// WorkerName: the name of a forked worker's directory in that of its writer, w<k>-<n>. A value.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace stepwell::agent {

struct WorkerName {
  std::uint32_t index = 0;  // k
  std::uint32_t again = 0;  // n
  auto operator<=>(const WorkerName&) const = default;
};

// Nothing where it is not the one way the recorder writes it: each directory has one name.
std::optional<WorkerName> ParseWorkerName(const std::string& text);
std::string TextOf(const WorkerName& name);

}  // namespace stepwell::agent
