// HttpHeldBytes: how many bytes are held over all connections of a port: of answers that wait for their clients,
// for those of slow readers outlive the turns of their calls; of requests' bodies until their calls are answered.
// Thread-safe.
//
//   if (!held.HasRoom(bytes.size())) return Refuse();
//   const auto hold = held.Add(bytes.size());   // until it goes
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <utility>

namespace stepwell {

class HttpHeldBytes {
 public:
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept
        : of_(std::exchange(other.of_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Hold& operator=(Hold&& other) noexcept {
      std::swap(of_, other.of_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Hold() {
      if (of_ != nullptr) of_->bytes_ -= bytes_;
    }

    std::size_t bytes() const { return bytes_; }

   private:
    friend class HttpHeldBytes;
    Hold(HttpHeldBytes* of, std::size_t bytes) : of_(of), bytes_(bytes) {}

    HttpHeldBytes* of_ = nullptr;
    std::size_t bytes_ = 0;
  };

  explicit HttpHeldBytes(std::size_t max) : max_(max) {}

  // What is small always has it: health, errors, questions, and what the number of connections bounds enough. What is large
  // counts as half of it here: one that is longer than all would else be told for ever to come again.
  bool HasRoom(std::size_t bytes) const {
    return bytes <= kSmallBytes || bytes_ + std::min(bytes, max_ / 2) <= max_;
  }
  // Also where there is no room: each of the threads that ask may be ahead of the others by an answer.
  Hold Add(std::size_t bytes) {
    bytes_ += bytes;
    return {this, bytes};
  }

 private:
  static constexpr std::size_t kSmallBytes = 64 << 10;

  const std::size_t max_;
  std::atomic<std::size_t> bytes_ = 0;
};

}  // namespace stepwell
