#include "client/cli/progress.h"

#include <unistd.h>

#include <iostream>
#include <utility>

#include "base/steady_time.h"
#include "fmt/format.h"

namespace stepwell::cli {

Progress::Progress(std::string doing) : doing_(std::move(doing)) {
  if (isatty(STDERR_FILENO) == 0) return;
  worker_ = Worker("stepwell-wait", [this] { Run(); });
}

void Progress::Say(std::string doing) {
  const absl::MutexLock lock(&mu_);
  doing_ = std::move(doing);
}

Progress::~Progress() {
  done_.Notify();
  worker_.Join();
}

void Progress::Run() {
  const SteadyTime start = SteadyTime::Now();
  absl::Duration wait = absl::Seconds(2);
  bool shown = false;
  while (!done_.WaitForNotificationWithTimeout(wait)) {
    const auto seconds = absl::ToInt64Seconds(SteadyTime::Now() - start);
    const std::string doing = [this] {
      const absl::MutexLock lock(&mu_);
      return doing_;
    }();
    std::cerr << fmt::format("\r{} ... {} s\033[K", doing, seconds) << std::flush;
    shown = true;
    wait = absl::Seconds(1);
  }
  if (shown) std::cerr << "\r\033[K" << std::flush;
}

}  // namespace stepwell::cli
