#include "tests/e2e/ingest_client.h"

#include <grpcpp/generic/generic_stub.h>

#include "absl/time/clock.h"
#include "base/crc32c.h"

namespace stepwell::testing {

IngestClient::IngestClient(const std::string& address) {
  grpc::ChannelArguments arguments;
  // Tests restart masters: do not wait long for the next try, and share no connection.
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  channel_ = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  ingest_ = v1::IngestService::NewStub(channel_);
  admin_ = v1::AdminService::NewStub(channel_);
}

grpc::Status IngestClient::Flush(absl::Duration wait) {
  const absl::Time deadline = absl::Now() + wait;
  while (true) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(deadline));
    v1::FlushResponse response;
    grpc::Status status = admin_->Flush(&context, {}, &response);
    if (status.error_code() != grpc::StatusCode::UNAVAILABLE || absl::Now() >= deadline) {
      return status;
    }
    absl::SleepFor(absl::Milliseconds(50));
  }
}

v1::GetStatusResponse IngestClient::GetStatus() {
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(20)));
  v1::GetStatusResponse response;
  admin_->GetStatus(&context, {}, &response);
  return response;
}

RawStream::RawStream(IngestClient& client) {
  context_.set_wait_for_ready(true);
  context_.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(10)));
  stream_ = client.ingest().StreamChunks(&context_);
  reader_ = Worker("answers", [this] { ReadAll(); });
}

RawStream::~RawStream() {
  Cancel();
  Finish();
}

void RawStream::ReadAll() {
  v1::StreamChunksResponse answer;
  while (stream_->Read(&answer)) {
    absl::MutexLock lock(&mu_);
    answers_.push_back(std::move(answer));
  }
  absl::MutexLock lock(&mu_);
  ended_ = true;
}

bool RawStream::Send(const v1::StreamChunksRequest& message) { return stream_->Write(message); }

bool RawStream::SendBytes(const std::string& bytes) {
  // An unknown field carries any bytes past the generated serialiser: the message *is* them.
  v1::StreamChunksRequest message;
  message.GetReflection()->MutableUnknownFields(&message)->Clear();
  google::protobuf::UnknownFieldSet* fields =
      message.GetReflection()->MutableUnknownFields(&message);
  if (!fields->ParseFromString(bytes)) return false;
  return stream_->Write(message);
}

std::optional<v1::StreamChunksResponse> RawStream::WaitFor(
    const std::function<bool(const v1::StreamChunksResponse&)>& fits, absl::Duration wait) {
  const absl::Time deadline = absl::Now() + wait;
  absl::MutexLock lock(&mu_);
  while (true) {
    while (!answers_.empty()) {
      v1::StreamChunksResponse answer = std::move(answers_.front());
      answers_.pop_front();
      if (fits(answer)) return answer;
    }
    const auto has_news = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return ended_ || !answers_.empty();
    };
    if (!mu_.AwaitWithDeadline(absl::Condition(&has_news), deadline)) return std::nullopt;
    if (answers_.empty() && ended_) return std::nullopt;
  }
}

std::optional<v1::Ack> RawStream::WaitAck(const Uuid& writer, std::uint64_t sequence,
                                          absl::Duration wait) {
  AskedAck& asked = asked_[writer];
  const bool is_known = sequence > asked.sequence && sequence <= asked.answer.committed_sequence();
  asked.sequence = sequence;
  if (is_known) return asked.answer;
  const auto answer = WaitFor(
      [&](const v1::StreamChunksResponse& message) {
        return message.has_ack() && message.ack().writer() == writer.ToBytes() &&
               message.ack().committed_sequence() >= sequence;
      },
      wait);
  if (!answer) return std::nullopt;
  asked.answer = answer->ack();
  return answer->ack();
}

grpc::Status RawStream::Finish() {
  if (finished_) return grpc::Status::OK;
  finished_ = true;
  stream_->WritesDone();
  reader_.Join();
  return stream_->Finish();
}

void RawStream::Cancel() {
  if (!finished_) context_.TryCancel();
}

v1::StreamChunksRequest OpenMessage(const OpenFields& fields) {
  v1::StreamChunksRequest message;
  v1::Open& open = *message.mutable_open();
  open.set_writer(fields.writer.ToBytes());
  open.set_trial_id(fields.trial_id);
  open.set_external_id(fields.external_id);
  open.set_rank(fields.rank);
  open.set_agent_id("test-machine");
  open.set_last_generation(fields.last_generation);
  return message;
}

v1::StreamChunksRequest DefinitionMessage(const Uuid& writer,
                                          const std::vector<DefinitionFields>& definitions) {
  v1::StreamChunksRequest message;
  message.mutable_definitions()->set_writer(writer.ToBytes());
  for (const DefinitionFields& fields : definitions) {
    v1::Definition& definition = *message.mutable_definitions()->add_definitions();
    definition.set_ref(fields.ref);
    definition.set_tick_group(fields.tick_group);
    definition.set_metric_group(fields.metric_group);
    definition.set_name(fields.name);
    definition.set_kind(v1::SERIES_KIND_GAUGE);
    definition.set_divisor(fields.divisor);
  }
  return message;
}

v1::StreamChunksRequest ChunkMessage(const Uuid& writer, std::uint64_t sequence, std::string body,
                                     std::int64_t sealed_time_us) {
  v1::StreamChunksRequest message;
  v1::Chunk& chunk = *message.mutable_chunk();
  chunk.set_writer(writer.ToBytes());
  chunk.set_sequence(sequence);
  chunk.set_sealed_time_us(sealed_time_us == 0 ? NowUs() : sealed_time_us);
  chunk.set_body(std::move(body));
  chunk.set_crc32c(ChunkCrc32c(chunk.sequence(), chunk.sealed_time_us(), chunk.body()));
  return message;
}

v1::StreamChunksRequest ChunkMessage(const Uuid& writer, std::uint64_t sequence,
                                     const v1::ChunkBody& body, std::int64_t sealed_time_us) {
  return ChunkMessage(writer, sequence, body.SerializeAsString(), sealed_time_us);
}

v1::StreamChunksRequest CloseMessage(const Uuid& writer, std::uint64_t final_sequence) {
  v1::StreamChunksRequest message;
  message.mutable_close()->set_writer(writer.ToBytes());
  message.mutable_close()->set_final_sequence(final_sequence);
  return message;
}

v1::ChunkBody OneColumn(std::uint32_t ref, std::int64_t first_time_us, std::int64_t step_us,
                        const std::vector<double>& values) {
  v1::ChunkBody body;
  v1::Table& table = *body.add_tables();
  table.set_tick_group(1);
  table.set_first_time_us(first_time_us);
  table.set_first_batch(-1);
  for (std::size_t i = 1; i < values.size(); ++i) table.add_time_deltas_us(step_us);
  v1::Column& column = *table.add_columns();
  column.set_ref(ref);
  for (const double value : values) column.add_doubles(value);
  return body;
}

std::int64_t NowUs() { return absl::ToUnixMicros(absl::Now()); }

}  // namespace stepwell::testing
