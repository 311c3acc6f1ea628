#include "client/recorder/src/spool_root.h"

#include <gtest/gtest.h>
#include <linux/magic.h>

namespace stepwell::recorder {
namespace {

TEST(SpoolRootTest, AgentRule06_KnowsWhichFileSystemsAreServedFromElsewhere) {
  const struct {
    const char* name;
    std::uint32_t type;
    const char* shown;  // null = a place for rings
  } rows[] = {
      {"nfs", NFS_SUPER_MAGIC, "NFS"},
      {"cifs", 0xff534d42, "CIFS"},
      {"smb 3", 0xfe534d42, "SMB2"},
      {"fuse, sshfs, s3fs", 0x65735546, "FUSE"},
      {"9p", V9FS_MAGIC, "9p"},
      {"lustre", 0x0bd00bd0, "Lustre"},
      {"gpfs", 0x47504653, "GPFS"},
      {"ceph", 0x00c36400, "Ceph"},
      {"tmpfs", TMPFS_MAGIC, nullptr},
      {"ext4", EXT4_SUPER_MAGIC, nullptr},
      {"xfs", 0x58465342, nullptr},
      {"btrfs", BTRFS_SUPER_MAGIC, nullptr},
      {"overlay", OVERLAYFS_SUPER_MAGIC, nullptr},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_STREQ(NetworkFileSystemName(row.type), row.shown);
  }
}

}  // namespace
}  // namespace stepwell::recorder
