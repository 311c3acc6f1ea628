#include "server/disk_watch.h"

#include <tuple>
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
  DiskRoom data, wal;
  // The WAL may lie on a disk of its own, behind a link.
  for (const auto& [holds, path, room] :
       {std::tuple("data", data_directory_ + "/pg", &data),
        std::tuple("WAL", data_directory_ + "/pg/pg_wal", &wal)}) {
    auto disk = ReadDiskFree(holds, path);
    if (disk.ok()) {
      *room = {disk->free_bytes, disk->total_bytes};
      disks.push_back(*std::move(disk));
    } else if (!told_unknown_) {
      log::Warning("disk_space_unknown", {{"status", disk.status().ToString()}});
      told_unknown_ = true;
    }
  }
  const bool news = space_.Judge(disks);
  state_.SetDisk(space_.reason(), data, wal);
  if (!news) return;
  if (space_.low()) {
    log::Warning("disk_low", {{"why", space_.reason()}, {"path", space_.low_path()}});
  } else {
    log::Info("disk_has_room");
  }
}

}  // namespace stepwell
