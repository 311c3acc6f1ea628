// CaptureRoom: the memory that the captures of one spool's root may hold together, from their first span until their bytes are
// written. Shared by the StepCaptures of a root, which go on the thread that writes them; where an agent serves several roots
// it is a part of a room of all of them. Thread-safe.
//
//   auto room = std::make_shared<CaptureRoom>();
//   if (room->is_short()) ...   // begin no capture
//   if (!room->is_full()) room->Add(bytes);
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace stepwell::agent {

class CaptureRoom {
 public:
  static constexpr std::int64_t kBytesMax = std::int64_t{64} << 20;

  explicit CaptureRoom(std::int64_t bytes_max = kBytesMax,
                       std::shared_ptr<CaptureRoom> of_all = nullptr)
      : bytes_max_(bytes_max), of_all_(std::move(of_all)) {}

  // Also beyond the bound: whoever adds much asks before. Negative: given back.
  void Add(std::int64_t bytes) {
    bytes_ += bytes;
    if (of_all_ != nullptr) of_all_->Add(bytes);
  }
  bool is_full() const {
    return bytes_ >= bytes_max_ || (of_all_ != nullptr && of_all_->is_full());
  }
  // A capture that began now would soon leave out what it should hold.
  bool is_short() const { return tightest().IsShort(); }
  // Of both the one that is short, or else this.
  const CaptureRoom& tightest() const {
    return !IsShort() && of_all_ != nullptr && of_all_->IsShort() ? *of_all_ : *this;
  }
  std::int64_t bytes() const { return bytes_; }
  std::int64_t bytes_max() const { return bytes_max_; }

 private:
  bool IsShort() const { return bytes_ >= bytes_max_ - bytes_max_ / 16; }

  const std::int64_t bytes_max_;
  const std::shared_ptr<CaptureRoom> of_all_;  // null: this is all
  std::atomic<std::int64_t> bytes_{0};
};

}  // namespace stepwell::agent
