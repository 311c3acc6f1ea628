// Core files, for tests of what must not be in one: whether this kernel leaves them where a process was, as the tests look for them.
// Header only.
//
//   if (const std::string why = WhyNoCoreFiles(); !why.empty()) GTEST_SKIP() << why;
#pragma once

#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/startup.h"

namespace stepwell::testing {

// `pattern`: /proc/sys/kernel/core_pattern. Empty: it leaves them there.
inline std::string WhyNoCoreFiles(const std::string& pattern) {
  const std::string told = absl::StrCat("/proc/sys/kernel/core_pattern is '", pattern, "': ");
  if (absl::StartsWith(pattern, "|")) return told + "a program takes the core files";
  if (absl::StrContains(pattern, '/')) return told + "core files go to another folder";
  if (!absl::StartsWith(pattern, "core")) return told + "core files have other names";
  return "";
}

inline std::string WhyNoCoreFiles() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return "programs of this sanitizer write no core files";
#else
  if (std::getenv("STEPWELL_TEST_PROGRAMS") != nullptr) {
    return "the programs of another build may be such as write no core files";
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max != RLIM_INFINITY) {
    return absl::StrCat("core files are limited to ", limit.rlim_max, " bytes here (ulimit -H -c)");
  }
  return WhyNoCoreFiles(
      std::string(absl::StripAsciiWhitespace(ReadAll("/proc/sys/kernel/core_pattern"))));
#endif
}

// Removes one of `folder`; false where there is none.
inline bool TakeCoreFile(const std::string& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (absl::StartsWith(entry.path().filename().string(), "core")) {
      return std::filesystem::remove(entry.path());
    }
  }
  return false;
}

}  // namespace stepwell::testing
