// fsync and fdatasync of this test process, in place of the C library's: seen, counted, made to fail.
#pragma once

#include <functional>
#include <string>

namespace stepwell::agent {

// Told of each fsync; what it returns is returned, -1 with errno.
extern std::function<int(const std::string& path)> fsync_hook;
// Calls of fdatasync, and whether they fail.
extern int fdatasync_count;
extern bool fdatasync_fails;

}  // namespace stepwell::agent
