#include "server/ingest_service.h"

#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/failpoint.h"
#include "base/steady_time.h"
#include "base/stream_metadata.h"
#include "server/grpc_access.h"
#include "server/grpc_error.h"
#include "server/limits.h"
#include "server/malformed.h"
#include "server/message_need.h"

namespace stepwell {

// What is read of a stream while its thread handles what came before: so much of small ones, or none while the queue fills up;
// behind a large one nothing (message_rooms.h). A thread that is woken for each message is switched to for each; the next read
// is begun where the last one ended.
constexpr std::size_t kReadAheadBytes = 64 << 10;
// A read cannot be taken back. One that has brought nothing for so long gives its room to others: its client has nothing to
// send.
constexpr absl::Duration kIdleRead = absl::Milliseconds(250);
// What a message takes beside its bytes, so that empty ones are bounded too: 64 of them.
constexpr std::size_t kReadAheadBytesOfMessage = 1 << 10;

namespace {

// Beyond it nobody looks for the writer and the field: that would build all of it, which may be many times as much.
constexpr std::size_t kDescribedBytesMax = 512 << 10;

MalformedMessage Describe(const grpc::ByteBuffer& message) {
  if (message.Length() > kDescribedBytesMax) {
    return {"", Invalid("MALFORMED",
                        "the message is no serialised StreamChunksRequest, or a text in it is not "
                        "UTF-8")};
  }
  std::vector<grpc::Slice> slices;
  std::string flat;
  if (message.Dump(&slices).ok()) {
    for (const grpc::Slice& slice : slices) {
      flat.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
  }
  return DescribeMalformed(flat);
}

}  // namespace

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
        rooms_(service.rooms_),
        link_(std::make_shared<Link>()) {
    link_->reactor = this;
    std::thread([this] { Run(); }).detach();  // counted and awaited by the service
  }

