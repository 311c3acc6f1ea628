// SharedBytes: bytes in pieces that are held, not copied: a message as gRPC has it, with what frames it before
// and behind. Copies share the pieces, which nobody changes. Thread-compatible.
//
//   SharedBytes part(std::move(slices_in_order), owner_of_them);
//   part.Prepend("1f\r\n");
//   for (const std::string_view piece : part.From(written, 16)) Send(piece);
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell {

class SharedBytes {
 public:
  SharedBytes() = default;
  explicit SharedBytes(std::string text) { Append(std::move(text)); }
  // `owner` keeps what `pieces` look at.
  SharedBytes(const std::vector<std::string_view>& pieces,
              const std::shared_ptr<const void>& owner) {
    for (const std::string_view piece : pieces) {
      pieces_.push_back({piece, owner});
      size_ += piece.size();
    }
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  void Prepend(std::string text) {
    size_ += text.size();
    pieces_.push_front(Owned(std::move(text)));
  }
  void Append(std::string text) {
    size_ += text.size();
    pieces_.push_back(Owned(std::move(text)));
  }

  // Behind the first `skipped` bytes: `count_max` pieces at most, none of them empty.
  std::vector<std::string_view> From(std::size_t skipped, std::size_t count_max) const {
    std::vector<std::string_view> found;
    for (const Piece& piece : pieces_) {
      if (found.size() == count_max) break;
      const std::size_t here = std::min(skipped, piece.view.size());
      skipped -= here;
      if (here < piece.view.size()) found.push_back(piece.view.substr(here));
    }
    return found;
  }

  std::string Text() const {
    std::string text;
    text.reserve(size_);
    for (const Piece& piece : pieces_) text.append(piece.view);
    return text;
  }

 private:
  struct Piece {
    std::string_view view;
    std::shared_ptr<const void> owner;
  };
  static Piece Owned(std::string text) {
    const auto owner = std::make_shared<const std::string>(std::move(text));
    return {*owner, owner};
  }

  std::deque<Piece> pieces_;
  std::size_t size_ = 0;
};

}  // namespace stepwell
