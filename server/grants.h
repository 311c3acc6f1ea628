// Grants: what a token may do. Written "read:PROJECT", "write:PROJECT" (which is to read, too, and to ingest
// any trial of it), "ingest:PROJECT/NAME" or "ingest:id:7" (one trial, which need not be there yet) and
// "admin"; "read:*" and "write:*" are all projects. A core; a value.
//
//   STEPWELL_ASSIGN_OR_RETURN(const Grants grants, Grants::Parse({"read:vision"}));
//   if (!grants.Reads("vision")) ...
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/project_filter.h"
#include "storage/token_store.h"
#include "storage/trial_filter.h"

namespace stepwell {

inline constexpr int kGrantsMax = 32;

class Grants {
 public:
  // May do nothing.
  Grants() = default;
  // kInvalidArgument names the grant, and what is allowed. 1 to 32 of them.
  static absl::StatusOr<Grants> Parse(const std::vector<std::string>& texts_untrusted);
  static Grants Admin();

  bool admin() const { return admin_; }
  bool Reads(const std::string& project) const;
  bool Writes(const std::string& project) const;
  // By what is known of the place.
  bool Ingests(const TrialPlace& place) const;
  // Whether there may be a trial that it ingests.
  bool IngestsAny() const;
  bool ReadsAll() const;
  // Whether a trial's number may decide what its name does not.
  bool has_trial_ids() const { return !ingest_ids_.empty(); }
  // Sorted.
  ProjectFilter ReadableProjects() const;
  // Those that it ingests.
  TrialFilter IngestibleTrials() const;
  // As they were given, sorted, each once.
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  absl::Status Add(const std::string& text);

  bool admin_ = false;
  std::set<std::string> reads_;
  std::set<std::string> writes_;
  std::set<std::pair<std::string, std::string>> ingest_names_;  // project, external id
  std::set<std::int64_t> ingest_ids_;
  std::vector<std::string> texts_;
};

// "ingest:vision/run-7": the grant that would do.
std::string IngestGrant(const TrialSelector& trial);

}  // namespace stepwell
