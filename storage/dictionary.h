// Dictionary: the different 64-bit words of a vector and which of them each sample is. A core;
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace stepwell {

struct Dictionary {
  // Ascending as signed integers.
  std::vector<std::int64_t> words;
  // Per sample, an index into words.
  std::vector<std::uint32_t> indexes;

  // How many bits an index takes.
  int Width() const;
};

// nullopt as soon as there are more than `limit` different words.
// REQUIRES: fewer than 2^31 samples.
std::optional<Dictionary> BuildDictionary(std::span<const std::int64_t> samples, std::size_t limit);

// The most words with which a dictionary of `sample_count` samples takes less than `bytes`, array
// and bit string included; 0 where none does.
std::size_t DictionaryWordsMax(std::size_t sample_count, std::size_t bytes);

}  // namespace stepwell
