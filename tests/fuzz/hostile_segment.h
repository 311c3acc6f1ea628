// HostileSegment: a segment of a spool whose records say what a fuzzer wants, and mostly with
// checksums that are right. Header only; pure.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/crc32c.h"
#include "client/agent/byte_buffer.h"
#include "client/agent/spool_record.h"
#include "tests/fuzz/hostile_bytes.h"

namespace stepwell::testing {

// A frame's own checksum, as if whoever wrote it had meant it. A fuzzer finds none.
inline std::string MendFrame(std::string payload) {
  agent::ByteReader reader(payload);
  const std::uint64_t sequence = reader.U64();
  const std::int64_t sealed_time_us = reader.I64();
  reader.Bytes(4 + 3 * 8 + 1);
  reader.Text();
  const std::string_view body = reader.Rest();
  if (!reader.ok()) return payload;
  const std::uint32_t crc32c = ChunkCrc32c(sequence, sealed_time_us, body);
  std::memcpy(payload.data() + 16, &crc32c, sizeof(crc32c));
  return payload;
}

// Records of: type (its high bits tell lies), u16 length, payload.
inline std::string HostileSegment(HostileBytes& input) {
  std::string segment;
  while (!input.at_end()) {
    const auto head = input.Take<std::uint8_t>();
    if (head == 0xff) break;  // the next segment
    const auto type = static_cast<agent::RecordType>(head & 0x0f);
    std::string payload(input.TakeBytes(input.Take<std::uint16_t>()));
    if (type == agent::RecordType::kFrame && (head & 0x40) == 0) {
      payload = MendFrame(std::move(payload));
    }
    std::string record = agent::EncodeRecord(type, payload);
    if ((head & 0x80) != 0) record[input.Take<std::uint16_t>() % record.size()] ^= 1;
    segment += record;
  }
  return segment;
}

}  // namespace stepwell::testing
