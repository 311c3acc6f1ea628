// RawConnection: one stream of a fault_raw_writer to one master. A thread of its own reads the answers; the rest is
// confined to the thread that made it.
//
//   RawConnection connection("127.0.0.1:4711", RawConnection::Refusals::kEndIt);
//   connection.Write(open);
//   connection.WaitForNews(milliseconds(20));
//   if (connection.state().opened_count > 0) ...
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "stepwell/v1/ingest.grpc.pb.h"

namespace stepwell::faults {

class RawConnection {
 public:
  // What a refusal of one message means to this client. A terminal one always ends it.
  enum class Refusals {
    kEndIt,  // a client in order is refused nothing
    kCount,  // it asked for it
  };
  struct State {
    int opened_count = 0;
    v1::Opened opened;  // the newest
    std::uint64_t committed = 0;
    std::int64_t credit_bytes = 0;
    bool closed = false;
    // Ended, or refused.
    bool broken = false;
    std::string why;
    // Of single messages, and the sequence that the newest of them wants; 0 = it named none.
    int refused_count = 0;
    std::uint64_t expected = 0;
    std::set<std::string> refused_reasons = {};
  };

  RawConnection(const std::string& server, Refusals refusals);
  // Cancels.
  ~RawConnection();
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  State state();
  // Until something came, at most `patience`.
  void WaitForNews(std::chrono::milliseconds patience);
  bool Write(const v1::StreamChunksRequest& message) { return stream_->Write(message); }

 private:
  void Read();
  void TakeLocked(const v1::StreamChunksResponse& message);
  void TakeRefusedLocked(const v1::Refused& refused);

  const Refusals refusals_;
  grpc::ClientContext context_;
  std::unique_ptr<v1::IngestService::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::StreamChunksRequest, v1::StreamChunksResponse>>
      stream_;
  std::mutex mu_;
  std::condition_variable changed_;
  // Guarded by mu_.
  State state_;
  bool news_ = false;
  std::thread reader_;
};

}  // namespace stepwell::faults
