#include "server/http/http_token_watch.h"

#include <chrono>
#include <utility>

namespace stepwell {
namespace {

constexpr std::chrono::milliseconds kLookEach(500);
// What was begun may be said meanwhile.
constexpr int kEndedLooksMax = 4;

}  // namespace

void HttpTokenWatch::Begin(Caller caller, std::weak_ptr<void> owner, std::function<void()> ended) {
  caller_ = std::move(caller);
  owner_ = std::move(owner);
  ended_ = std::move(ended);
  ended_looks_ = 0;
  if (caller_ != nullptr && !is_armed_) Arm();
}

void HttpTokenWatch::Arm() {
  is_armed_ = true;
  timer_.expires_after(kLookEach);
  timer_.async_wait([this, owner = owner_](boost::system::error_code error) {
    if (const auto lives = owner.lock(); lives != nullptr && !error) Look();
  });
}

void HttpTokenWatch::Look() {
  is_armed_ = false;
  if (caller_ == nullptr) return;
  if (HasEnded(caller_) && ++ended_looks_ > kEndedLooksMax) return ended_();
  Arm();
}

}  // namespace stepwell
