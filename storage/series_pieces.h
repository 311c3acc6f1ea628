// SeriesPieces: how many series to read at once, where nobody knows how large they are before: labels may make one of a hundred
// bytes, or of 35 KB. The first piece is small, the others are of about as many bytes each. A core; confined.
//
//   SeriesPieces pieces;
//   series = ListSeries(..., pieces.count());
//   pieces.Note(series.size(), BytesOf(series));
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "storage/model.h"

namespace stepwell {

// What a series takes in a list of them.
inline std::size_t BytesOf(const Series& series) {
  // A short text lies in its string.
  constexpr std::size_t kShortBytes = 15;
  constexpr std::size_t kBlockBytes = 16;
  const auto heap_bytes = [](const std::string& text) {
    return text.size() <= kShortBytes ? 0 : text.size() + kBlockBytes;
  };
  const SeriesKey& key = series.definition.key;
  std::size_t bytes = sizeof(series) + heap_bytes(key.metric_group) + heap_bytes(key.name) +
                      heap_bytes(series.definition.unit);
  for (const auto& [name, value] : key.labels) {
    bytes += sizeof(key.labels.front()) + heap_bytes(name) + heap_bytes(value);
  }
  return bytes;
}

inline std::size_t BytesOf(const std::vector<Series>& series) {
  std::size_t bytes = 0;
  for (const Series& each : series) bytes += BytesOf(each);
  return bytes;
}

class SeriesPieces {
 public:
  // Of the first; 17 MB where all are as large as may be.
  static constexpr std::int32_t kFirstCount = 500;
  static constexpr std::int32_t kCountMax = 10'000;
  // Of the others.
  static constexpr std::size_t kBytes = 2 << 20;
  // A piece takes so many times its bytes while it is read: as the database sent it, too.
  static constexpr std::size_t kWhileItIsRead = 2;

  // Of the next one.
  std::int32_t count() const {
    if (seen_count_ == 0) return kFirstCount;
    return static_cast<std::int32_t>(std::clamp<std::size_t>(kBytes / SeriesBytes(), 1, kCountMax));
  }
  // What `count` more will take, as far as one can tell.
  std::size_t BytesExpected(std::int32_t count) const {
    return static_cast<std::size_t>(count) * SeriesBytes();
  }
  // Read were `count`, of `bytes`.
  void Note(std::size_t count, std::size_t bytes) {
    seen_count_ += count;
    seen_bytes_ += bytes;
  }

 private:
  // Of one, on average.
  std::size_t SeriesBytes() const {
    return seen_count_ == 0 ? 512 : std::max<std::size_t>(1, seen_bytes_ / seen_count_);
  }

  std::size_t seen_count_ = 0;
  std::size_t seen_bytes_ = 0;
};

}  // namespace stepwell
