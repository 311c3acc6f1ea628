#include "tests/simulation/sim_stream.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace stepwell::simulation {
namespace {

// What gRPC and the kernel hold between two ends.
constexpr std::size_t kUnderWayMax = 24;

std::string What(const pb::StreamChunksRequest& message) {
  using Message = pb::StreamChunksRequest;
  switch (message.message_case()) {
    case Message::kOpen:
      return absl::StrCat("open, last ", message.open().last_sequence(), " acked ",
                          message.open().acked_sequence());
    case Message::kDefinitions:
      return absl::StrCat(message.definitions().definitions_size(), " definitions");
    case Message::kChunk:
      return absl::StrCat("chunk ", message.chunk().sequence());
    case Message::kGap:
      return absl::StrCat("gap ", message.gap().first_sequence(), "-",
                          message.gap().last_sequence(), " cause ", message.gap().cause(), " of ",
                          message.gap().sample_count());
    case Message::kHeartbeat:
      return "heartbeat";
    case Message::kClose:
      return absl::StrCat("close ", message.close().final_sequence());
    case Message::kCaptureReport:
      return "capture report";
    case Message::kCredential:
      return "credential";
    case Message::MESSAGE_NOT_SET:
      break;
  }
  return "nothing";
}

std::string What(const pb::StreamChunksResponse& message) {
  using Message = pb::StreamChunksResponse;
  switch (message.message_case()) {
    case Message::kOpened:
      return absl::StrCat("opened g", message.opened().generation(), " at ",
                          message.opened().committed_sequence());
    case Message::kAck:
      return absl::StrCat("ack ", message.ack().committed_sequence(), " credit ",
                          message.ack().credit_bytes(), message.ack().closed() ? " closed" : "");
    case Message::kRefused:
      return absl::StrCat("refused ", message.refused().reason());
    case Message::kDirective:
      return "directive";
    case Message::MESSAGE_NOT_SET:
      break;
  }
  return "nothing";
}

absl::string_view WriterOf(const pb::StreamChunksRequest& message) {
  if (message.has_chunk()) return message.chunk().writer();
  if (message.has_gap()) return message.gap().writer();
  if (message.has_open()) return message.open().writer();
  if (message.has_definitions()) return message.definitions().writer();
  if (message.has_heartbeat()) return message.heartbeat().writer();
  return message.close().writer();
}

absl::string_view WriterOf(const pb::StreamChunksResponse& message) {
  if (message.has_opened()) return message.opened().writer();
  if (message.has_ack()) return message.ack().writer();
  if (message.has_refused()) return message.refused().writer();
  return message.directive().writer();
}

// "3f2a: chunk 7"
template <typename Message>
std::string Text(const Message& message) {
  return absl::StrCat(absl::BytesToHexString(WriterOf(message).substr(0, 2)), ": ", What(message));
}

// What may be lost, and asked for again, on a connection that goes on.
bool IsItem(const pb::StreamChunksRequest& message) {
  return message.has_chunk() || message.has_gap();
}

}  // namespace

std::unique_ptr<SimStream> SimStream::Connect(SimAgent& agent, std::shared_ptr<SimMaster> master,
                                              Chance& chance, Trace& trace) {
  if (!agent.runs() || !master->serves()) return nullptr;
  auto stream = IngestStream::Create(master->context(), [] {});
  if (!stream.ok()) return nullptr;
  trace.Add(agent.name(), " connects to epoch ", master->epoch());
  agent.OnConnected(master->context().state.incarnation().ToBytes());
  return std::unique_ptr<SimStream>(
      new SimStream(agent, std::move(master), *std::move(stream), chance, trace));
}

SimStream::~SimStream() {
  if (!master_gone_ && !master_->killed()) stream_->Finish();
}

bool SimStream::Send() {
  if (agent_gone_ || !agent_.runs() || up_.size() >= kUnderWayMax) return false;
  auto message = agent_.Next();
  if (!message) return false;
  trace_.Add(agent_.name(), " sends ", Text(*message));
  up_.push_back(*std::move(message));
  return true;
}

bool SimStream::DeliverUp() {
  if (master_gone_ || stalled_) return false;
  if (!master_->serves() || !stream_->end_status().ok()) {
    EndAtMaster();
    return false;
  }
  if (up_.empty()) {
    // It reads the end, answers what it took, and goes.
    if (agent_gone_ && stream_->settled()) EndAtMaster();
    return false;
  }
  if (up_.size() > 1 && IsItem(up_[0]) && IsItem(up_[1]) && chance_.Of(disorder_.swapped)) {
    std::swap(up_[0], up_[1]);
  }
  const pb::StreamChunksRequest message = std::move(up_.front());
  up_.pop_front();
  if (IsItem(message) && chance_.Of(disorder_.lost)) {
    trace_.Add(agent_.name(), ": lost on the way: ", Text(message));
    return true;
  }
  trace_.Add("  ", agent_.name(), " > ", Text(message));
  stream_->Handle(message);
  if (IsItem(message) && chance_.Of(disorder_.repeated)) stream_->Handle(message);
  return true;
}

bool SimStream::TakeAnswer() {
  if (master_gone_ || down_.size() >= kUnderWayMax) return false;
  if (!master_->serves() || !stream_->end_status().ok()) {
    EndAtMaster();
    return false;
  }
  pb::StreamChunksResponse message;
  if (!stream_->board().TakeNext(message)) return false;
  down_.push_back(std::move(message));
  return true;
}

bool SimStream::DeliverDown() {
  if (agent_gone_ || stalled_) return false;
  if (down_.empty()) {
    if (master_gone_) CutByAgent();
    return false;
  }
  const pb::StreamChunksResponse message = std::move(down_.front());
  down_.pop_front();
  trace_.Add("  ", agent_.name(), " < ", Text(message));
  if (!agent_.OnMessage(message)) CutByAgent();
  return true;
}

void SimStream::CutByAgent() {
  if (std::exchange(agent_gone_, true)) return;
  trace_.Add(agent_.name(), " has no connection any more");
  agent_.OnDisconnected();
  down_.clear();
  up_.resize(chance_.Below(up_.size() + 1));
}

void SimStream::EndAtMaster() {
  master_gone_ = true;
  up_.clear();
  // What it had not written yet is gone.
  if (!master_->killed()) stream_->Finish();
}

}  // namespace stepwell::simulation
