// Worker: a thread with a name and an owner. Joined on destruction; the owner makes it return
// first.
//
//   Worker committer_{"commit", [this] { Run(); }};
#pragma once

#include <pthread.h>

#include <functional>
#include <string>
#include <thread>
#include <utility>

namespace stepwell {

class Worker {
 public:
  Worker() = default;
  // `name` is shown by ps and gdb; the kernel keeps 15 bytes of it.
  Worker(const std::string& name, std::function<void()> body)
      : thread_([name, body = std::move(body)] {
          pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
          body();
        }) {}
  Worker(Worker&&) = default;
  Worker& operator=(Worker&& other) noexcept {
    Join();
    thread_ = std::move(other.thread_);
    return *this;
  }
  ~Worker() { Join(); }

  // Waits for the body to return. Joining twice is fine.
  void Join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::thread thread_;
};

}  // namespace stepwell
