#include "server/named_gpus.h"

#include <algorithm>

namespace stepwell {

bool NamedGpus::Add(absl::string_view name) {
  if (name.empty() || name.size() > kGpuNameBytesMax) return false;
  const auto place = std::lower_bound(
      names_.begin(), names_.end(), name,
      [](const std::string& held, absl::string_view wanted) { return held < wanted; });
  if (place == names_.end() && names_.size() >= kNamedGpusMax) return false;
  if (place != names_.end() && *place == name) return false;
  names_.insert(place, std::string(name));
  if (names_.size() > kNamedGpusMax) names_.pop_back();
  return true;
}

std::size_t NamedGpus::bytes() const {
  std::size_t bytes = 0;
  for (const std::string& name : names_) bytes += sizeof(name) + name.size();
  return bytes;
}

bool NamedGpus::Add(const NamedGpus& others) {
  bool changed = false;
  for (const std::string& name : others.names_) changed = Add(name) || changed;
  return changed;
}

}  // namespace stepwell
