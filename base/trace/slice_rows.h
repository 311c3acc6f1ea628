// SliceRows: puts the slices of one thread into rows in which they nest, as a view of traces draws them. Most threads
// have one row; slices that overlap without nesting (kernels of one stream, tasks that take turns) get further ones.
// Stands between a PerfettoMerger and its writer.
//
//   SliceRows rows;
//   const auto row = rows.Place(begin_ns, end_ns, [&](int row, std::int64_t end_ns) { ... });  // slices that end before
//   rows.EndAll([&](int row, std::int64_t end_ns) { ... });
//
// What a row gets is in order of time: each begin and each end told is not before the last. A slice that begins
// before that goes to another row, so slices are placed in the order of their begins where one row is wanted, those of
// one begin by their ends, the latest first. Confined to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace stepwell {

class SliceRows {
 public:
  // More than that nobody looks at.
  static constexpr int kRowsMax = 64;

  using TakeEnd = std::function<void(int row, std::int64_t end_ns)>;

  // The row of the slice; the ends of those before it there are told first. Nothing: no row has room.
  // REQUIRES: begin_ns <= end_ns.
  std::optional<int> Place(std::int64_t begin_ns, std::int64_t end_ns, const TakeEnd& take_end);
  // Tells the ends of all that are open.
  void EndAll(const TakeEnd& take_end);

 private:
  struct Row {
    std::int64_t time_ns = INT64_MIN;
    std::vector<std::int64_t> open_ends;  // the innermost last
  };

  // Whether [begin, end] nests in it, once what ended before has been told.
  static bool HasRoom(Row& row, int index, std::int64_t begin_ns, std::int64_t end_ns,
                      const TakeEnd& take_end);

  std::vector<Row> rows_;
};

}  // namespace stepwell
