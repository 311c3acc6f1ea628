#include "server/disk_watch.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/log.h"

namespace stepwell {
namespace {

constexpr absl::Duration kLookInterval = absl::Seconds(1);

}  // namespace

void DiskWatch::Look() {
  if (clock_.Monotonic() < next_look_) return;
  next_look_ = clock_.Monotonic() + kLookInterval;
  if (data_directory_.empty()) {
    if (!told_unknown_) log::Info("disk_space_unknown", {{"why", "the database is elsewhere"}});
    told_unknown_ = true;
    return;
  }
  std::vector<DiskFree> disks;
  // The WAL may lie on a disk of its own, behind a link.
  for (const auto& [holds, path] : {std::pair("data", data_directory_ + "/pg"),
                                    std::pair("WAL", data_directory_ + "/pg/pg_wal")}) {
    auto disk = ReadDiskFree(holds, path);
    if (disk.ok()) {
      disks.push_back(*std::move(disk));
    } else if (!told_unknown_) {
      log::Warning("disk_space_unknown", {{"status", disk.status().ToString()}});
      told_unknown_ = true;
    }
  }
  const bool news = space_.Judge(disks);
  std::int64_t least = disks.empty() ? 0 : disks.front().free_bytes;
  for (const DiskFree& disk : disks) least = std::min(least, disk.free_bytes);
  state_.SetDisk(space_.reason(), least);
  if (!news) return;
  if (space_.low()) {
    log::Warning("disk_low", {{"why", space_.reason()}});
  } else {
    log::Info("disk_has_room");
  }
}

}  // namespace stepwell
