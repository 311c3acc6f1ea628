// RingFolder: a writer's directory in shared memory, where its rings may lie (spool_format.h), as the
// agent sees it: in the container of the recorder, or not at all. Its path comes from writer.json, so
// that nothing in it is trusted but what belongs to the writer's owner.
//
//   RingFolder folder = RingFolder::Open(identity.rings, identity.writer, directory);
//   if (folder.visible()) RingReader::Open(folder.get(), 0);
#pragma once

#include <string>
#include <string_view>

#include "base/uuid.h"
#include "client/agent/file_descriptor.h"

namespace stepwell::agent {

class RingFolder {
 public:
  RingFolder() = default;
  // `path` "" = the writer has none. `writer_directory` says who the owner is.
  static RingFolder Open(const std::string& path, const Uuid& writer, int writer_directory);
  // That of the forked worker whose directory has this name.
  RingFolder OpenWorker(const std::string& name) const;

  bool visible() const { return directory_.valid(); }
  int get() const { return directory_.get(); }
  // Rings may lie where this agent cannot see them.
  bool hidden() const { return hidden_; }

 private:
  FileDescriptor directory_;
  bool hidden_ = false;
};

// Of writer.json: absolute, and the last component is the writer's uuid.
bool IsRingPath(std::string_view path, const Uuid& writer);

// Removes the writer `name` with all that it holds, in shared memory too.
void RemoveWriter(int format_directory, const std::string& name);

// Where a user's rings lie, by the recorder's rule: stepwell-<uid> in STEPWELL_SHARED_MEMORY or
// /dev/shm.
std::string RingHome(unsigned owner);
// Removes from `home` what belongs to writers of this format directory that are no more: an agent
// died between the two, or somebody deleted the spool. Gives the number of what went.
int SweepRings(const std::string& home, int format_directory, unsigned owner);

}  // namespace stepwell::agent
