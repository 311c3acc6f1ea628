#include "tests/faults/checker/bounds.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace stepwell::faults {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(BoundsTest, EachOfThemIsHeldAndNamed) {
  const Bounds bounds = {1000, 20, 10};
  EXPECT_THAT(Exceeded({"serve 7", 1000, 20, 10}, bounds), IsEmpty());
  EXPECT_THAT(Exceeded({"serve 7", 1001, 20, 10}, bounds),
              ElementsAre("serve 7: 1001 KiB resident, bound 1000"));
  EXPECT_THAT(Exceeded({"serve 7", 0, 21, 11}, bounds),
              ElementsAre("serve 7: 21 descriptors, bound 20", "serve 7: 11 threads, bound 10"));
}

TEST(BoundsTest, AMasterIsHeldToTheLimitThatItWasGiven) {
  const Bounds given = Bounds::OfMaster(512 << 10);
  EXPECT_EQ(given.descriptors, Bounds::OfMaster().descriptors);
#ifdef __SANITIZE_ADDRESS__
  EXPECT_EQ(given.memory_kib, 1024 << 10) << "with what AddressSanitizer needs";
#else
  EXPECT_EQ(given.memory_kib, 512 << 10);
#endif
}

// What a recorder may cost where it is: 64 MiB of rings for a whole process, and a training of the tests has few threads.
TEST(BoundsTest, ATrainingIsHeldToLessThanAnAgent) {
  const Bounds training = Bounds::OfTrainer();
  EXPECT_LT(training.memory_kib, Bounds::OfAgent().memory_kib);
  EXPECT_LT(training.descriptors, Bounds::OfAgent().descriptors);
  EXPECT_LT(training.threads, Bounds::OfAgent().threads);
}

TEST(BoundsTest, TheKernelTellsWhatAProcessUses) {
  const Usage before = ReadUsage(getpid(), "test");
  EXPECT_GT(before.memory_kib, 1000);
  EXPECT_GE(before.descriptors, 3);
  std::atomic<bool> done = false;
  std::thread other([&] { done.wait(false); });
  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const std::string touched(64 << 20, 'x');
  const Usage after = ReadUsage(getpid(), "test");
  close(fd);
  done = true;
  done.notify_all();
  other.join();
  EXPECT_EQ(after.descriptors, before.descriptors + 1);
  EXPECT_EQ(after.threads, before.threads + 1);
  EXPECT_GE(after.memory_kib, before.memory_kib + (60 << 10)) << touched.size();
  EXPECT_EQ(ReadUsage(0, "nobody").threads, 0);
}

TEST(BoundsTest, TheMostOfAnyLookCounts) {
  Usage most;
  TakeMost({"a", 1, 9, 3}, most);
  TakeMost({"a", 5, 2, 3}, most);
  EXPECT_EQ(ToText(most), "a: 0 MiB, 9 descriptors, 3 threads");
  EXPECT_EQ(most.memory_kib, 5);
}

}  // namespace
}  // namespace stepwell::faults
