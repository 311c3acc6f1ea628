// Progress: a line on stderr that appears once a call takes over 2 s and vanishes at its end, so
// that nobody wonders whether it hangs. Only on a terminal. Owns a thread.
//
//   const Progress progress("reading my-run");
#pragma once

#include <string>

#include "absl/synchronization/notification.h"
#include "base/worker.h"

namespace stepwell::cli {

class Progress {
 public:
  explicit Progress(std::string doing);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void Run(const std::string& doing);

  absl::Notification done_;
  Worker worker_;
};

}  // namespace stepwell::cli
