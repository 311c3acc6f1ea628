#include "tests/unit/cli/golden.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/support/places/places.h"

namespace stepwell::cli {
namespace {

// The tests' main is gtest's own: what it did not take is still in the process' arguments.
bool Rewrites() {
  if (std::getenv("STEPWELL_REWRITE_GOLDEN") != nullptr) return true;
  for (const std::string& argument : ::testing::internal::GetArgvs()) {
    if (argument == "--rewrite-golden") return true;
  }
  return false;
}

}  // namespace

void ExpectGolden(const std::string& name, const std::string& text) {
  const std::string path = SourcePlace("tests/golden/cli/" + name);
  if (Rewrites()) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file.good()) << path << " is missing: run cli_tests --rewrite-golden and read it";
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(text, golden.str()) << path << ": if this is meant, run cli_tests --rewrite-golden";
}

}  // namespace stepwell::cli
