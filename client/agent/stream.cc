#include "client/agent/stream.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <utility>

#include "base/log.h"
#include "base/stream_metadata.h"
#include "base/tls/tls_trouble.h"
#include "client/agent/clock_calls.h"
#include "proto/retry_delay.h"
#include "stepwell/v1/ingest.grpc.pb.h"

namespace stepwell::agent {

struct Stream::Call {
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<pb::StreamChunksRequest, pb::StreamChunksResponse>>
      stream;
  std::atomic<bool> broken{false};
  std::atomic<bool> answered{false};
  // Clock::Monotonic of the last message, or of when none was due.
  std::atomic<std::int64_t> heard_ns{0};
};

std::shared_ptr<grpc::ChannelCredentials> MasterCredentials(TlsReload* tls,
                                                            const std::string& token) {
  if (tls == nullptr) return grpc::InsecureChannelCredentials();
  const std::shared_ptr<const TlsMaterial> own = tls->Current();
  auto shown = grpc::SslCredentials({own->ca_pem, own->key_pem, own->cert_pem});
  if (token.empty()) return shown;
  return grpc::CompositeChannelCredentials(shown, grpc::AccessTokenCredentials(token));
}

namespace {

std::shared_ptr<grpc::Channel> Connect(const Stream::Options& options, const std::string& token) {
  grpc::ChannelArguments arguments;
  // Waiting between tries is ours: a channel of its own each time starts without gRPC's backoff.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 5000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  const auto milliseconds = [](absl::Duration duration) {
    return static_cast<int>(absl::ToInt64Milliseconds(duration));
  };
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, milliseconds(options.ping_interval));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, milliseconds(options.ping_timeout));
  // What comes in are acks of some bytes: asking how large a window they want costs more than they do.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  // Otherwise only two go while nothing else does.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Said, not guessed: "unix:1" is a host and its port as well.
  return grpc::CreateCustomChannel("dns:///" + options.server,
                                   MasterCredentials(options.tls.get(), token), arguments);
}

// Whatever a master says: it may have been set right, or be another one, by then.
constexpr absl::Duration kAskedWaitMax = absl::Minutes(5);

// How long the end of a call that cannot be written to any more may take to come.
constexpr absl::Duration kLastWordWait = absl::Seconds(1);

// What a person needs of gRPC's words, which tell each address first: the last cause.
std::string CauseOf(const std::string& message) {
  constexpr std::size_t kCauseBytesMax = 200;
  const std::size_t colon = message.rfind(": ");
  return message.substr(colon == std::string::npos ? 0 : colon + 2, kCauseBytesMax);
}

}  // namespace

Stream::Stream(Options options, Sender& sender, const Clock& clock, std::function<void()> on_answer)
    : options_(std::move(options)),
      sender_(sender),
      clock_(clock),
      on_answer_(std::move(on_answer)),
      reconnect_(options_.reconnect, clock.Monotonic()) {}

void Stream::Start() {
  worker_ = Worker("agent-send", [this] { Run(); });
}

void Stream::Wake() {
  absl::MutexLock lock(&mu_);
  work_ = true;
}

// Not the send thread's: a Write that finds the window full returns when the master reads, or never.
void Stream::Tend() {
  absl::Duration silence;
  {
    absl::MutexLock lock(&mu_);
    if (call_ == nullptr) return;
    const absl::Duration now = clock_.Monotonic();
    silence = now - absl::Nanoseconds(call_->heard_ns.load());
    if (silence <= options_.silence_max) return;
    call_->heard_ns = absl::ToInt64Nanoseconds(now);  // said once
    call_->context.TryCancel();
  }
  log::Warning("master_silent",
               {{"server", options_.server}, {"seconds", absl::ToInt64Seconds(silence)}});
}

void Stream::Stop() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    if (call_ != nullptr) call_->context.TryCancel();
  }
  worker_.Join();
}

void Stream::Run() {
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      if (stopping_) return;
    }
    if (RunCall()) reconnect_.OnAnswered(clock_.Monotonic());
    absl::MutexLock lock(&mu_);
    // A master that says when to come again is there, and knows. It says the same to many: never all at one time.
    const absl::Duration asked = std::min(std::exchange(asked_wait_, {}), kAskedWaitMax);
    const absl::Duration own = reconnect_.Next(clock_.Monotonic());
    mu_.AwaitWithTimeout(absl::Condition(&stopping_),
                         std::max(own, asked + std::min(own, asked / 4)));
  }
}

