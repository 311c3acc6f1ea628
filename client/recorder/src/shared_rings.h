// SharedRings is a writer's directory in shared memory, where its rings lie while there is plenty of
// room: a disk that writes a page back may hold up the next store into it. Beside them the file
// `spool` says whose they are, so that an agent can clear away what nobody comes for.
//
//   auto rings = SharedRings::Make(place, identity.writer, writer_path);
//   if (rings != nullptr && rings->HasRoom()) ... rings->directory() ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "client/recorder/src/environment.h"
#include "client/recorder/src/unique_fd.h"

namespace stepwell::recorder {

// Where rings go instead of the writer's directory, while there is room for `need_bytes` four times.
// An empty home = nowhere else.
struct SharedRingPlace {
  std::string home;
  std::size_t need_bytes = 0;

  // <memory>/stepwell-<uid>, where <memory> is STEPWELL_SHARED_MEMORY ("" = none), else /dev/shm. The
  // need is that of the processes of this machine together, a grown ring for each: LOCAL_WORLD_SIZE of
  // them, else `world_size` (0 = not known).
  static SharedRingPlace Read(const Environment& environment, std::int32_t world_size);
};

class SharedRings {
 public:
  // Null where the home is no place for them (foreign, a link, no memory file system, no room): then
  // rings lie beside the spool. `writer_path` is absolute.
  static std::unique_ptr<SharedRings> Make(const SharedRingPlace& place, const std::string& writer,
                                           const std::string& writer_path);
  // The same by a descriptor of its own. Null where they are gone.
  std::unique_ptr<SharedRings> Reopen() const;
  // Those of the forked worker whose directory has this name. Null on failure.
  std::unique_ptr<SharedRings> MakeWorker(const std::string& name) const;
  // Takes back what Make did, as far as it is empty of rings.
  void Remove();

  // Four times the need is free: others live in this memory, too.
  bool HasRoom() const;
  const UniqueFd& directory() const { return directory_; }
  const std::string& path() const { return path_; }

 private:
  SharedRings(std::string path, UniqueFd directory, std::size_t need_bytes)
      : path_(std::move(path)), directory_(std::move(directory)), need_bytes_(need_bytes) {}

  const std::string path_;
  const UniqueFd directory_;
  const std::size_t need_bytes_;
};

}  // namespace stepwell::recorder
