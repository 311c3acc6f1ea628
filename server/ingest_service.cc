#include "server/ingest_service.h"

#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "base/stream_metadata.h"
#include "proto/request_bound.h"
#include "server/deadline_watch.h"
#include "server/grpc_access.h"
#include "server/grpc_deadline.h"
#include "server/grpc_error.h"
#include "server/limits.h"
#include "server/malformed.h"

namespace stepwell {

// What is read of a stream while its thread handles what came before: so much, or one message, or none while the queue fills
// up. A thread that is woken for each message is switched to for each; the next read is begun where the last one ended.
constexpr std::size_t kReadAheadBytes = 64 << 10;
// What a message takes beside its bytes, so that empty ones are bounded too: 64 of them.
constexpr std::size_t kReadAheadBytesOfMessage = 1 << 10;
// Of fewer bytes no more than kDefiningBuiltBytesMax can be built, for the dearest part takes two: nobody counts.
constexpr std::size_t kUncountedBytesMax = kDefiningBuiltBytesMax / kMessageBuiltBytes * 2;

// Whether a message may be built.
absl::Status CheckParts(grpc::ByteBuffer& input_untrusted) {
  if (input_untrusted.Length() <= kUncountedBytesMax) return absl::OkStatus();
  grpc::ProtoBufferReader reader(&input_untrusted);
  return CheckRequest(*pb::StreamChunksRequest::descriptor(), reader, kDefiningBuiltBytesMax);
}

// One stream. Made by gRPC's thread, used by its own, deleted at the end of that one. `writing_`
// keeps gRPC's rule of one write at a time, `reading_` that of one read.
class StreamReactor final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  StreamReactor(IngestService& service, grpc::CallbackServerContext* call, Caller caller,
                ReadAdmission::Ticket place)
      : service_(service),
        call_(call),
        caller_(std::move(caller)),
        place_(std::move(place)),
        link_(std::make_shared<Link>()) {
    link_->reactor = this;
    std::thread([this] { Run(); }).detach();  // counted and awaited by the service
  }

  void OnReadDone(bool ok) override {
    {
      absl::MutexLock lock(&mu_);
      input_ended_ = input_ended_ || !ok;
      if (ok) {
        read_bytes_ += read_.Length() + kReadAheadBytesOfMessage;
        inputs_.emplace_back().Swap(&read_);
      }
      reading_ = ok && read_bytes_ < kReadAheadBytes && !finishing_;
      if (!reading_) return;
      ++starting_read_count_;
    }
    StartRead(&read_);
    // This call ends before OnDone comes, whatever the read does.
    absl::MutexLock lock(&mu_);
    --starting_read_count_;
  }
  void OnWriteDone(bool ok) override {
    {
      absl::MutexLock lock(&mu_);
      writing_ = false;
      broken_ = broken_ || !ok;
    }
    Kick();
  }
  void OnCancel() override {
    std::shared_ptr<IngestStream> stream;
    {
      absl::MutexLock lock(&mu_);
      broken_ = true;
      stream = stream_;
    }
    // Wakes the thread, wherever the stream has slowed it down.
    if (stream != nullptr) stream->End(absl::CancelledError("the client has gone"));
  }
  void OnDone() override { done_.Notify(); }

 private:
  // Reaches the reactor while it lives, from threads that may be later than it.
  struct Link {
    absl::Mutex mu;
    StreamReactor* reactor ABSL_GUARDED_BY(mu) = nullptr;
  };

  void Run();
  void ReadAll();
  using Inputs = std::vector<grpc::ByteBuffer>;
  // Waits for messages; false at the end of them. Goes on reading where room was what lacked, or its caller's work.
  bool TakeInputs(Inputs& inputs);
  void HandleInput(grpc::ByteBuffer& input);
  bool QueueFillsUp() const;
  void Drain();
  // Starts the next write if there is something to write.
  void Kick();
  bool Broken() const {
    absl::MutexLock lock(&mu_);
    return broken_;
  }

