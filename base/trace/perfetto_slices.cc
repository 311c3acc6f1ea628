#include "base/trace/perfetto_slices.h"

#include <algorithm>
#include <tuple>

#include "base/status_macros.h"

namespace stepwell {
namespace {

// How many slices back a flow looks for one that is still open; a hostile trace has any number of siblings.
constexpr std::size_t kLooksMax = 256;
constexpr std::size_t kFlowsRoom = 64 << 10;
// Who holds as much may come to hold all that it may.
constexpr std::size_t kReserveFrom = 1 << 20;

}  // namespace

PerfettoSlices::Lane PerfettoSlices::AddLane(PerfettoWriter::Track track) {
  lanes_.push_back({.tracks = {track}, .rows = {}});
  return static_cast<Lane>(lanes_.size() - 1);
}

void PerfettoSlices::Add(Lane lane, Interval at, std::string_view body) {
  held_.push_back({.lane = lane,
                   .body_bytes = static_cast<std::uint32_t>(body.size()),
                   .body_at = bodies_.size(),
                   .at = at});
  bodies_ += body;
  if (!is_reserved_ && held_bytes() >= kReserveFrom) Reserve();
}

// By doubling all would be there twice for a moment, in blocks that malloc keeps afterwards; one of all is untouched where it
// is not used, and goes back to the kernel.
void PerfettoSlices::Reserve() {
  is_reserved_ = true;
  bodies_.reserve(held_bytes_max_ + held_bytes_max_ / 16);
  held_.reserve(held_bytes_max_ / sizeof(Held) + 1);
  flows_.reserve((held_bytes_max_ + kFlowsRoom) / sizeof(Flow) + 1);
}

void PerfettoSlices::AddFlow(Lane lane, std::int64_t time_ns, std::uint64_t id, bool is_end) {
  flows_.push_back({.lane = lane,
                    .is_end = is_end,
                    .order = static_cast<std::uint32_t>(flows_.size()),
                    .slice = 0,
                    .time_ns = time_ns,
                    .id = id});
  if (!is_reserved_ && held_bytes() >= kReserveFrom) Reserve();
}

absl::Status PerfettoSlices::WriteSome(bool is_flow_next) {
  const std::size_t most = held_bytes_max_ + (is_flow_next ? kFlowsRoom : 0);
  return held_bytes() < most ? absl::OkStatus() : WriteHeld();
}

absl::Status PerfettoSlices::WriteAll() {
  STEPWELL_RETURN_IF_ERROR(WriteHeld());
  for (LaneRows& lane : lanes_) {
    lane.rows.EndAll(EndsOf(lane));
    STEPWELL_RETURN_IF_ERROR(writer_.HandOver(PerfettoWriter::kBlockBytes));
  }
  return absl::OkStatus();
}

absl::Status PerfettoSlices::WriteHeld() {
  std::sort(held_.begin(), held_.end(), [](const Held& a, const Held& b) {
    return std::tuple(a.lane, a.at.begin, -a.at.end, a.body_at) <
           std::tuple(b.lane, b.at.begin, -b.at.end, b.body_at);
  });
  Join();
  std::size_t flow = 0;
  std::string body;
  for (std::size_t i = 0; i < held_.size(); ++i) {
    const Held& slice = held_[i];
    LaneRows& lane = lanes_[slice.lane];
    const auto row = lane.rows.Place(slice.at.begin, slice.at.end, EndsOf(lane));
    body.assign(bodies_, slice.body_at, slice.body_bytes);
    for (; flow < flows_.size() && flows_[flow].slice == i; ++flow) {
      PerfettoWriter::AppendFlow(flows_[flow].id, flows_[flow].is_end, body);
      ++written_count_;
    }
    if (!row.has_value()) {
      ++left_out_count_;
      continue;
    }
    writer_.BeginSlice(TrackOf(lane, *row), slice.at.begin, body);
    ++written_count_;
    STEPWELL_RETURN_IF_ERROR(writer_.HandOver(PerfettoWriter::kBlockBytes));
  }
  left_out_count_ += static_cast<std::int64_t>(flows_.size() - flow);
  held_.clear();
  flows_.clear();
  bodies_.clear();
  return absl::OkStatus();
}

void PerfettoSlices::Join() {
  for (Flow& flow : flows_) flow.slice = SliceOf(flow);
  std::sort(flows_.begin(), flows_.end(), [](const Flow& a, const Flow& b) {
    return std::tuple(a.slice, a.order) < std::tuple(b.slice, b.order);
  });
}

std::uint32_t PerfettoSlices::SliceOf(const Flow& flow) const {
  const auto behind =
      std::upper_bound(held_.begin(), held_.end(), flow, [](const Flow& sought, const Held& slice) {
        return std::tuple(sought.lane, sought.time_ns) < std::tuple(slice.lane, slice.at.begin);
      });
  const auto count = static_cast<std::size_t>(behind - held_.begin());
  for (std::size_t back = 1; back <= std::min(count, kLooksMax); ++back) {
    const Held& slice = held_[count - back];
    if (slice.lane != flow.lane) break;
    if (slice.at.end >= flow.time_ns) return static_cast<std::uint32_t>(count - back);
  }
  return static_cast<std::uint32_t>(held_.size());
}

PerfettoWriter::Track PerfettoSlices::TrackOf(LaneRows& lane, int row) {
  while (static_cast<int>(lane.tracks.size()) <= row) {
    lane.tracks.push_back(next_track_());
    writer_.DescribeRow(lane.tracks.back(), lane.tracks.front(), "at the same time");
  }
  return lane.tracks[static_cast<std::size_t>(row)];
}

SliceRows::TakeEnd PerfettoSlices::EndsOf(LaneRows& lane) {
  return
      [this, &lane](int row, std::int64_t end_ns) { writer_.EndSlice(TrackOf(lane, row), end_ns); };
}

}  // namespace stepwell
