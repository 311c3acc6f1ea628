// LoadStream: one gRPC stream with one writer that sends made-up chunks and times their acks.
// Send is called from one thread; acks are read on a thread of its own.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "stepwell/v1/ingest.grpc.pb.h"

namespace stepwell::bench {

// What a writer sends: one tick group with `series_count` columns of `tick_count` ticks per chunk.
struct ChunkShape {
  int series_count = 25;
  int tick_count = 40;
  std::int64_t tick_interval_us = 1'000'000;
};

class LoadStream {
 public:
  LoadStream(const std::string& address, const std::string& trial, int rank, ChunkShape shape);
  ~LoadStream();

  // Opens the writer and defines its series.
  absl::Status Open();
  // Writes the next chunk; blocks while the credit is used up.
  absl::Status Send();
  enum class Ending { kClose, kLeaveOpen };
  // Waits until all is acked and, for kClose, until the Close is too.
  absl::Status Finish(Ending ending);
  // From the Write of a chunk to the arrival of its ack, in seconds.
  std::vector<double> TakeLatencies();
  // Samples of all chunks that were sent.
  std::int64_t sample_count() const {
    return static_cast<std::int64_t>(next_sequence_ - 1) * shape_.series_count * shape_.tick_count;
  }

 private:
  void ReadAcks();
  std::string MakeBody();

  const ChunkShape shape_;
  const std::string trial_;
  const int rank_;
  const std::string writer_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::IngestService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::StreamChunksRequest, v1::StreamChunksResponse>>
      stream_;
  std::thread reader_;
  std::uint64_t next_sequence_ = 1;
  std::int64_t next_time_us_;
  std::uint64_t random_;
  std::vector<double> last_;

  absl::Mutex mu_;
  std::uint64_t acked_ ABSL_GUARDED_BY(mu_) = 0;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  std::string refusal_ ABSL_GUARDED_BY(mu_);
  std::int64_t credit_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  std::int64_t inflight_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  struct Sent {
    double time = 0;
    std::int64_t bytes = 0;
  };
  std::vector<Sent> sent_ ABSL_GUARDED_BY(mu_);  // by sequence - 1
  std::vector<double> latencies_ ABSL_GUARDED_BY(mu_);
};

}  // namespace stepwell::bench
