#include "base/failpoint.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/random/random.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

namespace stepwell::failpoint {
namespace {

struct Point {
  std::string action;
  int count_left = -1;  // -1 = for ever
  int skip_left = 0;
  int one_in = 1;
};

// Cuts "<marker>NUMBER" off the end of `text`; false when there is none.
bool CutNumber(std::string& text, char marker, int& number) {
  const auto place = text.rfind(marker);
  if (place == std::string::npos) return false;
  if (!absl::SimpleAtoi(text.substr(place + 1), &number)) return false;
  text.resize(place);
  return true;
}

std::map<std::string, Point, std::less<>> Parse(const char* text) {
  std::map<std::string, Point, std::less<>> points;
  if (text == nullptr) return points;
  for (absl::string_view entry : absl::StrSplit(text, ';', absl::SkipWhitespace())) {
    std::pair<std::string, std::string> parts = absl::StrSplit(entry, absl::MaxSplits('=', 1));
    Point point;
    CutNumber(parts.second, '%', point.one_in);
    CutNumber(parts.second, '@', point.skip_left);
    CutNumber(parts.second, '*', point.count_left);
    point.action = parts.second;
    points.emplace(parts.first, point);
  }
  return points;
}

struct Table {
  absl::Mutex mu;
  std::map<std::string, Point, std::less<>> points ABSL_GUARDED_BY(mu);
  absl::BitGen bits ABSL_GUARDED_BY(mu);
  bool armed = false;
};

Table& TheTable() {
  static Table* table = [] {
    auto* made = new Table;
    absl::MutexLock lock(&made->mu);
    made->points = Parse(std::getenv("STEPWELL_FAILPOINTS"));
    made->armed = !made->points.empty();
    return made;
  }();
  return *table;
}

// The action due at this pass, or empty.
std::string Due(absl::string_view name) {
  Table& table = TheTable();
  absl::MutexLock lock(&table.mu);
  auto it = table.points.find(std::string_view(name.data(), name.size()));
  if (it == table.points.end()) return {};
  Point& point = it->second;
  if (point.skip_left > 0) {
    --point.skip_left;
    return {};
  }
  if (point.one_in > 1 && absl::Uniform(table.bits, 0, point.one_in) != 0) return {};
  if (point.count_left == 0) return {};
  if (point.count_left > 0) --point.count_left;
  return point.action;
}

}  // namespace

bool AnyArmed() {
  static const bool armed = TheTable().armed;
  return armed;
}

absl::Status Pass(absl::string_view name) {
  const std::string action = Due(name);
  if (action.empty()) return absl::OkStatus();
  std::fprintf(stderr, "failpoint %.*s %s\n", static_cast<int>(name.size()), name.data(),
               action.c_str());
  std::fflush(stderr);
  if (action == "exit") kill(getpid(), SIGKILL);
  if (action == "hang") absl::SleepFor(absl::InfiniteDuration());
  if (int ms = 0; absl::StartsWith(action, "sleep:") && absl::SimpleAtoi(action.substr(6), &ms)) {
    absl::SleepFor(absl::Milliseconds(ms));
  }
  if (absl::StartsWith(action, "while:")) {
    const std::string path = action.substr(6);
    while (access(path.c_str(), F_OK) == 0) absl::SleepFor(absl::Milliseconds(5));
  }
  if (action == "error") return absl::UnavailableError(absl::StrCat("failpoint ", name));
  return absl::OkStatus();
}

}  // namespace stepwell::failpoint
