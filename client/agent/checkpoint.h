// Checkpoint: how far the agent has come in a writer's rings, as written beside each frame. After
// a crash the newest whole record tells where to go on. A value.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace stepwell::agent {

struct RingMark {
  // As `tail`: the ring is done with and its file gone. A process of short threads makes rings
  // without end; without this word the marks would be kept without end, too.
  static constexpr std::uint64_t kGone = UINT64_MAX;
  // Events below it are safe in frames, or carried in `thread_states`.
  std::uint64_t tail = 0;
  // Of RingHeader::dropped, what a Loss has told already.
  std::uint64_t dropped_told = 0;
};

// Of the rings of one process: of the one that opened the writer, or of a forked worker.
struct RingProgress {
  // By ring number; only the rings that moved, except at a segment's start.
  std::map<std::uint32_t, RingMark> rings;
  // By thread: part sums of a step too long for its ring (StepAggregator::TakeState). Empty = none.
  std::map<std::uint32_t, std::string> thread_states;
  // Of WriterHeader::dropped_no_ring and dropped_no_name, what Losses have told already.
  std::uint64_t no_ring_told = 0;
  std::uint64_t no_name_told = 0;
  // Nothing more will come: what rings there are, or were, is told for good.
  bool ended = false;

  // Takes over what `newer` says.
  void MergeFrom(const RingProgress& newer);
};

// A directory w<k>-<n> may come again after it was removed: what is known of the earlier one must not
// be taken for it.
struct WorkerKey {
  std::uint32_t index = 0;      // k
  std::uint64_t opened_ns = 0;  // of its header
  auto operator<=>(const WorkerKey&) const = default;
};

struct Checkpoint : RingProgress {
  // Nothing = done with and gone.
  std::map<WorkerKey, std::optional<RingProgress>> workers;

  std::string Encode() const;
  // False where the bytes are no checkpoint; then nothing is changed.
  static bool Decode(std::string_view bytes, Checkpoint& checkpoint);
  // Takes over what `newer` says.
  void MergeFrom(const Checkpoint& newer);
};

}  // namespace stepwell::agent
