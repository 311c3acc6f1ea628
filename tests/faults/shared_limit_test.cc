// Ranks of one machine share a cgroup's memory and grow their rings at about the same moment. What one of
// them found when it looked may be taken when it takes: then the kernel would kill one. Five times all look
// at once.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/recorder/src/memory_room.h"
#include "client/recorder/src/spool_writer.h"
#include "tests/faults/scene.h"
#include "tests/faults/small_disk.h"
#include "tests/faults/small_memory.h"

namespace stepwell::faults {
namespace {

using recorder::Ring;
using recorder::SpoolWriter;

constexpr int kRanks = 8;
constexpr int kRounds = 5;
// All eight find more than four times a ring of 4 MiB, and want more than there is.
constexpr std::int64_t kLimitBytes = 32 << 20;

// What the kernel charges ahead for each processor.
constexpr std::uint64_t kSlackBytes = 1 << 20;

struct Shared {
  std::atomic<int> ready{0};
  std::atomic<int> done{0};
  std::atomic<bool> looks{false};
  std::atomic<bool> leaves{false};
  std::atomic<int> rings{0};
};

void Await(const std::atomic<bool>& word) {
  while (!word) sched_yield();
}

// Exit: 0 as it should, else where it ended.
int BeRank(const SmallMemory& memory, const std::string& root, Shared& shared) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!memory.Take(getpid())) return 2;
  recorder::Identity identity;
  identity.writer = recorder::NewUuid();
  identity.trial = "t";
  identity.pid = getpid();
  std::string why;
  const auto writer =
      SpoolWriter::Create(root, std::move(identity), recorder::SharedRingPlace(), &why);
  if (writer == nullptr) return 3;
  Ring::Spec spec;
  spec.capacity = spool::kRingBytesMax / sizeof(spool::Event);
  ++shared.ready;
  Await(shared.looks);
  std::vector<std::unique_ptr<Ring>> rings;
  while (auto ring = writer->MakeRing(spec)) {
    rings.push_back(std::move(ring));
    ++shared.rings;
  }
  ++shared.done;
  Await(shared.leaves);
  return 0;
}

TEST(SharedLimitTest, AgentRule17_EightRanksThatGrowAtOnceTakeNoMoreThanThereIs) {
  Scene::StartsNobody();
  Scene scene("shared limit");
  const std::string root = scene.path("small");
  if (const std::string why = MountSmallDisk(root, "128m"); !why.empty()) GTEST_SKIP() << why;
  for (int round = 0; round < kRounds; ++round) {
    SmallMemory memory(absl::StrCat("ranks-", round), kLimitBytes);
    if (!memory.trouble().empty()) GTEST_SKIP() << memory.trouble();
    auto* shared = new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared;
    std::array<pid_t, kRanks> ranks{};
    for (pid_t& rank : ranks) {
      rank = fork();
      if (rank == 0) _exit(BeRank(memory, root, *shared));
    }
    const auto all_or_killed = [&](const std::atomic<int>& count) {
      return Eventually([&] { return count == kRanks || memory.kill_count() > 0; },
                        absl::Seconds(60));
    };
    EXPECT_TRUE(all_or_killed(shared->ready));
    shared->looks = true;
    EXPECT_TRUE(all_or_killed(shared->done));
    scene.Say(
        absl::StrCat(shared->rings.load(), " rings of 4 MiB, ", memory.kill_count(), " killed"));
    // Whoever took the last one had found four times its room, then.
    const recorder::MemoryRoom room(absl::StrCat("/proc/", ranks[0], "/cgroup"), "/sys/fs/cgroup");
    EXPECT_GE(room.Bytes(), 3 * spool::kRingBytesMax - kSlackBytes);
    shared->leaves = true;
    for (const pid_t rank : ranks) {
      int status = -1;
      waitpid(rank, &status, 0);
      EXPECT_EQ(status, 0) << "of a rank, in round " << round;
    }
    EXPECT_EQ(memory.kill_count(), 0);
    EXPECT_GT(shared->rings, 0);
    munmap(shared, sizeof(Shared));
    std::error_code gone;
    std::filesystem::remove_all(root + "/f1", gone);
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace stepwell::faults
