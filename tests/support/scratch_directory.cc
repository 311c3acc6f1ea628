#include "tests/support/scratch_directory.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "base/check.h"

namespace stepwell::testing {

ScratchDirectory::ScratchDirectory() {
  char name[] = "/tmp/stepwell-test-XXXXXX";
  STEPWELL_CHECK(mkdtemp(name) != nullptr);
  path_ = name;
  STEPWELL_CHECK(chmod(name, 0711) == 0);
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace stepwell::testing
