// HttpTokenWatch: ends a connection of the HTTP port soon after the token of its request has ended, or its client's certificate.
// Whoever called is told why by its answer, where it takes that; who takes nothing, or sends on byte by byte, would stay.
// Confined to the thread "http".
//
//   watch_.Begin(caller, weak_from_this(), [this] { OnGone(); });
//   watch_.End();
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>

#include "server/caller.h"

namespace stepwell {

class HttpTokenWatch {
 public:
  explicit HttpTokenWatch(const boost::asio::any_io_executor& executor) : timer_(executor) {}

  // The request that comes, or is worked on, is `caller`'s; null: nobody was asked. `owner` has this, and lives while `ended` is
  // called.
  void Begin(Caller caller, std::weak_ptr<void> owner, std::function<void()> ended);
  bool has_ended() const { return HasEnded(caller_); }
  // That request is over.
  void End() { caller_ = nullptr; }

 private:
  void Arm();
  void Look();

  boost::asio::steady_timer timer_;
  std::weak_ptr<void> owner_;
  std::function<void()> ended_;
  Caller caller_;
  bool is_armed_ = false;
  int ended_looks_ = 0;  // since its end
};

}  // namespace stepwell
