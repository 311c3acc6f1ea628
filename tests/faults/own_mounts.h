// Mounts that the calling process and its children alone see: a test's own file systems. They go with it.
//
//   if (const std::string why = TakeOwnMounts(path); !why.empty()) GTEST_SKIP() << why;
#pragma once

#include <string>

namespace stepwell::faults {

// From now on what is mounted on `directory`, which is there and on no mount of the test's, is nobody else's; also in a chroot
// whose root is no mount. Empty = done, else why it cannot be, in words.
std::string TakeOwnMounts(const std::string& directory);

}  // namespace stepwell::faults
