// RankGroup is the ranks of one training: processes of this machine that reduce numbers over shared
// memory, in one order, so that all of them end with the same bits.
//
//   std::unique_ptr<RankGroup> group = RankGroup::Make(rank_count, value_count_max);
//   const int status = group->Run([&](int rank) { return Train(rank, *group); });
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

namespace stepwell::demo {

class RankGroup {
 public:
  // Null when there is no memory. REQUIRES: rank_count >= 1.
  static std::unique_ptr<RankGroup> Make(int rank_count, std::size_t value_count_max);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  int rank_count() const { return rank_count_; }

  // Runs `body` once per rank: a single one right here, several in forked processes that end with
  // this one. The worst of what they returned; 1 for a rank that was killed. REQUIRES: no other
  // threads run.
  int Run(const std::function<int(int rank)>& body);

  // Replaces each value by its mean over all ranks. Called by every rank with as many values, at most
  // value_count_max. False: another rank is gone, and the values are of no use.
  bool ReduceMean(int rank, std::span<float> values);

 private:
  struct Shared;
  RankGroup(int rank_count, std::size_t value_count_max, void* mapped);
  static std::size_t BytesOf(int rank_count, std::size_t value_count_max);
  float* Slot(int rank) const;  // slot rank_count_ is the result
  bool MeetAll();
  int WaitForAll();

  const int rank_count_;
  const std::size_t value_count_max_;
  Shared* const shared_;
};

}  // namespace stepwell::demo
