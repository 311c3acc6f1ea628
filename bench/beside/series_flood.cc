#include "bench/beside/series_flood.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdio>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/uuid.h"
#include "stepwell/v1/ingest.grpc.pb.h"

namespace stepwell::bench {
namespace {

constexpr int kStreams = 8;
constexpr int kSeriesPerWriter = 10'000;
constexpr int kWritersThatFit = 20;

class EightStreams final : public SeriesFlood {
 public:
  EightStreams(const std::string& address, std::string trial, int message_definitions)
      : trial_(std::move(trial)), message_definitions_(message_definitions) {
    for (int i = 0; i < kStreams; ++i) {
      threads_.emplace_back([this, address] { Flood(address); });
    }
  }
  ~EightStreams() override { End().IgnoreError(); }

  bool is_full() const override { return refused_ > 0; }

  absl::Status End() override {
    if (threads_.empty()) return absl::OkStatus();
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    std::fprintf(stderr, "flood: %d writers of 10,000 new series each, %d refused, %d lost\n",
                 done_.load(), refused_.load(), lost_.load());
    if (lost_ > 0 || done_ == 0) return absl::InternalError("a flood of series got no answer");
    if (done_ > kWritersThatFit && refused_ < done_ - kWritersThatFit) {
      return absl::InternalError("series beyond the limit were not refused");
    }
    return absl::OkStatus();
  }

 private:
  void Flood(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto stub = v1::IngestService::NewStub(
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
    grpc::ClientContext context;
    const auto stream = stub->StreamChunks(&context);
    while (!stop_) {
      if (!DefineAndClose(*stream)) {
        ++lost_;
        break;
      }
    }
    context.TryCancel();
    (void)stream->Finish();
  }

  // One writer's life.
  bool DefineAndClose(
      grpc::ClientReaderWriter<v1::StreamChunksRequest, v1::StreamChunksResponse>& stream) {
    const int number = next_writer_++;
    const std::string writer = Uuid::Random().ToBytes();
    v1::StreamChunksRequest opening;
    v1::Open& open = *opening.mutable_open();
    open.set_writer(writer);
    open.set_external_id(trial_);
    open.set_attempt_key("bench");
    open.set_agent_id("flood");
    open.set_rank(number);
    open.set_sent_time_us(absl::ToUnixMicros(absl::Now()));
    if (!stream.Write(opening)) return false;
    for (int i = 0; i < kSeriesPerWriter; i += message_definitions_) {
      if (!stream.Write(Defining(writer, i))) return false;
    }
    v1::StreamChunksRequest closing;
    closing.mutable_close()->set_writer(writer);
    if (!stream.Write(closing)) return false;
    v1::StreamChunksResponse answer;
    bool is_refused = false;
    while (stream.Read(&answer)) {
      if (answer.has_refused()) {
        if (answer.refused().code() != grpc::StatusCode::RESOURCE_EXHAUSTED) return false;
        if (!is_refused) ++refused_;
        is_refused = true;
      }
      if (answer.has_ack() && answer.ack().closed()) {
        ++done_;
        return true;
      }
    }
    return false;
  }

  v1::StreamChunksRequest Defining(const std::string& writer, int begin) const {
    v1::StreamChunksRequest defining;
    defining.mutable_definitions()->set_writer(writer);
    for (int i = begin; i < begin + message_definitions_; ++i) {
      v1::Definition& definition = *defining.mutable_definitions()->add_definitions();
      definition.set_ref(static_cast<std::uint32_t>(i + 1));
      definition.set_tick_group(1);
      definition.set_metric_group("flood");
      definition.set_name(absl::StrCat("series_", i));
      definition.set_kind(v1::SERIES_KIND_GAUGE);
    }
    return defining;
  }

  const std::string trial_;
  const int message_definitions_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> next_writer_ = 0;
  std::atomic<int> done_ = 0;
  std::atomic<int> refused_ = 0;
  std::atomic<int> lost_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<SeriesFlood> StartSeriesFlood(const std::string& address, const std::string& trial,
                                              int message_definitions) {
  return std::make_unique<EightStreams>(address, trial, message_definitions);
}

}  // namespace stepwell::bench
