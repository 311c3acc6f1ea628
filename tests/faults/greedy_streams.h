// GreedyStreams: clients of the wire contract that send large messages as fast as their streams take them, whatever their
// credit says: chunks, or definitions. Each on a connection of its own; one that ends is opened again, and goes on behind
// what was acked.
//
//   GreedyStreams streams(master.grpc_address(), {.stream_count = 256});
//   streams.Begin();                          // all are open, and have sent little
//   streams.LetGo();
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace stepwell::faults {

class GreedyStreams {
 public:
  struct Load {
    int stream_count = 1;
    std::string trial = "greedy";
    // Of each stream, beside the first small one.
    std::uint64_t chunk_count = 4;
    std::size_t chunk_samples = 1000;
    // Of a message; padding is read and passed over.
    std::size_t chunk_bytes = (1 << 20) - 1024;
    // Each sends one message of so many definitions before its chunks; 0 = of one, with its first chunk.
    int definition_count = 0;
    std::size_t definition_bytes = 2048;
    // Or of so many that say nothing, two bytes each.
    int empty_definition_count = 0;
  };

  GreedyStreams(const std::string& address, const Load& load);
  // Ends all.
  ~GreedyStreams();

  void LetGo();
  // All that was sent is acked, or each has had its first ack.
  bool done() const;
  bool has_begun() const;
  // Samples of acked chunks.
  std::int64_t acked_sample_count() const;
  // How often a stream ended that was not to.
  int break_count() const;
  std::string LastBreak() const;

 private:
  class Stream;
  const Load load_;
  std::vector<std::unique_ptr<Stream>> streams_;
};

}  // namespace stepwell::faults
