// UselessServer: what may stand where a master should, on a port of loopback, until it is destroyed.
// Its thread is its own; thread-safe.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace stepwell::faults {

class UselessServer {
 public:
  enum class Kind {
    kSwallows,       // connections are never established: nobody answers their first packets
    kTalksNonsense,  // takes what comes, and answers with bytes that mean nothing
  };
  explicit UselessServer(Kind kind);
  ~UselessServer();
  UselessServer(const UselessServer&) = delete;
  UselessServer& operator=(const UselessServer&) = delete;

  // "127.0.0.1:PORT".
  std::string address() const;
  int connection_count() const { return connection_count_; }

 private:
  void FillBacklog();
  void TalkNonsense();

  int listener_ = -1;
  int port_ = 0;
  std::vector<int> waiting_;
  std::atomic<int> connection_count_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace stepwell::faults
