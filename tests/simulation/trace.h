// Trace: what happened in a simulated run, line by line. Two runs of one seed have one digest; the
// lines are kept only where somebody will read them. Confined to its run.
//
//   trace.Add("commit ", chunk_count, " chunks");
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "absl/strings/str_cat.h"

namespace stepwell::simulation {

class Trace {
 public:
  explicit Trace(std::size_t lines_max) : lines_max_(lines_max) {}

  template <typename... Parts>
  void Add(const Parts&... parts) {
    std::string line = absl::StrCat(parts...);
    for (const char letter : line) {
      digest_ = (digest_ ^ static_cast<unsigned char>(letter)) * 0x100000001b3;  // FNV-1a
    }
    ++count_;
    if (lines_max_ == 0) return;
    lines_.push_back(absl::StrCat(count_, "  ", line));
    if (lines_.size() > lines_max_) lines_.pop_front();
  }

  std::uint64_t digest() const { return digest_; }
  std::uint64_t count() const { return count_; }
  // The newest, oldest first.
  const std::deque<std::string>& lines() const { return lines_; }

 private:
  const std::size_t lines_max_;
  std::uint64_t digest_ = 0xcbf29ce484222325;
  std::uint64_t count_ = 0;
  std::deque<std::string> lines_;
};

}  // namespace stepwell::simulation
