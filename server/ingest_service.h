// IngestService: the gRPC skin of ingest. Streams are read as raw bytes, so that a message that is
// not well-formed is answered instead of ending the stream for all of its writers. One thread per
// stream, "stream", handles its messages; answers are written by whoever has them.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/ingest_stream.h"
#include "server/message_rooms.h"
#include "server/read_admission.h"
#include "server/wire.h"
#include "stepwell/v1/ingest.grpc.pb.h"

namespace stepwell {

class IngestService final
    : public pb::IngestService::WithRawCallbackMethod_StreamChunks<pb::IngestService::Service> {
 public:
  struct Options {
    // Of them a token that may ingest nothing has half: only writers with tokens of their own write there. One that may has
    // no share: all agents of a cluster may show the same one, each on a stream of its machine.
    int streams_max = 256;
    // How long a unary call waits for the database when the client gave no deadline.
    absl::Duration write_wait_max = absl::Seconds(30);
  };

  // `context` and `rooms` outlive this.
  IngestService(Options options, const IngestContext& context, MessageRooms& rooms);
  // Waits for the streams' threads. REQUIRES: the server was shut down.
  ~IngestService() override;

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StreamChunks(
      grpc::CallbackServerContext* call) override;
  grpc::Status WriteChunks(grpc::ServerContext* call, const pb::WriteChunksRequest* request,
                           pb::WriteChunksResponse* response) override;

 private:
  friend class StreamReactor;
  void ThreadEnded();

  const Options options_;
  const IngestContext& context_;
  MessageRooms& rooms_;
  ReadAdmission streams_;
  absl::Mutex mu_;
  int thread_count_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace stepwell
