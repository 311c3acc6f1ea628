// EpochLog: in which epoch a training process was at which batch, as it recorded `epoch`. A value; holds the last changes.
//
//   log.Note(100, 2);       // batch 100 is the first of epoch 2
//   log.EpochAt(104);       // 2
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace stepwell::agent {

inline constexpr char kEpochSeries[] = "epoch";

class EpochLog {
 public:
  // A trace is wanted of steps that are just over.
  static constexpr std::size_t kChangesMax = 64;

  // What is no epoch is passed over. False: nothing is new. Batches that come again begin anew.
  bool Note(std::int64_t first_batch, double value);
  // -1: not known.
  std::int32_t EpochAt(std::int64_t batch) const;

 private:
  struct Change {
    std::int64_t first_batch = 0;
    std::int32_t epoch = 0;
  };
  std::deque<Change> changes_;  // by batch
};

}  // namespace stepwell::agent
