// DiskWatch: looks at the disks of the private PostgreSQL once a second and tells MasterState. Of a
// database given by URL nothing is known, which is said once. Confined to the thread that calls Look.
//
//   DiskWatch watch({.low_bytes = options.disk_low_bytes}, database.data_directory, state, clock);
//   watch.Look();  // at each tick
#pragma once

#include <string>
#include <utility>

#include "absl/time/time.h"
#include "base/clock.h"
#include "server/disk_space.h"
#include "server/master_state.h"

namespace stepwell {

class DiskWatch {
 public:
  // `data_directory` is that of the master; empty = the database is elsewhere. `state` and `clock`
  // outlive this.
  DiskWatch(DiskSpace::Options options, std::string data_directory, MasterState& state,
            const Clock& clock)
      : data_directory_(std::move(data_directory)), state_(state), clock_(clock), space_(options) {}

  // Returns at once unless a second has passed.
  void Look();

 private:
  const std::string data_directory_;
  MasterState& state_;
  const Clock& clock_;
  DiskSpace space_;
  absl::Duration next_look_ = absl::ZeroDuration();  // of the monotonic clock
  bool told_unknown_ = false;
};

}  // namespace stepwell
