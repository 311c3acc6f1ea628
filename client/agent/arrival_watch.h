// ArrivalWatch: says at once that something new lies in one of some directories, so that a trial is
// found before the agent's next look. Where the kernel gives no watch, the next look is soon enough.
// Add is for one thread.
//
//   ArrivalWatch watch([&] { loop.Wake(); });
//   watch.Add(format_directory);
#pragma once

#include <functional>

#include "base/worker.h"
#include "client/agent/file_descriptor.h"

namespace stepwell::agent {

class ArrivalWatch {
 public:
  // `on_arrival` is called on the watch's own thread, at most each 10 ms, and must not block.
  explicit ArrivalWatch(std::function<void()> on_arrival);
  ~ArrivalWatch();
  ArrivalWatch(const ArrivalWatch&) = delete;
  ArrivalWatch& operator=(const ArrivalWatch&) = delete;

  // Names that are made in it or moved into it; not what happens below those. Until it is removed.
  void Add(int directory);
  // The kernel watches all that was added.
  bool watches_all() const { return watches_all_; }

 private:
  void Run();

  const std::function<void()> on_arrival_;
  bool watches_all_ = false;
  FileDescriptor events_;
  FileDescriptor stop_;
  Worker worker_;
};

}  // namespace stepwell::agent
