// BoundedNotes: what is told to people of one kind, of thousands the first few and how many more there are. Confined to one
// thread.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace stepwell {

class BoundedNotes {
 public:
  static constexpr std::size_t kNotesMax = 20;

  void Add(std::string note) {
    if (++count_ <= kNotesMax) notes_.push_back(std::move(note));
  }
  // Behind `notes`; `likewise` ends the sentence of those that are only counted.
  void MoveTo(std::vector<std::string>& notes, const char* likewise) && {
    for (std::string& note : notes_) notes.push_back(std::move(note));
    if (count_ > kNotesMax) {
      notes.push_back(absl::StrCat(count_ - kNotesMax, " more ", likewise));
    }
  }

 private:
  std::vector<std::string> notes_;
  std::size_t count_ = 0;
};

}  // namespace stepwell
