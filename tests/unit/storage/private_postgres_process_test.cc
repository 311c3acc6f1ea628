#include "storage/private_postgres_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

TEST(PrivatePostgresProcessTest, AChildInheritsNoDescriptor) {
  // As a library leaves it between accept() and FD_CLOEXEC.
  const OwnedFd open_to_children(open("/dev/null", O_RDONLY));
  ASSERT_GE(open_to_children.get(), 3);
  const auto seen = RunProgram(
      {"/bin/sh", "-c",
       absl::StrCat("[ -e /proc/self/fd/", open_to_children.get(), " ] && echo yes || echo no")},
      {});
  ASSERT_TRUE(seen.ok()) << seen.status();
  EXPECT_EQ(*seen, "no\n");
  EXPECT_EQ(fcntl(open_to_children.get(), F_GETFD), 0) << "ours stay as they were";
}

}  // namespace
}  // namespace stepwell
