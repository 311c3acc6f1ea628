// SharedRings is a writer's directory in shared memory, where its rings lie while there is plenty of
// room: a disk that writes a page back may hold up the next store into it. Beside them the file
// `spool` says whose they are, so that an agent can clear away what nobody comes for.
//
//   auto rings = SharedRings::Make(SharedRingHome(), identity.writer, writer_path, need_bytes);
//   if (rings != nullptr && rings->HasRoom()) ... rings->directory() ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "client/recorder/src/unique_fd.h"

namespace stepwell::recorder {

// Where the rings of a user's writers lie: /dev/shm/stepwell-<uid>.
std::string SharedRingHome();

// What the processes of this machine together may want: a grown ring for each. `local_world_size` is
// the launcher's text, null = not known; `world_size` 0 = not known.
std::size_t SharedRingNeed(const char* local_world_size, std::int32_t world_size);

class SharedRings {
 public:
  // Null where `home` is no place for them (foreign, a link, no memory file system, no room): then
  // rings lie beside the spool. `writer_path` is absolute.
  static std::unique_ptr<SharedRings> Make(const std::string& home, const std::string& writer,
                                           const std::string& writer_path, std::size_t need_bytes);
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
