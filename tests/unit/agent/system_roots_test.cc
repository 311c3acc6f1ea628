#include "client/agent/system_roots.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace stepwell::agent {
namespace {

namespace fs = std::filesystem;

std::size_t CountOf(const std::string& word, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    ++count;
  }
  return count;
}

// Anybody may make names in it.
TEST(SystemRootsTest, NamesWithoutEndDoNotFillTheLog) {
  char pattern[] = "/tmp/stepwell-system-test-XXXXXX";
  ASSERT_NE(mkdtemp(pattern), nullptr);
  // None belongs to the user whose name it bears, or may be served by this one.
  for (int i = 0; i < 1000; ++i)
    fs::create_directory(fs::path(pattern) / ("u" + std::to_string(50'000 + i)));
  FakeClock clock;
  SystemRoots roots(FileDescriptor(open(pattern, O_RDONLY | O_DIRECTORY | O_CLOEXEC)), clock);
  testing::internal::CaptureStderr();
  for (int look = 0; look < 3; ++look) {
    EXPECT_TRUE(roots.FindNew().empty());
    clock.Advance(absl::Seconds(2));
  }
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(CountOf("user_refused", told), 2 * SystemRoots::kRootsMax);
  fs::remove_all(pattern);
}

}  // namespace
}  // namespace stepwell::agent
