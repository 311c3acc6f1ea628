#include "client/agent/checkpoint.h"

#include <algorithm>

#include "client/agent/byte_buffer.h"

namespace stepwell::agent {

std::string Checkpoint::Encode() const {
  ByteWriter writer;
  writer.U64(no_ring_told);
  writer.U64(no_name_told);
  writer.U32(static_cast<std::uint32_t>(rings.size()));
  for (const auto& [ring, mark] : rings) {
    writer.U32(ring);
    writer.U64(mark.tail);
    writer.U64(mark.dropped_told);
  }
  writer.U32(static_cast<std::uint32_t>(thread_states.size()));
  for (const auto& [thread, state] : thread_states) {
    writer.U32(thread);
    writer.Text(state);
  }
  return writer.Take();
}

bool Checkpoint::Decode(std::string_view bytes, Checkpoint& checkpoint) {
  ByteReader reader(bytes);
  Checkpoint decoded;
  decoded.no_ring_told = reader.U64();
  decoded.no_name_told = reader.U64();
  for (std::uint32_t left = reader.U32(); left > 0 && reader.ok(); --left) {
    RingMark& mark = decoded.rings[reader.U32()];
    mark.tail = reader.U64();
    mark.dropped_told = reader.U64();
  }
  for (std::uint32_t left = reader.U32(); left > 0 && reader.ok(); --left) {
    const std::uint32_t thread = reader.U32();
    decoded.thread_states[thread] = std::string(reader.Text());
  }
  if (!reader.ok() || !reader.AtEnd()) return false;
  checkpoint = std::move(decoded);
  return true;
}

void Checkpoint::MergeFrom(const Checkpoint& newer) {
  no_ring_told = std::max(no_ring_told, newer.no_ring_told);
  no_name_told = std::max(no_name_told, newer.no_name_told);
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

}  // namespace stepwell::agent
