#include "client/recorder/src/memory_room.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "tests/unit/recorder/files/in_child.h"

namespace stepwell::recorder {
namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

class MemoryRoomTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = std::filesystem::path(scratch_.path()) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void WriteOne(const std::string& folder, const std::string& limit, const std::string& usage) {
    Write(folder + "/memory.limit_in_bytes", limit + "\n");
    Write(folder + "/memory.usage_in_bytes", usage + "\n");
  }
  void WriteTwo(const std::string& folder, const std::string& limit, const std::string& usage) {
    Write(folder + "/memory.max", limit + "\n");
    Write(folder + "/memory.current", usage + "\n");
  }
  MemoryRoom room() { return {scratch_.path() + "/cgroup", scratch_.path() + "/fs"}; }

  TemporaryDirectory scratch_;
};

TEST_F(MemoryRoomTest, WithoutFilesThereIsNoLimit) {
  EXPECT_EQ(room().Bytes(), kNoLimit);
  Write("cgroup", "0::/\nnonsense\n4:memory");
  EXPECT_EQ(room().Bytes(), kNoLimit);
  EXPECT_TRUE(room().HasFor(std::size_t{1} << 40));
}

TEST_F(MemoryRoomTest, OfVersionOneTheTightestOfAllAroundCounts) {
  Write("cgroup", "5:devices:/a\n4:cpu,memory:/a/b\n0::/\n");
  WriteOne("fs/memory", "9223372036854771712", "123456789");
  WriteOne("fs/memory/a", "1000", "400");
  WriteOne("fs/memory/a/b", "9000", "300");
  EXPECT_EQ(room().Bytes(), 600U);
  WriteOne("fs/memory/a/b", "350", "300");
  EXPECT_EQ(room().Bytes(), 50U);
  EXPECT_TRUE(room().HasFor(12));
  EXPECT_FALSE(room().HasFor(13));
}

TEST_F(MemoryRoomTest, OfVersionTwoMaxIsNoLimit) {
  Write("cgroup", "0::/slice/job\n");
  WriteTwo("fs/slice/job", "max", "400");
  EXPECT_EQ(room().Bytes(), kNoLimit);
  WriteTwo("fs/slice", "1000", "400");
  EXPECT_EQ(room().Bytes(), 600U);
}

// Docker without a cgroup namespace: the process is told a path that its mount does not have.
TEST_F(MemoryRoomTest, AMountThatBeginsAtTheContainersOwnIsFound) {
  Write("cgroup", "4:memory:/docker/0123\n");
  WriteOne("fs/memory", "1000", "900");
  EXPECT_EQ(room().Bytes(), 100U);
  Write("cgroup", "4:memory:/../elsewhere\n");
  EXPECT_EQ(room().Bytes(), 100U);
}

// A data loader fills the cgroup with pages of files, which the kernel gives back; a tmpfs's are none.
TEST_F(MemoryRoomTest, WhatTheKernelCachesOfFilesIsRoom) {
  Write("cgroup", "0::/\n");
  WriteTwo("fs", "1000", "1000");
  EXPECT_EQ(room().Bytes(), 0U);
  Write("fs/memory.stat", "anon 200\nfile 800\nshmem 100\ninactive_file 300\nactive_file 400\n");
  EXPECT_EQ(room().Bytes(), 700U);
  Write("fs/memory.stat", "inactive_file 3000\nactive_file 400");
  EXPECT_EQ(room().Bytes(), 1000U);
}

TEST_F(MemoryRoomTest, MoreThanTheLimitIsNoRoom) {
  Write("cgroup", "0::/\n");
  WriteTwo("fs", "1000", "1100");
  EXPECT_EQ(room().Bytes(), 0U);
  EXPECT_FALSE(room().HasFor(1));
}

}  // namespace
}  // namespace stepwell::recorder
