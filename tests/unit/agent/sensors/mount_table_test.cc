#include "client/agent/sensors/mount_table.h"

#include <gtest/gtest.h>

namespace stepwell::agent {
namespace {

struct Row {
  const char* name;
  const char* mountinfo;
  // "/ /srv@server"
  const char* mounts;
};

TEST(MountTableTest, ListsEachFileSystemOnceByWhatIsSeenOfIt) {
  const Row rows[] = {
      {"the root's whatever it is", "22 1 0:21 / / rw - overlay overlay rw\n", "/"},
      {"local disks, none of the kernel's own",
       "22 1 0:21 / /proc rw - proc proc rw\n27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda "
       "rw\n28 27 8:1 / /data rw - xfs /dev/sda1 rw\n29 1 0:5 / /dev/shm rw - tmpfs tmpfs rw\n",
       "/ /data"},
      {"a bind mount shows the same disk again",
       "27 1 254:0 / / rw - ext4 /dev/vda rw\n28 27 254:0 /x /proc rw - ext4 /dev/vda rw\n", "/"},
      {"images are always full",
       "27 1 254:0 / / rw - ext4 /dev/vda rw\n29 27 7:1 / /snap/x rw - squashfs /dev/loop1 rw\n",
       "/"},
      {"a disk mounted over another hides it",
       "27 1 254:0 / / rw - ext4 /dev/vda rw\n30 27 8:1 / /data rw - ext4 /dev/sda1 rw\n"
       "31 30 8:17 / /data rw - ext4 /dev/sdb1 rw\n",
       "/ /data"},
      {"memory mounted over a disk hides it",
       "27 1 254:0 / / rw - ext4 /dev/vda rw\n30 27 8:1 / /data rw - ext4 /dev/sda1 rw\n"
       "31 30 0:77 / /data rw - tmpfs tmpfs rw\n",
       "/"},
      {"file servers are told apart, FUSE is left out",
       "27 1 254:0 / / rw - ext4 /dev/vda rw\n40 27 0:50 / /home rw - nfs4 s:/home rw\n"
       "41 27 0:51 / /scratch rw - lustre mgs:/fs rw\n42 27 0:52 / /mnt/s3 rw - fuse.s3fs s3fs "
       "rw\n43 27 0:53 / /f rw - fuseblk /dev/sdc1 rw\n",
       "/ /home@server /scratch@server"},
      {"blanks and the like are escaped", "27 1 8:9 / /my\\040disk\\134x rw - ext4 /dev/sda rw\n",
       "/my disk\\x"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const auto mounts = ParseMounts(row.mountinfo);
    ASSERT_TRUE(mounts.ok()) << mounts.status();
    std::string texts;
    for (const Mount& mount : *mounts) {
      if (!texts.empty()) texts += " ";
      texts += mount.path + (mount.where == Mount::Where::kServer ? "@server" : "");
    }
    EXPECT_EQ(texts, row.mounts);
  }
}

}  // namespace
}  // namespace stepwell::agent
