// Places with an age of samples in days, for the tests of caps.
#pragma once

#include <optional>
#include <string>

#include "storage/caps.h"

namespace stepwell::testing {

inline PlacedCaps PlacedAge(CapsOwner owner, std::int64_t owner_id, const std::string& group,
                            std::optional<std::int64_t> days) {
  PlacedCaps placed;
  placed.place = {.owner = owner, .owner_id = owner_id, .metric_group = group};
  if (days) placed.caps.raw_age_seconds = *days * 86'400;
  return placed;
}
inline PlacedCaps OfAll(const std::string& group, std::optional<std::int64_t> days) {
  return PlacedAge(CapsOwner::kAll, 0, group, days);
}
inline PlacedCaps OfProject(std::int64_t id, const std::string& group,
                            std::optional<std::int64_t> days) {
  return PlacedAge(CapsOwner::kProject, id, group, days);
}
inline PlacedCaps OfTrial(std::int64_t id, const std::string& group,
                          std::optional<std::int64_t> days) {
  return PlacedAge(CapsOwner::kTrial, id, group, days);
}

}  // namespace stepwell::testing