  IngestService& service_;
  grpc::CallbackServerContext* const call_;
  const Caller caller_;
  const ReadAdmission::Ticket place_;
  const std::shared_ptr<Link> link_;
  std::shared_ptr<IngestStream> stream_;
  grpc::ByteBuffer read_;  // of the read under way
  grpc::ByteBuffer output_;
  pb::StreamChunksRequest request_;
  absl::Notification done_;
  mutable absl::Mutex mu_;
  // Read and not taken yet.
  Inputs inputs_ ABSL_GUARDED_BY(mu_);
  std::size_t read_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  bool reading_ ABSL_GUARDED_BY(mu_) = false;
  // A read may end, and begin the next one, before the call that began it has returned.
  int starting_read_count_ ABSL_GUARDED_BY(mu_) = 0;
  bool input_ended_ ABSL_GUARDED_BY(mu_) = false;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool finishing_ ABSL_GUARDED_BY(mu_) = false;
  bool broken_ ABSL_GUARDED_BY(mu_) = false;
  bool stream_ended_ ABSL_GUARDED_BY(mu_) = false;
};

void StreamReactor::Run() {
  pthread_setname_np(pthread_self(), "stream");
  const auto on_post = [link = link_] {
    absl::MutexLock lock(&link->mu);
    if (link->reactor != nullptr) link->reactor->Kick();
  };
  auto stream =
      IngestStream::Create(service_.context_, on_post, caller_, {.address = AddressOf(*call_)});
  absl::Status end = stream.status();
  if (stream.ok()) {
    // Before anything can be written: writing_ does not count it.
    call_->AddInitialMetadata(kIncarnationMetadata,
                              service_.context_.state.incarnation().ToBytes());
    StartSendInitialMetadata();
    {
      absl::MutexLock lock(&mu_);
      stream_ = *std::move(stream);
      stream_ended_ = !stream_->end_status().ok();  // before anyone could see it end here
    }
    ReadAll();
    Drain();
    end = stream_->end_status();
    stream_->Finish();
  }
  {
    // From here on nobody writes.
    absl::MutexLock lock(&mu_);
    finishing_ = true;
    const auto quiet = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return !writing_ && starting_read_count_ == 0;
    };
    if (!mu_.AwaitWithTimeout(absl::Condition(&quiet), absl::Seconds(2))) {
      // The client does not read: there is nothing to wait for.
      call_->TryCancel();
      mu_.Await(absl::Condition(&quiet));
    }
  }
  ServerBidiReactor::Finish(GrpcError(end));
  done_.WaitForNotification();
  {
    absl::MutexLock lock(&link_->mu);
    link_->reactor = nullptr;
  }
  IngestService& service = service_;
  delete this;
  service.ThreadEnded();
}

bool StreamReactor::TakeInputs(Inputs& inputs) {
  const auto has_news = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return !inputs_.empty() || input_ended_ || broken_ || stream_ended_;
  };
  inputs.clear();
  bool is_left_out = false;
  {
    absl::MutexLock lock(&mu_);
    is_left_out = !reading_ && !input_ended_ && inputs_.empty();
    reading_ = reading_ || is_left_out;
  }
  if (is_left_out) StartRead(&read_);
  bool is_large = false;
  {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(&has_news));
    if (stream_ended_ || inputs_.empty()) return false;
    inputs.swap(inputs_);
    is_large = read_bytes_ >= kReadAheadBytes;
    read_bytes_ = 0;
    if (reading_ || input_ended_) return true;
  }
  // The next one of each stream would be as much again while nothing of it can be taken.
  if (is_large && QueueFillsUp()) return true;
  {
    absl::MutexLock lock(&mu_);
    reading_ = true;
  }
  StartRead(&read_);
  return true;
}

bool StreamReactor::QueueFillsUp() const {
  const CommitQueue& queue = service_.context_.queue;
  return queue.bytes() >= queue.bytes_max() / 2;
}

void StreamReactor::ReadAll() {
  Inputs inputs;
  while (TakeInputs(inputs)) {
    for (grpc::ByteBuffer& input : inputs) {
      if (!stream_->end_status().ok()) return;
      HandleInput(input);
      input.Clear();
    }
  }
}

