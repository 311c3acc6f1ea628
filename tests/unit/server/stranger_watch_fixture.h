// What the tests of StrangerWatch begin with.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/stranger_watch.h"

namespace stepwell {

class FakeSockets final : public ConnectionSockets {
 public:
  std::optional<State> StateOf(const ConnectionSocket& socket) override {
    ++asked;
    const auto found = bytes.find(socket.fd);
    if (found == bytes.end()) return std::nullopt;
    return State{found->second, over.count(socket.fd) != 0};
  }
  void Shut(const ConnectionSocket& socket) override {
    shut.insert(socket.fd);
    over.insert(socket.fd);
    if (!closes_late) bytes.erase(socket.fd);
  }

  std::map<int, std::int64_t> bytes;  // of those that are not gone
  std::set<int> over;
  std::set<int> shut;
  bool closes_late = false;
  int asked = 0;
};

class FakeCalls final : public ConnectionCalls {
 public:
  std::vector<CallCounter> Since(std::int64_t id) override {
    ++listed;
    std::vector<CallCounter> found;
    for (const auto& [each, end] : ends) {
      if (each >= id) found.push_back({end, each});
    }
    return found;
  }
  std::optional<std::int64_t> Begun(std::int64_t id) override {
    ++asked;
    const auto found = begun.find(id);
    return found == begun.end() ? std::nullopt : std::optional(found->second);
  }

  std::map<std::int64_t, std::string> ends;
  std::map<std::int64_t, std::int64_t> begun;
  int listed = 0;
  int asked = 0;
};

// A watch over sockets and counts that a test says.
class StrangerWatchTest : public ::testing::Test {
 protected:
  static std::string EndOf(int fd) { return "10.0.0.7:" + std::to_string(fd); }
  static std::string AddressOf(int fd) { return "10.2.0." + std::to_string(fd); }

  void Connect(int fd, std::int64_t bytes = 0, const std::string& address = "10.0.0.7") {
    sockets_.bytes[fd] = bytes;
    sockets_.over.erase(fd);
    EXPECT_STREQ(watch_.Add(EndOf(fd), address, {fd, 1}, now_), nullptr);
  }
  Caller Show(int fd) {
    auto caller = std::make_shared<TokenHolder>();
    watch_.Know("ipv4:" + EndOf(fd), caller);
    return caller;
  }
  std::vector<int> Look() {
    std::vector<int> ended;
    const StrangerWatch::Looked looked = watch_.Look(now_);
    freed_bytes_ += looked.freed_bytes;
    for (const auto& each : looked.ended) ended.push_back(each.socket.fd);
    for (const int fd : ended) EXPECT_EQ(sockets_.shut.count(fd), 1u) << "told, not done";
    return ended;
  }

  // Without a standstill.
  void Pass(absl::Duration time) {
    for (const SteadyTime until = now_ + time; now_ < until;) {
      now_ = std::min(until, now_ + absl::Milliseconds(500));
      EXPECT_THAT(Look(), ::testing::IsEmpty());
    }
  }

  FakeSockets sockets_;
  FakeCalls calls_;
  StrangerWatch watch_{sockets_, calls_};
  SteadyTime now_ = SteadyTime::Now();
  std::int64_t freed_bytes_ = 0;
};

}  // namespace stepwell