bool Stream::RunCall() {
  const std::string token = options_.token();
  const std::shared_ptr<grpc::Channel> channel = Connect(options_, token);
  const std::unique_ptr<pb::IngestService::Stub> stub = pb::IngestService::NewStub(channel);
  ClockCalls clocks(channel, sender_.clock_offset(), clock_);
  // The connection shows the agent's own token where it has one, else nothing.
  const bool shows_own = options_.tls != nullptr && !token.empty();
  const auto shown = [&] { return shows_own ? std::string() : sender_.TakenToken(); };
  Call call;
  call.heard_ns = absl::ToInt64Nanoseconds(clock_.Monotonic());
  {
    absl::MutexLock lock(&mu_);
    if (stopping_) return false;
    call_ = &call;
  }
  call.stream = stub->StreamChunks(&call.context);
  call.heard_ns = absl::ToInt64Nanoseconds(clock_.Monotonic());
  sender_.OnConnected();
  {
    Worker receiver("agent-receive", [&] { Receive(call); });
    SendUntilBroken(call, [&] { clocks.Tend(shown); });
    {
      // A master that ends the call says why, and when to come again: not to be cut off.
      const auto is_over = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
        return stopping_ || call.broken.load();
      };
      absl::MutexLock lock(&mu_);
      mu_.AwaitWithTimeout(absl::Condition(&is_over), kLastWordWait);
    }
    if (!call.broken) call.context.TryCancel();
  }
  const grpc::Status status = call.stream->Finish();
  asked_wait_ = RetryDelayIn(status.error_details()).value_or(absl::ZeroDuration());
  {
    absl::MutexLock lock(&mu_);
    call_ = nullptr;
    if (stopping_) return call.answered;
  }
  sender_.OnDisconnected();
  SetTrouble(TroubleOf(status, call));
  // One line a minute: a master that is down for the night would fill the log.
  const absl::Duration now = clock_.Monotonic();
  if (now - failure_logged_ >= absl::Seconds(60)) {
    failure_logged_ = now;
    log::Warning("stream_broken", {{"server", options_.server},
                                   {"code", static_cast<int>(status.error_code())},
                                   {"message", status.error_message()},
                                   {"trouble", trouble()}});
  }
  return call.answered;
}

std::string Stream::TroubleOf(const grpc::Status& status, const Call& call) {
  if (status.error_message().empty()) return "the connection ended";
  std::string cause = CauseOf(status.error_message());
  // A refused connection says it all, and a master that answered took what it was shown.
  if (call.answered || status.error_code() != grpc::StatusCode::UNAVAILABLE ||
      cause.find("refused") != std::string::npos) {
    tls_trouble_.clear();
    return cause;
  }
  // One look a minute, on a connection of its own, while it goes on.
  if (const absl::Duration now = clock_.Monotonic(); now - tls_looked_ >= absl::Seconds(60)) {
    tls_looked_ = now;
    const auto own = options_.tls == nullptr ? nullptr : options_.tls->Current();
    tls_trouble_ = TlsTrouble(options_.server, own == nullptr ? TlsMaterial() : *own);
  }
  return tls_trouble_.empty() ? cause : tls_trouble_;
}

void Stream::SetTrouble(std::string trouble) {
  absl::MutexLock lock(&mu_);
  trouble_ = std::move(trouble);
}

std::string Stream::trouble() const {
  absl::MutexLock lock(&mu_);
  return trouble_;
}

void Stream::SendUntilBroken(Call& call, const std::function<void()>& tend_clock) {
  while (!IsOver(call)) {
    if (!SendRun(call)) return;
    if (call.answered) tend_clock();
    WaitForWork();
    // Silence counts only where there is something to be said.
    if (!sender_.awaits_answer()) call.heard_ns = absl::ToInt64Nanoseconds(clock_.Monotonic());
  }
}

bool Stream::IsOver(const Call& call) {
  absl::MutexLock lock(&mu_);
  return stopping_ || call.broken;
}

// Each frame interval brings a message of every rank: a packet of its own for each would cost more
// than all else that is done with it.
bool Stream::SendRun(Call& call) {
  std::optional<pb::StreamChunksRequest> message = sender_.Next(clock_.Monotonic());
  while (message && !IsOver(call)) {
    std::optional<pb::StreamChunksRequest> next = sender_.Next(clock_.Monotonic());
    if (!Write(call, *message, /*is_last=*/!next)) return false;
    message = std::move(next);
  }
  return true;
}

bool Stream::Write(Call& call, const pb::StreamChunksRequest& message, bool is_last) {
  grpc::WriteOptions options;
  // An Open is timed.
  if (message.has_open()) {
    sender_.clock_offset().OnSent(message.open().writer(), clock_.Monotonic());
  } else if (!is_last) {
    options.set_buffer_hint();
  }
  return call.stream->Write(message, options);
}

void Stream::WaitForWork() {
  // Well within what counts as silence, for an idle stream is none.
  const absl::Duration patience = std::min(absl::Seconds(1), options_.silence_max / 4);
  absl::MutexLock lock(&mu_);
  mu_.AwaitWithTimeout(absl::Condition(&work_), patience);
  work_ = false;
}

void Stream::ReceiveIncarnation(Call& call) {
  call.stream->WaitForInitialMetadata();
  const auto& metadata = call.context.GetServerInitialMetadata();
  const auto found = metadata.find(kIncarnationMetadata);
  if (found == metadata.end()) return;  // an older master, or none
  SetTrouble("");
  sender_.OnMasterSeen({{found->second.data(), found->second.size()}, /*behind=*/false});
  Wake();
}

void Stream::Receive(Call& call) {
  ReceiveIncarnation(call);
  pb::StreamChunksResponse message;
  while (call.stream->Read(&message)) {
    call.heard_ns = absl::ToInt64Nanoseconds(clock_.Monotonic());
    if (!call.answered.exchange(true)) SetTrouble("");
    if (message.has_opened()) {
      sender_.clock_offset().OnAnswered(message.opened().writer(),
                                        absl::FromUnixMicros(message.opened().server_time_us()),
                                        clock_.Monotonic());
    }
    // Answers come far more often than there is something to send.
    switch (sender_.OnMessage(message, clock_.Monotonic())) {
      case Sender::Then::kGiveUp:
        call.context.TryCancel();
        break;
      case Sender::Then::kGoOn:
        break;
      case Sender::Then::kMaySend:
        Wake();
        break;
    }
    on_answer_();
  }
  call.broken = true;
  Wake();
}

}  // namespace stepwell::agent