  void OnReadDone(bool ok) override {
    {
      absl::MutexLock lock(&mu_);
      input_ended_ = input_ended_ || !ok;
      if (ok) {
        last_bytes_ = read_.Length();
        read_bytes_ += last_bytes_ + kReadAheadBytesOfMessage;
        Input& input = inputs_.emplace_back();
        input.message.Swap(&read_);
        // One that comes as a surprise may have others before it, which wait for whatever they do.
        if (last_bytes_ >= kReadAheadBytes) {
          input.MoveTo(reading_room_ != nullptr ? *reading_room_ : rooms_.held);
        }
      }
      reading_place_ = {};
      reading_room_ = nullptr;
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
    STEPWELL_FAILPOINT("ack_written");
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
  struct Input {
    grpc::ByteBuffer message;
    MemoryRoom::Place place = {};  // of a large one, until it is parsed
    MemoryRoom* room = nullptr;    // that it is of

    // It is there whether there is room or not.
    void MoveTo(MemoryRoom& other) {
      if (room == &other) return;
      place = other.Count(static_cast<std::int64_t>(message.Length()));
      room = &other;
    }
  };
  using Inputs = std::vector<Input>;
  // Waits for messages; false at the end of them. Goes on reading where room was what lacked, or its caller's work.
  bool TakeInputs(Inputs& inputs);
  void AwaitInputs();
  // Begins a read, once there is room for what it may bring. REQUIRES: nothing that was read is unfinished.
  void ReadOn();
  // What the next read may bring, for which there must be room; 0 = little.
  std::int64_t ExpectedBytes() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // False where the stream ended while it waited for room.
  bool HandleInput(Input& input);
  // Parses it; where it is large it has its place.
  void WorkOn(Input& input);
  bool QueueFillsUp() const;
  bool GoesOn() const { return !Broken() && stream_->end_status().ok(); }
  // Asked while room is waited for.
  bool WaitsOn() {
    if (!GoesOn()) return false;
    stream_->NoteWaiting();
    return true;
  }
  void Drain();
  // Starts the next write if there is something to write. What has another one behind it waits for that in gRPC, so that all
  // that one commit has for a stream's writers is one packet.
  void Kick();
  bool Broken() const {
    absl::MutexLock lock(&mu_);
    return broken_;
  }

  IngestService& service_;
  grpc::CallbackServerContext* const call_;
  const Caller caller_;
  const ReadAdmission::Ticket place_;
  MessageRooms& rooms_;
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
  // Of the message before.
  std::size_t last_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // Of the read under way, where much is expected, and the room that it is of.
  MemoryRoom::Place reading_place_ ABSL_GUARDED_BY(mu_);
  MemoryRoom* reading_room_ ABSL_GUARDED_BY(mu_) = nullptr;
  // What the last large message waited for before it was parsed, and where the next one is read; the thread's.
  MemoryRoom* next_room_ = &rooms_.read_chunks;
  bool reading_ ABSL_GUARDED_BY(mu_) = false;
  // A read may end, and begin the next one, before the call that began it has returned.
  int starting_read_count_ ABSL_GUARDED_BY(mu_) = 0;
  bool input_ended_ ABSL_GUARDED_BY(mu_) = false;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  // Taken from the board to be written next.
  std::optional<pb::StreamChunksResponse> next_ ABSL_GUARDED_BY(mu_);
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
      return !writing_ && (!next_ || broken_) && starting_read_count_ == 0;
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

std::int64_t StreamReactor::ExpectedBytes() const {
  // Who sent little is always read: its heartbeat waits for nobody's chunks. A large message of it comes as a surprise, once.
  return last_bytes_ < kReadAheadBytes ? 0 : static_cast<std::int64_t>(last_bytes_);
}

void StreamReactor::ReadOn() {
  std::int64_t expected = 0;
  {
    absl::MutexLock lock(&mu_);
    if (reading_ || input_ended_ || !inputs_.empty()) return;
    expected = ExpectedBytes();
  }
  std::optional<MemoryRoom::Place> place;
  if (expected > 0) {
    place = next_room_->Take(expected, [this] { return WaitsOn(); });
    if (!place) return;
  }
  {
    absl::MutexLock lock(&mu_);
    if (place) {
      reading_place_ = *std::move(place);
      reading_room_ = next_room_;
    }
    reading_ = true;
  }
  StartRead(&read_);
}

void StreamReactor::AwaitInputs() {
  const auto has_news = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return !inputs_.empty() || input_ended_ || broken_ || stream_ended_;
  };
  absl::MutexLock lock(&mu_);
  if (mu_.AwaitWithTimeout(absl::Condition(&has_news), kIdleRead)) return;
  reading_place_ = {};
  reading_room_ = nullptr;
  mu_.Await(absl::Condition(&has_news));
}

bool StreamReactor::TakeInputs(Inputs& inputs) {
  inputs.clear();
  ReadOn();
  AwaitInputs();
  bool is_much = false;
  {
    absl::MutexLock lock(&mu_);
    if (stream_ended_ || inputs_.empty()) return false;
    inputs.swap(inputs_);
    is_much = read_bytes_ >= kReadAheadBytes;
    read_bytes_ = 0;
    if (reading_ || input_ended_ || ExpectedBytes() > 0) return true;
    reading_ = !is_much;
  }
  if (is_much) {
    // As much again of each stream would come while nothing of it can be taken.
    if (QueueFillsUp()) return true;
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
    for (Input& input : inputs) {
      if (!stream_->end_status().ok() || !HandleInput(input)) return;
      input = {};
    }
  }
}

bool StreamReactor::HandleInput(Input& input) {
  const std::size_t bytes = input.message.Length();
  MessageNeed need;
  {
    grpc::ProtoBufferReader reader(&input.message);
    need = NeedOf(reader, bytes);
  }
  if (absl::IsResourceExhausted(need.may)) {
    input = {};
    stream_->HandleMalformed("", Invalid("MESSAGE_PARTS", std::string(need.may.message())), bytes);
    return true;
  }
  std::optional<MemoryRoom::Place> place;
  if (!need.is_small()) {
    {
      grpc::ProtoBufferReader reader(&input.message);
      need.head = HeadOf(reader);
    }
    MemoryRoom& read_room = need.head.is_chunk ? rooms_.read_chunks : rooms_.read_others;
    next_room_ = &read_room;
    const bool is_admitted = stream_->Admit(need.head, bytes, [&] {
      next_room_ = &rooms_.held;
      if (input.room != nullptr) input.MoveTo(rooms_.held);
    });
    if (!is_admitted) return GoesOn();
    if (input.room != nullptr) input.MoveTo(read_room);
    place = (need.head.is_chunk ? rooms_.chunks : rooms_.others).Take(need.bytes(), [this] {
      return WaitsOn();
    });
    if (!place) return false;
  }
  WorkOn(input);
  // Cleared it would keep its memory, of each stream the largest message. What is usual is not given back each time.
  if (!need.is_small()) request_ = {};
  return true;
}

void StreamReactor::WorkOn(Input& input) {
  const std::size_t bytes = input.message.Length();
  grpc::ByteBuffer copy = input.message;  // shares the slices; Deserialize empties its argument
  request_.Clear();
  const grpc::Status parsed =
      grpc::SerializationTraits<pb::StreamChunksRequest>::Deserialize(&copy, &request_);
  if (!parsed.ok()) {
    request_ = {};
    const MalformedMessage malformed = Describe(input.message);
    input = {};
    return stream_->HandleMalformed(malformed.writer, malformed.complaint, bytes);
  }
  // It may wait long: once is enough.
  input = {};
  // A chunk that is too large is consumed like any other bad one.
  if (bytes > kMessageBytesMax && !request_.has_chunk()) {
    request_ = {};
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
    return broken_ || stream_ended_ || (!writing_ && !next_ && stream_->board().empty());
  };
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(&written));
}

void StreamReactor::Kick() {
  grpc::WriteOptions options;
  {
    absl::MutexLock lock(&mu_);
    // Who waits for messages is woken for this alone, not for each ack.
    stream_ended_ = stream_ended_ || (stream_ != nullptr && !stream_->end_status().ok());
    // What was taken is written to its end: nobody else has it any more.
    if (writing_ || (finishing_ && !next_) || broken_ || stream_ == nullptr) return;
    pb::StreamChunksResponse message;
    if (next_) {
      message = *std::move(next_);
    } else if (!stream_->board().TakeNext(message)) {
      return;
    }
    pb::StreamChunksResponse next;
    next_.reset();
    if (!finishing_ && stream_->board().TakeNext(next)) next_ = std::move(next);
    // One that is taken already follows for sure: what waits on the board may be withdrawn from it.
    if (next_) options.set_buffer_hint();
    bool own = false;
    output_.Clear();
    grpc::SerializationTraits<pb::StreamChunksResponse>::Serialize(message, &output_, &own)
        .IgnoreError();
    writing_ = true;
  }
  StartWrite(&output_, options);
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

absl::Status MayCall(RateLimits* rates, const RatePayer& payer) {
  return rates == nullptr ? absl::OkStatus() : rates->Take(RateKind::kCalls, payer, 1);
}

}  // namespace

IngestService::IngestService(Options options, const IngestContext& context, MessageRooms& rooms)
    : options_(options), context_(context), rooms_(rooms), streams_(options.streams_max) {
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

}  // namespace stepwell
