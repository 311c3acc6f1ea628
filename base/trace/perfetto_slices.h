// PerfettoSlices: slices of many tracks on their way to a PerfettoWriter: held, sorted, put into rows in which they
// nest, and joined with the flows that lie within them. Stands between PerfettoMerger and the writer. Confined to one
// thread.
//
//   PerfettoSlices slices(writer, held_bytes_max, next_track);
//   slices.Add(lane, {.begin_ns = 1, .end_ns = 5}, body);
//   slices.AddFlow(lane, 3, id, false);
//   STEPWELL_RETURN_IF_ERROR(slices.WriteSome());
//   STEPWELL_RETURN_IF_ERROR(slices.WriteAll());
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/trace/interval_set.h"
#include "base/trace/perfetto_writer.h"
#include "base/trace/slice_rows.h"

namespace stepwell {

class PerfettoSlices {
 public:
  // A thread's, or an asynchronous id's: its first row is `track`, further ones get numbers from `next_track`.
  using Lane = std::uint32_t;

  // `writer` outlives it.
  PerfettoSlices(PerfettoWriter& writer, std::size_t held_bytes_max,
                 std::function<PerfettoWriter::Track()> next_track)
      : writer_(writer), held_bytes_max_(held_bytes_max), next_track_(std::move(next_track)) {}

  Lane AddLane(PerfettoWriter::Track track);
  void Add(Lane lane, Interval at, std::string_view body);
  // Of the innermost slice of the lane at that time.
  void AddFlow(Lane lane, std::int64_t time_ns, std::uint64_t id, bool is_end);

  // Writes those that are held where they are too many; all of them, and their ends. Before what may be a flow of the last
  // slice they may be some more.
  [[nodiscard]] absl::Status WriteSome(bool is_flow_next);
  [[nodiscard]] absl::Status WriteAll();

  // Of what was added and not written yet.
  std::size_t held_bytes() const {
    return held_.size() * sizeof(Held) + flows_.size() * sizeof(Flow) + bodies_.size();
  }
  std::int64_t written_count() const { return written_count_; }
  // Flows without a slice, slices without a row.
  std::int64_t left_out_count() const { return left_out_count_; }

 private:
  struct LaneRows {
    std::vector<PerfettoWriter::Track> tracks;
    SliceRows rows;
  };
  struct Held {
    Lane lane = 0;
    std::uint32_t body_bytes = 0;
    std::size_t body_at = 0;
    Interval at = {};
  };
  struct Flow {
    Lane lane = 0;
    bool is_end = false;
    std::uint32_t order = 0;  // in which it came
    std::uint32_t slice = 0;  // its index, once sorted
    std::int64_t time_ns = 0;
    std::uint64_t id = 0;
  };

  void Reserve();
  [[nodiscard]] absl::Status WriteHeld();
  void Join();
  // The index of the innermost slice at the flow's time; the number of all where there is none.
  std::uint32_t SliceOf(const Flow& flow) const;
  PerfettoWriter::Track TrackOf(LaneRows& lane, int row);
  SliceRows::TakeEnd EndsOf(LaneRows& lane);

  PerfettoWriter& writer_;
  const std::size_t held_bytes_max_;
  const std::function<PerfettoWriter::Track()> next_track_;
  std::deque<LaneRows> lanes_;
  std::vector<Held> held_;
  std::vector<Flow> flows_;
  std::string bodies_;
  bool is_reserved_ = false;
  std::int64_t written_count_ = 0;
  std::int64_t left_out_count_ = 0;
};

}  // namespace stepwell
