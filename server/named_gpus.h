// NamedGpus: the labels `device` of GPUs that samplers name in their definitions: sorted, each once,
// the first 256 of them. A core. Thread-compatible.
//
//   NamedGpus seen;
//   seen.Add("GPU-5f1c");
//   order.gpus = seen.names();
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace stepwell {

// Where agents put their GPUs, and the label that tells one from another.
inline constexpr char kGpuMetricGroup[] = "gpu";
inline constexpr char kDeviceLabel[] = "device";
// A machine has 16 GPUs, or 16 × 7 slices of them.
inline constexpr std::size_t kNamedGpusMax = 256;
// A UUID of a GPU or of a slice of one is at most 80.
inline constexpr std::size_t kGpuNameBytesMax = 128;

class NamedGpus {
 public:
  // True when that changes what is held. Passes over a name that is empty or too long, and of too
  // many the last.
  bool Add(absl::string_view name);
  bool Add(const NamedGpus& others);

  const std::vector<std::string>& names() const { return names_; }
  // Of memory, about. O(names).
  std::size_t bytes() const;

  bool operator==(const NamedGpus&) const = default;

 private:
  std::vector<std::string> names_;
};

}  // namespace stepwell
