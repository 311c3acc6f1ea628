// LoadStream: one gRPC stream with one writer or many that sends chunks as fast as it is allowed to and
// times their acks. Send is called from one thread; acks are read on a thread of its own.
//
//   LoadStream stream(address, trial, {{.rank = 0, .definitions = definitions}});
//   STEPWELL_RETURN_IF_ERROR(stream.Open());
//   STEPWELL_RETURN_IF_ERROR(stream.Send({body, sealed_time_us}));
//   STEPWELL_RETURN_IF_ERROR(stream.Finish(LoadStream::Ending::kClose));
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "stepwell/v1/ingest.grpc.pb.h"

namespace stepwell::bench {

// A serialised ChunkBody.
struct SealedBody {
  std::string bytes;
  std::int64_t sealed_time_us = 0;
};

class LoadStream {
 public:
  struct Writer {
    // From 0; below 0 it is the sampler of a machine of its own, called bench-1, bench-2, ...
    int rank = 0;
    std::vector<v1::Definition> definitions;
  };

  // REQUIRES: writers is not empty.
  LoadStream(const std::string& address, const std::string& trial, std::vector<Writer> writers);
  LoadStream(const std::string& address, const std::string& trial, int rank,
             std::vector<v1::Definition> definitions)
      : LoadStream(address, trial, {Writer{rank, std::move(definitions)}}) {}
  ~LoadStream();

  // Opens the writers and defines their series.
  absl::Status Open();
  // Writes the next chunk of one writer; blocks while its credit is used up.
  absl::Status Send(const SealedBody& body, std::size_t writer = 0);
  // Says that the writer lives, which has nothing to send. Confined to Send's thread.
  absl::Status Beat(std::size_t writer = 0);
  enum class Ending { kClose, kLeaveOpen };
  // All is acked.
  absl::Status AwaitAcks();
  // Waits until all is acked and, for kClose, until the Closes are too.
  absl::Status Finish(Ending ending);
  // From the Write of a chunk to the arrival of its ack, in seconds.
  std::vector<double> TakeLatencies();
  // When the acks of a writer's chunks came, by sequence - 1, on Clock::Monotonic(), in seconds.
  std::vector<double> AckTimes(std::size_t writer = 0);

 private:
  struct Sent {
    double time = 0;
    std::int64_t bytes = 0;
    double acked_time = 0;
  };
  // What is under way of one writer.
  struct Window {
    std::uint64_t acked = 0;
    std::int64_t credit_bytes = 0;
    std::int64_t inflight_bytes = 0;
    bool closed = false;
    std::vector<Sent> sent;  // by sequence - 1
  };

  absl::Status OpenWriter(std::size_t writer);
  void ReadAcks();
  bool AllAckedLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  bool AllClosedLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);

  const std::string trial_;
  const std::vector<Writer> writers_;
  std::vector<std::string> ids_;  // of the writers
  absl::flat_hash_map<std::string, std::size_t> writer_of_;
  std::vector<std::uint64_t> next_sequences_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::IngestService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::StreamChunksRequest, v1::StreamChunksResponse>>
      stream_;
  std::thread reader_;

  absl::Mutex mu_;
  std::vector<Window> windows_ ABSL_GUARDED_BY(mu_);
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  std::string refusal_ ABSL_GUARDED_BY(mu_);
  std::vector<double> latencies_ ABSL_GUARDED_BY(mu_);
};

}  // namespace stepwell::bench
