#include "client/demo/rank_group.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <new>

namespace stepwell::demo {
namespace {

constexpr std::size_t kSlotAlignment = 64;  // a cache line, so that ranks do not share one
constexpr int kSpinsBeforeYield = 200;

}  // namespace

struct alignas(kSlotAlignment) RankGroup::Shared {
  std::atomic<int> arrived{0};
  std::atomic<unsigned> meeting{0};
  std::atomic<bool> is_broken{false};
};

std::size_t RankGroup::BytesOf(int rank_count, std::size_t value_count_max) {
  const std::size_t slot_bytes =
      (value_count_max * sizeof(float) + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
  return sizeof(Shared) + slot_bytes * static_cast<std::size_t>(rank_count + 1);
}

std::unique_ptr<RankGroup> RankGroup::Make(int rank_count, std::size_t value_count_max) {
  void* mapped = mmap(nullptr, BytesOf(rank_count, value_count_max), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  return std::unique_ptr<RankGroup>(new RankGroup(rank_count, value_count_max, mapped));
}

RankGroup::RankGroup(int rank_count, std::size_t value_count_max, void* mapped)
    : rank_count_(rank_count), value_count_max_(value_count_max), shared_(new (mapped) Shared) {}

RankGroup::~RankGroup() { munmap(shared_, BytesOf(rank_count_, value_count_max_)); }

float* RankGroup::Slot(int rank) const {
  const std::size_t slot_bytes =
      (BytesOf(rank_count_, value_count_max_) - sizeof(Shared)) / (rank_count_ + 1);
  return reinterpret_cast<float*>(reinterpret_cast<char*>(shared_ + 1) +
                                  slot_bytes * static_cast<std::size_t>(rank));
}

int RankGroup::Run(const std::function<int(int rank)>& body) {
  if (rank_count_ == 1) return body(0);
  std::fflush(nullptr);
  for (int rank = 0; rank < rank_count_; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      const int status = body(rank);
      std::fflush(nullptr);
      _exit(status);
    }
    if (child < 0) shared_->is_broken.store(true);
  }
  return WaitForAll();
}

int RankGroup::WaitForAll() {
  int worst = shared_->is_broken.load() ? 1 : 0;
  int status = 0;
  while (wait(&status) > 0) {
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    if (code != 0) shared_->is_broken.store(true);
    worst = std::max(worst, code);
  }
  return worst;
}

bool RankGroup::ReduceMean(int rank, std::span<float> values) {
  if (rank_count_ == 1) return true;
  std::copy(values.begin(), values.end(), Slot(rank));
  if (!MeetAll()) return false;
  // Each rank reduces its share for all.
  const std::size_t begin = values.size() * static_cast<std::size_t>(rank) / rank_count_;
  const std::size_t end = values.size() * static_cast<std::size_t>(rank + 1) / rank_count_;
  float* result = Slot(rank_count_);
  std::fill(result + begin, result + end, 0.0f);
  for (int other = 0; other < rank_count_; ++other) {
    const float* slot = Slot(other);
    for (std::size_t i = begin; i < end; ++i) result[i] += slot[i];
  }
  for (std::size_t i = begin; i < end; ++i) result[i] /= static_cast<float>(rank_count_);
  if (!MeetAll()) return false;
  std::copy(result, result + values.size(), values.begin());
  return true;
}

bool RankGroup::MeetAll() {
  const unsigned meeting = shared_->meeting.load();
  if (shared_->arrived.fetch_add(1) + 1 == rank_count_) {
    shared_->arrived.store(0);
    shared_->meeting.store(meeting + 1);
    return !shared_->is_broken.load();
  }
  for (int spins = 0; shared_->meeting.load() == meeting; ++spins) {
    if (shared_->is_broken.load()) return false;
    if (spins > kSpinsBeforeYield) sched_yield();
  }
  return true;
}

}  // namespace stepwell::demo
