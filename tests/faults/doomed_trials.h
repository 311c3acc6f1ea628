// DoomedTrials: trials beside a scene's own, made to be deleted by a master that may die of it. One at a time:
// it has rows of metrics, of a writer that has closed, and rows that are not merged, of one that was killed.
// Failures are the test's. Confined to one thread.
//
//   doomed.Make();                // a master without failpoints runs, here and below
//   ... the master starts with failpoints ...
//   doomed.Delete(patience);      // the master may die meanwhile
//   ... the master starts again ...
//   doomed.ExpectWholeOrGone();
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {

class DoomedTrials {
 public:
  // Both outlive this. `database_url` is the master's.
  DoomedTrials(Scene& scene, MasterProcess& master, std::string database_url)
      : scene_(scene), master_(master), url_(std::move(database_url)) {}

  // The next one.
  void Make();
  // Asks until nothing of it is left, or the master is dead, or `patience` has passed.
  void Delete(absl::Duration patience);
  // The newest one is not deleted and holds all that its writers had acks for, and then is deleted here; or it was
  // deleted, and goes by itself. In the end nothing of any is left but tombstones. Nothing where none was made.
  void ExpectWholeOrGone();

  int count() const { return count_; }
  // Of them, those that had not been deleted as ExpectWholeOrGone looked.
  int spared_count() const { return spared_count_; }

 private:
  ChildProcess& StartWriter(int rank);
  // One row of each series of the rank's writer.
  bool AwaitRows(const std::string& table, int rank) const;
  bool IsDeleted() const;
  void ExpectWhole() const;

  Scene& scene_;
  MasterProcess& master_;
  const std::string url_;
  int count_ = 0;
  int spared_count_ = 0;
  std::string name_;  // of the newest; "" = there is none
  std::vector<std::string> ledgers_;
};

}  // namespace stepwell::faults