void StreamReactor::HandleInput(grpc::ByteBuffer& input) {
  const std::size_t bytes = input.Length();
  if (const absl::Status may = CheckParts(input); !may.ok()) {
    // Whose it is would be told by building it.
    const bool is_none = absl::IsInvalidArgument(may);
    input.Clear();
    return stream_->HandleMalformed(
        "", Invalid(is_none ? "MALFORMED" : "MESSAGE_PARTS", std::string(may.message())), bytes);
  }
  grpc::ByteBuffer copy = input;  // shares the slices; Deserialize empties its argument
  request_.Clear();
  const grpc::Status parsed =
      grpc::SerializationTraits<pb::StreamChunksRequest>::Deserialize(&copy, &request_);
  if (!parsed.ok()) {
    std::vector<grpc::Slice> slices;
    std::string flat;
    if (input.Dump(&slices).ok()) {
      for (const grpc::Slice& slice : slices) {
        flat.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
      }
    }
    const MalformedMessage malformed = DescribeMalformed(flat);
    return stream_->HandleMalformed(malformed.writer, malformed.complaint, bytes);
  }
  // It may wait long: once is enough.
  input.Clear();
  // A chunk that is too large is consumed like any other bad one.
  if (bytes > kMessageBytesMax && !request_.has_chunk()) {
    return stream_->HandleMalformed(
        "",
        Invalid("MESSAGE_BYTES", absl::StrCat("the message has ", bytes,
                                              " bytes, allowed are at most ", kMessageBytesMax)),
        bytes);
  }
  stream_->Handle(request_);
}

void StreamReactor::Drain() {
  // The client has sent all it wants to send: what it sent is still answered.
  while (!Broken() && stream_->end_status().ok() &&
         !stream_->WaitSettled(SteadyTime::Now() + absl::Milliseconds(200))) {
  }
  const auto written = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    // Of one that was ended nothing waits any more but what is being written: a client that takes nothing of it would keep
    // the stream, and its writers, for as long as it likes.
    return broken_ || stream_ended_ || (!writing_ && stream_->board().empty());
  };
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(&written));
}

void StreamReactor::Kick() {
  {
    absl::MutexLock lock(&mu_);
    // Who waits for messages is woken for this alone, not for each ack.
    stream_ended_ = stream_ended_ || (stream_ != nullptr && !stream_->end_status().ok());
    if (writing_ || finishing_ || broken_ || stream_ == nullptr) return;
    pb::StreamChunksResponse message;
    if (!stream_->board().TakeNext(message)) return;
    bool own = false;
    output_.Clear();
    grpc::SerializationTraits<pb::StreamChunksResponse>::Serialize(message, &output_, &own)
        .IgnoreError();
    writing_ = true;
  }
  StartWrite(&output_);
}

IngestService::~IngestService() {
  const auto none = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return thread_count_ == 0; };
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(&none));
}

void IngestService::ThreadEnded() {
  absl::MutexLock lock(&mu_);
  --thread_count_;
}

