#include "base/process_secrets.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

bool IsSet(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

void KeepMemoryPrivate() { prctl(PR_SET_DUMPABLE, 0); }

void KeepMemoryPrivateOfAllUsers() {
  KeepMemoryPrivate();
  rlimit limit{};
  if (getrlimit(RLIMIT_CORE, &limit) != 0) return;
  // Zero is for files alone; one stops programs that take core files as well (core_pattern with a '|').
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 1);
  setrlimit(RLIMIT_CORE, &limit);
}

void HideInArguments(int argc, char** argv,
                     const std::function<std::string(const std::string& given)>& shown_of) {
  for (int i = 1; i < argc; ++i) {
    const std::string given(argv[i]);
    const std::string shown = shown_of(given);
    if (shown == given) continue;
    const std::size_t shorter = std::min(given.size(), shown.size());
    std::size_t head = 0;
    while (head < shorter && given[head] == shown[head]) ++head;
    std::size_t tail = 0;
    while (tail < shorter - head &&
           given[given.size() - 1 - tail] == shown[shown.size() - 1 - tail]) {
      ++tail;
    }
    std::memset(argv[i] + head, '*', given.size() - head - tail);
  }
}

void HideOptionValue(int argc, char** argv, std::string_view option) {
  const std::string begin = absl::StrCat(absl::string_view(option.data(), option.size()), "=");
  for (int i = 1; i < argc; ++i) {
    if (argv[i] == option && i + 1 < argc) {
      ++i;
      std::memset(argv[i], '*', std::strlen(argv[i]));
    } else if (absl::StartsWith(argv[i], begin)) {
      std::memset(argv[i] + begin.size(), '*', std::strlen(argv[i]) - begin.size());
    }
  }
}

bool HoldsClientSecret(const std::vector<std::string>& arguments) {
  if (IsSet("STEPWELL_TOKEN") || IsSet("STEPWELL_TLS_KEY")) return true;
  if (arguments.size() > 1 && arguments[0] == "tls" && arguments[1] == "init") return true;
  return std::any_of(arguments.begin(), arguments.end(), [](const std::string& argument) {
    return absl::StartsWith(argument, "--token") || absl::StartsWith(argument, "--tls-key");
  });
}

}  // namespace stepwell
