#include "storage/caps_index.h"

#include <algorithm>

namespace stepwell {
namespace {

void Append(const absl::flat_hash_map<std::int64_t, std::vector<PlacedCaps>>& from,
            std::int64_t owner_id, std::vector<PlacedCaps>& into) {
  const auto found = from.find(owner_id);
  if (found != from.end()) into.insert(into.end(), found->second.begin(), found->second.end());
}

}  // namespace

CapsIndex::CapsIndex(absl::Span<const PlacedCaps> placed) {
  for (const PlacedCaps& each : placed) {
    switch (each.place.owner) {
      case CapsOwner::kAll:
        of_all_.push_back(each);
        break;
      case CapsOwner::kProject:
        of_project_[each.place.owner_id].push_back(each);
        break;
      case CapsOwner::kTrial:
        of_trial_[each.place.owner_id].push_back(each);
        break;
    }
  }
  for (const CapField& field : kCapFields) {
    const bool by_default = *(kDefaultCaps.*field.set) > 0;
    const bool by_place = std::any_of(placed.begin(), placed.end(), [&](const PlacedCaps& each) {
      return (each.caps.*field.set).value_or(0) > 0;
    });
    if (by_default || by_place) bounded_.push_back(&field);
  }
}

std::vector<PlacedCaps> CapsIndex::Of(std::int64_t project_id, std::int64_t trial_id) const {
  std::vector<PlacedCaps> deciding = of_all_;
  if (project_id != 0) Append(of_project_, project_id, deciding);
  if (trial_id != 0) Append(of_trial_, trial_id, deciding);
  return deciding;
}

bool CapsIndex::AnyBounds(const CapField& field) const {
  return std::any_of(bounded_.begin(), bounded_.end(),
                     [&](const CapField* each) { return each->name == field.name; });
}

}  // namespace stepwell
