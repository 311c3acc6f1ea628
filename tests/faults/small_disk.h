// A small file system of its own for a test: it fills up. Seen by the calling process and its children
// alone; it goes with them.
//
//   if (const std::string why = MountSmallDisk(path, "4m"); !why.empty()) GTEST_SKIP() << why;
#pragma once

#include <string>

namespace stepwell::faults {

// Makes `directory` and mounts there a file system of `size` ("4m"). Empty = done, else why it cannot be, in words.
std::string MountSmallDisk(const std::string& directory, const char* size);

// Writes `path` until there is no room.
void FillUp(const std::string& path);

// Makes it no larger than what is on it, at once, whatever its size: to make it `size` again gives the room back. False = it
// could not be.
bool TightenSmallDisk(const std::string& directory);
bool ResizeSmallDisk(const std::string& directory, const std::string& size);

}  // namespace stepwell::faults
