// Corpus is the text to learn from: which files, which of them are held out, and the alphabet of the
// training part. The text itself stays on disk; the Loader reads it from there.
//
//   std::string error;
//   std::optional<Corpus> corpus = Corpus::Find("src", {}, &error);
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepwell::demo {

// A stretch of a file, in bytes.
struct TextRange {
  std::string path;
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t bytes() const { return end - begin; }
};

// Bytes that occur in the training text become symbols 0 ... size - 2; all others are the last one.
class Alphabet {
 public:
  // No byte is known.
  Alphabet() { symbols_.fill(0); }
  explicit Alphabet(const std::array<std::int64_t, 256>& counts);

  int size() const { return size_; }
  int symbol(unsigned char byte) const { return symbols_[byte]; }

 private:
  std::array<int, 256> symbols_;
  int size_ = 1;
};

class Corpus {
 public:
  // Text files below `directory`, in the order of their paths, at most 64 MiB of them. Skips hidden
  // folders, build outputs and files with NUL bytes. Empty `held_outs` = one file in ten, chosen by
  // its path, or the end of a single file. Nothing, with the reason in `error`, where there is too
  // little text.
  static std::optional<Corpus> Find(const std::string& directory,
                                    const std::vector<std::string>& held_outs, std::string* error);

  const std::vector<TextRange>& training() const { return training_; }
  const std::vector<TextRange>& held_out() const { return held_out_; }
  const Alphabet& alphabet() const { return alphabet_; }

 private:
  std::vector<TextRange> training_;
  std::vector<TextRange> held_out_;
  Alphabet alphabet_;
};

// The bytes of a range; empty where the file cannot be read any more.
std::string ReadRange(const TextRange& range);
std::int64_t BytesOf(const std::vector<TextRange>& ranges);

}  // namespace stepwell::demo
