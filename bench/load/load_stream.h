// LoadStream: one gRPC stream with one writer that sends chunks as fast as it is allowed to and times
// their acks. Send is called from one thread; acks are read on a thread of its own.
//
//   LoadStream stream(address, trial, /*rank=*/0, definitions);
//   STEPWELL_RETURN_IF_ERROR(stream.Open());
//   STEPWELL_RETURN_IF_ERROR(stream.Send({body, sealed_time_us}));
//   STEPWELL_RETURN_IF_ERROR(stream.Finish(LoadStream::Ending::kClose));
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

// A serialised ChunkBody.
struct SealedBody {
  std::string bytes;
  std::int64_t sealed_time_us = 0;
};

class LoadStream {
 public:
  LoadStream(const std::string& address, const std::string& trial, int rank,
             std::vector<v1::Definition> definitions);
  ~LoadStream();

  // Opens the writer and defines its series.
  absl::Status Open();
  // Writes the next chunk; blocks while the credit is used up.
  absl::Status Send(const SealedBody& body);
  enum class Ending { kClose, kLeaveOpen };
  // All is acked.
  absl::Status AwaitAcks();
  // Waits until all is acked and, for kClose, until the Close is too.
  absl::Status Finish(Ending ending);
  // From the Write of a chunk to the arrival of its ack, in seconds.
  std::vector<double> TakeLatencies();

 private:
  void ReadAcks();

  const std::string trial_;
  const int rank_;
  const std::vector<v1::Definition> definitions_;
  const std::string writer_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::IngestService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::StreamChunksRequest, v1::StreamChunksResponse>>
      stream_;
  std::thread reader_;
  std::uint64_t next_sequence_ = 1;

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
