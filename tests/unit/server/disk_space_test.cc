#include "server/disk_space.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kGiB = 1 << 30;

DiskFree Disk(std::int64_t free_bytes, const std::string& holds = "data") {
  return {
      .holds = holds, .path = "/srv/" + holds, .free_bytes = free_bytes, .total_bytes = 100 * kGiB};
}

TEST(DiskSpaceTest, TheMarkFollowsTheDisk) {
  struct Row {
    const char* name;
    std::int64_t low_bytes;
    std::int64_t total_bytes;
    std::int64_t mark;
  };
  for (const Row& row : {Row{"given", 7, kGiB, 7},
                         {"an array of disks", 0, 20'000 * kGiB, 16 * kGiB},
                         {"a large disk", 0, 500 * kGiB, 10 * kGiB},
                         {"a common disk", 0, 20 * kGiB, 512 * kMiB},
                         {"a small disk", 0, kGiB, 256 * kMiB}}) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(DiskSpace({.low_bytes = row.low_bytes}).LowMark(row.total_bytes), row.mark);
  }
}

TEST(DiskSpaceTest, LowBelowTheMarkRoomAgainAQuarterAboveIt) {
  struct Row {
    const char* name;
    std::int64_t free_bytes;
    bool news;
    bool low;
  };
  DiskSpace space({.low_bytes = 400 * kMiB});
  for (const Row& row : {Row{"at the mark", 400 * kMiB, false, false},
                         {"below", 400 * kMiB - 1, true, true},
                         {"further below", kMiB, false, true},
                         {"above, but not by enough", 499 * kMiB, false, true},
                         {"well above", 500 * kMiB, true, false},
                         {"the edge again", 450 * kMiB, false, false}}) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(space.Judge({Disk(row.free_bytes)}), row.news);
    EXPECT_EQ(space.low(), row.low);
  }
}

TEST(DiskSpaceTest, AnyDiskMayBeTheOneAndClientsAreToldNoPath) {
  DiskSpace space({.low_bytes = 400 * kMiB});
  EXPECT_FALSE(space.Judge({}));
  EXPECT_TRUE(space.Judge({Disk(900 * kMiB), Disk(100 * kMiB, "WAL")}));
  EXPECT_EQ(
      space.reason(),
      "disk low: 100 MiB free for PostgreSQL's WAL, the mark is 400 MiB; samples are taken again "
      "from 500 MiB on: make room, or lower --disk-low-bytes");
  EXPECT_EQ(space.low_path(), "/srv/WAL");
  EXPECT_TRUE(space.Judge({Disk(900 * kMiB)}));
  EXPECT_EQ(space.low_path(), "");
}

TEST(DiskSpaceTest, TheSystemIsAsked) {
  const auto disk = ReadDiskFree("data", "/");
  ASSERT_TRUE(disk.ok()) << disk.status();
  EXPECT_GT(disk->total_bytes, 0);
  EXPECT_LE(disk->free_bytes, disk->total_bytes);
  EXPECT_EQ(ReadDiskFree("data", "/no/such").status().message(),
            "free space of /no/such: No such file or directory");
}

}  // namespace
}  // namespace stepwell
