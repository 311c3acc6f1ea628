// MasterClient: what a fault test asks a master over gRPC. Each call has a deadline of its own; an
// answer that does not come is nothing special here. Confined to one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stepwell/v1/admin.pb.h"
#include "stepwell/v1/query.pb.h"
#include "tests/faults/checker/checker.h"

namespace stepwell::faults {

class MasterClient {
 public:
  explicit MasterClient(const std::string& address);
  ~MasterClient();
  MasterClient(const MasterClient&) = delete;
  MasterClient& operator=(const MasterClient&) = delete;

  // Within 2 s, or nothing.
  std::optional<v1::GetStatusResponse> Status();
  // By its name in project "default". Within 5 s, or nothing.
  std::optional<v1::GetTrialResponse> Trial(const std::string& name);
  // All samples of series `name` of `group` that the trial of that name has, each series' in the order in which they come.
  // Within 30 s. Empty = read, else why not.
  std::string ReadSamples(const std::string& trial, const std::string& group,
                          const std::string& name, std::vector<StoredSample>& samples);
  // The same in one bucket for each series. Within 30 s, or nothing.
  std::optional<v1::QueryBucketsResponse> Sum(const std::string& trial, const std::string& group,
                                              const std::string& name);
  // For all trials, of `group` or of all groups (""). Empty = set, else why not.
  std::string SetCaps(const std::string& group, const v1::Caps& caps);
  // A sweep from its beginning to its end. Empty = done, else why not.
  std::string Sweep();
  // While it is archived its writers are refused. Empty = done, else why not.
  std::string SetArchived(const std::string& name, bool archived);
  // Archives it, which ends its writers, and deletes it for good; also what was deleted before. Empty = nothing
  // of it is left, else why not.
  std::string Delete(const std::string& name);
  // Folds all trials. Empty = done, else why not. Within 60 s.
  std::string Flush();

 private:
  struct Stubs;
  const std::unique_ptr<Stubs> stubs_;
};

}  // namespace stepwell::faults
