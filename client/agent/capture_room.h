// CaptureRoom: the memory that the captures of one spool's root may hold together, from their first span until their bytes are
// written. Shared by the StepCaptures of a root, which go on the thread that writes them. Thread-safe.
//
//   auto room = std::make_shared<CaptureRoom>();
//   if (room->is_short()) ...   // begin no capture
//   if (!room->is_full()) room->Add(bytes);
#pragma once

#include <atomic>
#include <cstdint>

namespace stepwell::agent {

class CaptureRoom {
 public:
  static constexpr std::int64_t kBytesMax = std::int64_t{64} << 20;

  explicit CaptureRoom(std::int64_t bytes_max = kBytesMax) : bytes_max_(bytes_max) {}

  // Also beyond the bound: whoever adds much asks before. Negative: given back.
  void Add(std::int64_t bytes) { bytes_ += bytes; }
  bool is_full() const { return bytes_ >= bytes_max_; }
  // A capture that began now would soon leave out what it should hold.
  bool is_short() const { return bytes_ >= bytes_max_ - bytes_max_ / 16; }
  std::int64_t bytes() const { return bytes_; }
  std::int64_t bytes_max() const { return bytes_max_; }

 private:
  const std::int64_t bytes_max_;
  std::atomic<std::int64_t> bytes_{0};
};

}  // namespace stepwell::agent