namespace {

// Ends a call that may not begin.
class RefusingReactor final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit RefusingReactor(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

grpc::Status NoPlace(int streams_max, bool has_share) {
  return GrpcError(absl::ResourceExhaustedError(absl::StrCat(
                       "this master serves ", streams_max, " streams, which is its limit",
                       has_share ? absl::StrCat(", of one token that may ingest nothing itself ",
                                                std::max(1, streams_max / 2))
                                 : "")),
                   {.reason = "STREAM_LIMIT", .retry_delay = absl::Seconds(5), .violations = {}});
}

SteadyTime DeadlineOf(const grpc::ServerContext& call, absl::Duration wait_max) {
  return std::min(CallDeadline(call), SteadyTime::Now() + wait_max);
}

absl::Status MayCall(RateLimits* rates, const RatePayer& payer) {
  return rates == nullptr ? absl::OkStatus() : rates->Take(RateKind::kCalls, payer, 1);
}

// A call would hold a thread while it waits: it is refused. Its samples, series and writers are counted as they come.
absl::Status MayWrite(RateLimits* rates, const RatePayer& payer, std::size_t bytes) {
  if (rates == nullptr) return absl::OkStatus();
  STEPWELL_RETURN_IF_ERROR(MayCall(rates, payer));
  for (const RateKind kind : {RateKind::kIngestSamples, RateKind::kSeries, RateKind::kOpens}) {
    STEPWELL_RETURN_IF_ERROR(rates->Take(kind, payer, 0));
  }
  return rates->Take(RateKind::kIngestBytes, payer, static_cast<double>(bytes));
}

}  // namespace

IngestService::IngestService(Options options, const IngestContext& context)
    : options_(options), context_(context), streams_(options.streams_max) {
  // protobuf tells stderr of each text that is not UTF-8: clients must not write our log.
  google::protobuf::SetLogHandler(nullptr);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* IngestService::StreamChunks(
    grpc::CallbackServerContext* call) {
  auto caller = CallerOf(context_.access, *call);
  if (!caller.ok()) return new RefusingReactor(GrpcError(caller.status()));
  // Before it costs a thread.
  const absl::Status may = MayCall(context_.rates, {AddressOf(*call), caller->get()});
  if (!may.ok()) return new RefusingReactor(GrpcError(may));
  const bool has_share = *caller != nullptr && !(*caller)->grants.IngestsAny();
  auto place = streams_.Enter(absl::ZeroDuration(), has_share ? PayerOf(*caller) : "");
  if (!place.ok()) return new RefusingReactor(NoPlace(options_.streams_max, has_share));
  {
    absl::MutexLock lock(&mu_);
    ++thread_count_;
  }
  return new StreamReactor(*this, call, *std::move(caller), *std::move(place));
}

grpc::Status IngestService::WriteChunks(grpc::ServerContext* call,
                                        const pb::WriteChunksRequest* request,
                                        pb::WriteChunksResponse* response) {
  const auto caller = CallerOf(context_.access, *call);
  if (!caller.ok()) return GrpcError(caller.status());
  const std::string address = AddressOf(*call);
  const std::size_t bytes = request->ByteSizeLong();
  // Also of what is refused below: it was read as well.
  const absl::Status may = MayWrite(context_.rates, {address, caller->get()}, bytes);
  if (!may.ok()) return GrpcError(may);
  if (bytes > static_cast<std::size_t>(kMessageBytesMax)) {
    return GrpcError(Invalid(
        "MESSAGE_BYTES",
        absl::StrCat("messages have ", bytes, " bytes, allowed are at most ", kMessageBytesMax)));
  }
  auto stream =
      IngestStream::Create(context_, [] {}, *caller, {.address = address, .is_slowed = false});
  if (!stream.ok()) return GrpcError(stream.status());
  pb::StreamChunksResponse answer;
  const auto take_answers = [&] {
    while ((*stream)->board().TakeNext(answer)) *response->add_messages() = std::move(answer);
  };
  const SteadyTime deadline = DeadlineOf(*call, options_.write_wait_max);
  // Handle waits for the database and for room in the queue.
  const DeadlineWatch watch(deadline, [&stream] {
    (*stream)->End(absl::DeadlineExceededError("not all was taken in time; send it again"));
  });
  for (const pb::StreamChunksRequest& message : request->messages()) {
    if (!(*stream)->end_status().ok()) break;
    (*stream)->Handle(message);
    // Acks wait until all is answered, so that there is one per writer.
    while ((*stream)->board().TakeMessage(answer)) *response->add_messages() = std::move(answer);
  }
  const bool settled = (*stream)->WaitSettled(deadline);
  take_answers();
  const absl::Status end = (*stream)->end_status();
  (*stream)->Finish();
  if (!end.ok()) return GrpcError(end);
  if (!settled) {
    return GrpcError(
        absl::UnavailableError("not all was committed in time; send it again"),
        {.reason = "NOT_COMMITTED", .retry_delay = absl::Seconds(1), .violations = {}});
  }
  return grpc::Status::OK;
}

}  // namespace stepwell
