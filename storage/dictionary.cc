#include "storage/dictionary.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "base/check.h"
#include "storage/encoded_vector.h"

namespace stepwell {
namespace {

constexpr std::uint64_t kHashFactor = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio, odd

// Whether it is clear without a look at the words themselves that there are more than `limit` different ones:
// as many or more as there are different hashes. A third of the time of a table, which most columns are spared.
bool HasMoreHashes(std::span<const std::int64_t> samples, std::size_t limit) {
  constexpr std::size_t kBitsMax = std::size_t{1} << 17;  // 16 KiB of stack
  constexpr std::size_t kLookInterval = 16;
  constexpr std::size_t kLookLong = 256;
  const std::size_t bit_count = std::clamp(std::bit_ceil(8 * limit), std::size_t{64}, kBitsMax);
  const int shift = 64 - BitWidth(bit_count - 1);
  std::array<std::uint64_t, kBitsMax / 64> seen;
  std::fill_n(seen.begin(), bit_count / 64, 0);
  std::size_t found = 0;
  for (std::size_t i = 0; i < samples.size();) {
    for (const std::size_t end = std::min(samples.size(), i + kLookInterval); i < end; ++i) {
      const std::uint64_t hash = static_cast<std::uint64_t>(samples[i]) * kHashFactor >> shift;
      std::uint64_t& word = seen[hash / 64];
      found += (word >> hash % 64 & 1) ^ 1;
      word |= std::uint64_t{1} << hash % 64;
    }
    if (found > limit) return true;
    // So few of so many: a table will be needed.
    if (i >= kLookLong && found < i / 16) return false;
  }
  return false;
}

// Open addressing over `words`: a slot holds the index of its word + 1, 0 is free.
class WordTable {
 public:
  explicit WordTable(std::size_t limit)
      : slots_(std::bit_ceil(2 * limit + 2)), shift_(64 - BitWidth(slots_.size() - 1)) {}

  // The index of `word`, added to `words` if new.
  std::uint32_t IndexOf(std::int64_t word, std::vector<std::int64_t>& words) {
    std::size_t slot = static_cast<std::uint64_t>(word) * kHashFactor >> shift_;
    while (slots_[slot] != 0 && words[slots_[slot] - 1] != word) {
      slot = (slot + 1) & (slots_.size() - 1);
    }
    if (slots_[slot] == 0) {
      words.push_back(word);
      slots_[slot] = static_cast<std::uint32_t>(words.size());
    }
    return slots_[slot] - 1;
  }

 private:
  std::vector<std::uint32_t> slots_;
  const int shift_;
};

void SortWords(Dictionary& dictionary) {
  std::vector<std::uint32_t> order(dictionary.words.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t left, std::uint32_t right) {
    return dictionary.words[left] < dictionary.words[right];
  });
  std::vector<std::uint32_t> rank(order.size());
  std::vector<std::int64_t> sorted(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    rank[order[i]] = i;
    sorted[i] = dictionary.words[order[i]];
  }
  dictionary.words = std::move(sorted);
  for (std::uint32_t& index : dictionary.indexes) index = rank[index];
}

}  // namespace

int Dictionary::Width() const { return words.empty() ? 0 : BitWidth(words.size() - 1); }

std::optional<Dictionary> BuildDictionary(std::span<const std::int64_t> samples,
                                          std::size_t limit) {
  STEPWELL_CHECK(samples.size() < std::size_t{1} << 31);
  if (limit == 0) return std::nullopt;
  limit = std::min(limit, samples.size());
  if (HasMoreHashes(samples, limit)) return std::nullopt;
  Dictionary dictionary;
  dictionary.indexes.reserve(samples.size());
  WordTable table(limit);
  // Where a sample is what the one before it was, its index is, too: most are, of what has few words.
  std::uint32_t index = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (i == 0 || samples[i] != samples[i - 1]) {
      index = table.IndexOf(samples[i], dictionary.words);
      if (dictionary.words.size() > limit) return std::nullopt;
    }
    dictionary.indexes.push_back(index);
  }
  SortWords(dictionary);
  return dictionary;
}

std::size_t DictionaryWordsMax(std::size_t sample_count, std::size_t bytes) {
  constexpr std::size_t kOverheadBytes = kArrayOverheadBytes + kBitStringOverheadBytes;
  std::size_t words_max = 0;
  for (std::size_t width = 0; width < 32; ++width) {
    const std::size_t index_bytes = (sample_count * width + 7) / 8;
    if (kOverheadBytes + index_bytes + 8 >= bytes) break;
    const std::size_t affordable = (bytes - 1 - kOverheadBytes - index_bytes) / 8;
    words_max = std::max(words_max, std::min(affordable, std::size_t{1} << width));
  }
  return words_max;
}

}  // namespace stepwell
