// IngestClient: the wire contract by hand, for tests that must say exactly what is sent. Not an
// agent: nothing is retried, nothing is hidden.
//
//   IngestClient client(master.grpc());
//   RawStream stream(client);
//   stream.Send(OpenMessage({.writer = writer, .external_id = "t"}));
//   const auto opened = stream.WaitFor([](const auto& answer) { return answer.has_opened(); });
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/uuid.h"
#include "base/worker.h"
#include "stepwell/v1/admin.grpc.pb.h"
#include "stepwell/v1/ingest.grpc.pb.h"

namespace stepwell::testing {

class IngestClient {
 public:
  explicit IngestClient(const std::string& address);

  v1::IngestService::Stub& ingest() { return *ingest_; }
  v1::AdminService::Stub& admin() { return *admin_; }
  std::shared_ptr<grpc::Channel> channel() const { return channel_; }
  // Folds everything; the gRPC status of the last try within `wait`, which is spent on
  // UNAVAILABLE only.
  grpc::Status Flush(absl::Duration wait = absl::Seconds(30));
  v1::GetStatusResponse GetStatus();

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::IngestService::Stub> ingest_;
  std::unique_ptr<v1::AdminService::Stub> admin_;
};

// One stream; answers are gathered as they come.
class RawStream {
 public:
  explicit RawStream(IngestClient& client);
  ~RawStream();

  // False when the stream is broken.
  bool Send(const v1::StreamChunksRequest& message);
  // Bytes that need not be a message.
  bool SendBytes(const std::string& bytes);
  // The first answer not yet taken that fits; those before it are dropped. Nothing at the end of
  // `wait`, or of the stream.
  std::optional<v1::StreamChunksResponse> WaitFor(
      const std::function<bool(const v1::StreamChunksResponse&)>& fits,
      absl::Duration wait = absl::Seconds(20));
  std::optional<v1::StreamChunksResponse> Next(absl::Duration wait = absl::Seconds(20)) {
    return WaitFor([](const auto&) { return true; }, wait);
  }
  // Acked up to `sequence`, at least. An ack is cumulative: one that was taken for an earlier sequence, and says more, is the
  // answer for what it says.
  std::optional<v1::Ack> WaitAck(const Uuid& writer, std::uint64_t sequence,
                                 absl::Duration wait = absl::Seconds(20));
  // Half-closes, reads the rest, returns the stream's status.
  grpc::Status Finish();
  void Cancel();

 private:
  // What was waited for last, and what came.
  struct AskedAck {
    std::uint64_t sequence = 0;
    v1::Ack answer = {};
  };
  void ReadAll();

  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::StreamChunksRequest, v1::StreamChunksResponse>>
      stream_;
  absl::Mutex mu_;
  std::deque<v1::StreamChunksResponse> answers_ ABSL_GUARDED_BY(mu_);
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  bool finished_ = false;
  std::map<Uuid, AskedAck> asked_;
  Worker reader_;
};

struct OpenFields {
  Uuid writer;
  std::string external_id = {};
  std::int64_t trial_id = 0;
  int rank = 0;
  std::uint64_t last_generation = 0;
};
v1::StreamChunksRequest OpenMessage(const OpenFields& fields);

struct DefinitionFields {
  std::uint32_t ref = 1;
  std::uint32_t tick_group = 1;
  std::string metric_group = "test";
  std::string name = "value";
  std::uint64_t divisor = 0;
};
v1::StreamChunksRequest DefinitionMessage(const Uuid& writer,
                                          const std::vector<DefinitionFields>& definitions);

// With the right checksum.
v1::StreamChunksRequest ChunkMessage(const Uuid& writer, std::uint64_t sequence,
                                     const v1::ChunkBody& body, std::int64_t sealed_time_us = 0);
v1::StreamChunksRequest ChunkMessage(const Uuid& writer, std::uint64_t sequence, std::string body,
                                     std::int64_t sealed_time_us = 0);
v1::StreamChunksRequest CloseMessage(const Uuid& writer, std::uint64_t final_sequence);

// One table of one column: values at first_time_us, + step_us, ...
v1::ChunkBody OneColumn(std::uint32_t ref, std::int64_t first_time_us, std::int64_t step_us,
                        const std::vector<double>& values);
std::int64_t NowUs();

}  // namespace stepwell::testing
