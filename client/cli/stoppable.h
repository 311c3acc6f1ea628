// Stoppable: long work that a signal to end cuts short in order. The work runs on a thread of its own,
// signals are taken by the thread that waits for it.
//
//   const HeldSignals signals;   // before any thread is started
//   const bool stopped = RunStoppable(signals, "stepwell-upload", [&] { agent.Run(); },
//                                     [&] { agent.RequestStop(); }, [] {});
#pragma once

#include <signal.h>

#include <functional>
#include <string>

#include "absl/time/time.h"

namespace stepwell::cli {

// While it lives, SIGINT, SIGTERM and SIGHUP are taken by Wait alone: they are blocked in this thread
// and those that it starts. SIGPIPE and SIGXFSZ become errors of the calls concerned, for good.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  // Whether one came within that time.
  bool Wait(absl::Duration at_most) const;

 private:
  sigset_t set_;
  sigset_t before_;
};

// Runs `body` on a thread of that name. Each signal calls `stop`, after which `body` returns soon;
// true: one came. `look` is called now and then. Only `body` runs on the other thread.
bool RunStoppable(const HeldSignals& signals, const std::string& name,
                  const std::function<void()>& body, const std::function<void()>& stop,
                  const std::function<void()>& look);

}  // namespace stepwell::cli
