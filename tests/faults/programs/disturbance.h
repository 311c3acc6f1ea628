// Disturbance: what programs do beside their training: fork, execute, take signals, run out of
// descriptors. Confined to the main thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepwell::faults {

class Disturbance {
 public:
  // The sum of what --disturb names.
  enum Kind : std::int64_t { kForks = 1, kExecs = 2, kSignals = 4, kDescriptors = 8 };
  explicit Disturbance(std::int64_t kinds);

  // One round of each kind. Children are waited for; one that did not end well is counted.
  void Again();
  // "forks 12, execs 12, signals 4711, descriptors 1000, failed 0".
  std::string ToText() const;

 private:
  bool Has(Kind kind) const { return (kinds_ & kind) != 0; }
  void Child(bool executes);
  void UseUpDescriptors();

  const std::int64_t kinds_;
  int fork_count_ = 0;
  int exec_count_ = 0;
  int failed_count_ = 0;
  std::vector<int> descriptors_;
};

}  // namespace stepwell::faults
