#include "client/agent/checkpoint.h"

#include <algorithm>

#include "client/agent/byte_buffer.h"

namespace stepwell::agent {
namespace {

void Write(const RingProgress& progress, ByteWriter& writer) {
  writer.U64(progress.no_ring_told);
  writer.U64(progress.no_name_told);
  writer.U8(progress.ended ? 1 : 0);
  writer.U32(static_cast<std::uint32_t>(progress.rings.size()));
  for (const auto& [ring, mark] : progress.rings) {
    writer.U32(ring);
    writer.U64(mark.tail);
    writer.U64(mark.dropped_told);
  }
  writer.U32(static_cast<std::uint32_t>(progress.thread_states.size()));
  for (const auto& [thread, state] : progress.thread_states) {
    writer.U32(thread);
    writer.Text(state);
  }
}

void Read(ByteReader& reader, RingProgress& progress) {
  progress.no_ring_told = reader.U64();
  progress.no_name_told = reader.U64();
  progress.ended = reader.U8() != 0;
  for (std::uint32_t left = reader.U32(); left > 0 && reader.ok(); --left) {
    RingMark& mark = progress.rings[reader.U32()];
    mark.tail = reader.U64();
    mark.dropped_told = reader.U64();
  }
  for (std::uint32_t left = reader.U32(); left > 0 && reader.ok(); --left) {
    const std::uint32_t thread = reader.U32();
    progress.thread_states[thread] = std::string(reader.Text());
  }
}

}  // namespace

void RingProgress::MergeFrom(const RingProgress& newer) {
  no_ring_told = std::max(no_ring_told, newer.no_ring_told);
  no_name_told = std::max(no_name_told, newer.no_name_told);
  ended |= newer.ended;
  for (const auto& [ring, mark] : newer.rings) {
    if (mark.tail == RingMark::kGone) {
      rings.erase(ring);
    } else {
      rings[ring] = mark;
    }
  }
  for (const auto& [thread, state] : newer.thread_states) {
    if (state.empty()) {
      thread_states.erase(thread);
    } else {
      thread_states[thread] = state;
    }
  }
}

std::string Checkpoint::Encode() const {
  ByteWriter writer;
  Write(*this, writer);
  writer.U32(static_cast<std::uint32_t>(workers.size()));
  for (const auto& [key, progress] : workers) {
    writer.U32(key.index);
    writer.U64(key.opened_ns);
    writer.U8(progress ? 1 : 0);
    if (progress) Write(*progress, writer);
  }
  return writer.Take();
}

bool Checkpoint::Decode(std::string_view bytes, Checkpoint& checkpoint) {
  ByteReader reader(bytes);
  Checkpoint decoded;
  Read(reader, decoded);
  for (std::uint32_t left = reader.U32(); left > 0 && reader.ok(); --left) {
    WorkerKey key;
    key.index = reader.U32();
    key.opened_ns = reader.U64();
    std::optional<RingProgress>& progress = decoded.workers[key];
    if (reader.U8() != 0) Read(reader, progress.emplace());
  }
  if (!reader.ok() || !reader.AtEnd()) return false;
  checkpoint = std::move(decoded);
  return true;
}

void Checkpoint::MergeFrom(const Checkpoint& newer) {
  RingProgress::MergeFrom(newer);
  for (const auto& [key, progress] : newer.workers) {
    if (!progress) {
      workers.erase(key);
      continue;
    }
    std::optional<RingProgress>& known = workers[key];
    if (!known) known.emplace();
    known->MergeFrom(*progress);
  }
}

}  // namespace stepwell::agent
