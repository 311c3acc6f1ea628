#include "tests/faults/lying_master.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "stepwell/v1/ingest.grpc.pb.h"

namespace stepwell::faults {
namespace {

constexpr std::int64_t kCreditBytes = 8 << 20;
// Beyond what was sent.
constexpr std::uint64_t kLie = 1000;

}  // namespace

class LyingMaster::Service final : public v1::IngestService::Service {
 public:
  Service() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    STEPWELL_CHECK(server_ != nullptr && port_ != 0);
  }
  ~Service() override { server_->Shutdown(std::chrono::system_clock::now()); }

  int port() const { return port_; }
  int lie_count() const { return lie_count_; }

  grpc::Status StreamChunks(grpc::ServerContext*,
                            grpc::ServerReaderWriter<v1::StreamChunksResponse,
                                                     v1::StreamChunksRequest>* stream) override {
    v1::StreamChunksRequest message;
    while (stream->Read(&message)) {
      v1::StreamChunksResponse answer;
      if (message.has_open()) {
        Open(message.open(), *answer.mutable_opened());
      } else if (message.has_chunk()) {
        answer.mutable_ack()->set_writer(message.chunk().writer());
        answer.mutable_ack()->set_committed_sequence(message.chunk().sequence() + kLie);
        answer.mutable_ack()->set_credit_bytes(kCreditBytes);
        ++lie_count_;
      } else {
        continue;
      }
      if (!stream->Write(answer)) break;
    }
    return grpc::Status::OK;
  }

 private:
  static void Open(const v1::Open& open, v1::Opened& opened) {
    opened.set_writer(open.writer());
    opened.set_trial_id(1);
    opened.set_writer_no(1);
    opened.set_attempt(1);
    opened.set_generation(open.last_generation() + 1);
    opened.set_credit_bytes(kCreditBytes);
    opened.set_incarnation(std::string(16, 'l'));
    v1::ServerLimits& limits = *opened.mutable_limits();
    limits.set_chunk_bytes_max(1 << 20);
    limits.set_chunk_samples_max(1 << 20);
    limits.set_series_per_writer_max(1000);
    limits.set_labels_per_series_max(32);
    limits.set_label_name_bytes_max(128);
    limits.set_label_value_bytes_max(1024);
    limits.set_metric_name_bytes_max(256);
    limits.set_message_bytes_max(4 << 20);
    limits.set_writers_per_stream_max(256);
    limits.set_heartbeat_seconds_max(60);
  }

  std::atomic<int> lie_count_{0};
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

LyingMaster::LyingMaster() : service_(std::make_unique<Service>()) {}
LyingMaster::~LyingMaster() = default;

std::string LyingMaster::address() const { return absl::StrCat("127.0.0.1:", service_->port()); }
int LyingMaster::lie_count() const { return service_->lie_count(); }

}  // namespace stepwell::faults
