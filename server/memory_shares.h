// MemoryShares: what each part of a master may take of --memory-bytes, so that all of them together stay below it. What an
// option names is taken as named; the others grow with the limit, and shrink where what is named leaves them less. A core.
//
//   STEPWELL_ASSIGN_OR_RETURN(const MemoryShares shares, DivideMemory({.memory_bytes = options.memory_bytes}));
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace stepwell {

inline constexpr std::int64_t kMemoryBytesMin = std::int64_t{512} << 20;
inline constexpr std::int64_t kMemoryBytesMax = std::int64_t{1} << 40;

// 0 = its share.
struct MemoryAsked {
  std::int64_t memory_bytes = std::int64_t{1} << 30;
  std::int64_t queue_bytes = 0;
  std::int64_t fold_bytes = 0;
  std::int64_t latest_bytes = 0;
  std::int64_t follow_bytes = 0;
  std::int64_t streams_max = 256;
};

struct MemoryShares {
  // What a share is for.
  enum Part {
    kBase,     // the program itself, its tables, its threads, PostgreSQL's library
    kStreams,  // of each stream its thread, its call, its small messages
    kStore,  // the commit group in hand with its rows and its copy for the wire, a slice that is folded or merged
    kKept,   // what malloc keeps between blocks
    kWindows,      // gRPC: what clients may send of a stream before it is read
    kMessages,     // gRPC: large messages that were read and are not parsed yet
    kChunks,       // chunks that are parsed and decoded
    kDefinitions,  // definitions that are parsed, checked, numbered
    kQueue,        // chunks that wait for their commit
    kUnfolded,     // committed samples that wait for their fold
    kCharts,       // what reads remember
    kLists,        // lists of series that reads hold
    kLatest,       // newest values
    kFollowed,     // folded samples for those who follow
    kAnswers,      // HTTP: answers that wait for their clients
    kBodies,       // HTTP: bodies that come or wait
  };
  static constexpr std::size_t kPartCount = kBodies + 1;

  std::int64_t limit_bytes = 0;
  std::array<std::int64_t, kPartCount> bytes = {};
  // Of the unfolded: at the first a fold begins before its time, at the second nobody has credit, at all of it nothing is
  // committed.
  std::int64_t fold_bytes = 0;
  std::int64_t credit_bytes() const { return bytes[kUnfolded] / 4 * 3; }
  // Of a stream, as gRPC is told.
  std::int64_t window_bytes = 0;
  // What gRPC may hold before it ends calls, the last resort: a read that is under way cannot be taken back, and the first
  // large message of each stream comes unasked.
  std::int64_t grpc_bytes() const { return limit_bytes / 2; }

  std::int64_t of(Part part) const { return bytes[part]; }
  // Never more than limit_bytes.
  std::int64_t Sum() const;
};

// kInvalidArgument where what is named leaves the rest too little: which options, and what is allowed with them.
// REQUIRES: kMemoryBytesMin <= memory_bytes.
absl::StatusOr<MemoryShares> DivideMemory(const MemoryAsked& asked);

}  // namespace stepwell
