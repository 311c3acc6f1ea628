// Where caps are set: names to places, what holds there, and the change of one place with the classes of
// ages that it needs. Functions for PgCapsStore, on the caller's connection.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/caps_store.h"
#include "storage/pg_caps_read.h"
#include "storage/pg_connection.h"
#include "storage/trial_filter.h"

namespace stepwell {

struct FoundTrial {
  TrialId trial_id{};
  std::int64_t project_id = 0;
  std::string project = {};
  std::string external_id = {};
  bool archived = false;
  bool deleted = false;
};
// kNotFound for an unknown one, in the same words for one that is none of `trials`; a deleted one is found.
absl::StatusOr<FoundTrial> FindTrialOf(PgConnection& connection, const TrialSelector& selector,
                                       const TrialFilter& trials);

// A place, and over which project and trial it decides.
struct FoundPlace {
  CapsPlace place = {};
  std::int64_t project_id = 0;
  std::int64_t trial_id = 0;
};
// kNotFound for a trial that is unknown, deleted or in none of `projects`. A project that does not exist, or is none of
// them, has the number 0.
absl::StatusOr<FoundPlace> FindPlace(PgConnection& connection, const CapsTarget& target,
                                     const ProjectFilter& projects);

// Of the places that were read: whoever is told of some projects alone reads no others.
CapsReport ReportOf(const Places& places, const FoundPlace& found);

// Inside a transaction that nobody else changes caps in. Creates the project where there is none; kNotFound for one that is
// none of `projects`.
absl::Status SetPlace(PgConnection& connection, const CapsTarget& target,
                      const ProjectFilter& projects, const Caps& caps,
                      const std::vector<std::string>& clear);

}  // namespace stepwell
