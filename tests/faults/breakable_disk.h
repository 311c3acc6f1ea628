// BreakableDisk: a small ext4 of its own on a loop device, which turns read-only under whoever has files open on it, as the
// kernel does to a disk whose structures it finds broken. For good: a reboot would mend it. Seen by the calling process
// and its children alone.
//
//   BreakableDisk disk(scene.path("disk"));
//   if (!disk.trouble().empty()) GTEST_SKIP() << disk.trouble();
//   ... disk.directory() ...
//   ASSERT_TRUE(disk.TurnReadOnly());
#pragma once

#include <string>

namespace stepwell::faults {

class BreakableDisk {
 public:
  // Makes `directory` and mounts it there. Rings in shared memory lie in a place of their own from then on, too, so that
  // of those who cannot tidy up nothing is left behind on the machine.
  explicit BreakableDisk(const std::string& directory);
  ~BreakableDisk();
  BreakableDisk(const BreakableDisk&) = delete;
  BreakableDisk& operator=(const BreakableDisk&) = delete;

  // Why there is none; empty = there is.
  const std::string& trouble() const { return trouble_; }
  const std::string& directory() const { return directory_; }
  // All that was written is on it first: a page that is stored to from then on is asked for anew.
  bool TurnReadOnly() const;

 private:
  std::string Mount() const;

  const std::string directory_;
  std::string trouble_;
};

}  // namespace stepwell::faults
