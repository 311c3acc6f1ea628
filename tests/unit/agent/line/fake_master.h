// FakeMaster: an IngestService in memory over real gRPC, that keeps what it acked across restarts
// and can be told to misbehave. Thread-safe.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "stepwell/v1/clock.grpc.pb.h"
#include "stepwell/v1/ingest.grpc.pb.h"

namespace stepwell::agent {

namespace pb = ::stepwell::v1;

class FakeMaster final : public pb::IngestService::Service {
 public:
  struct Writer {
    pb::Open open;
    std::uint64_t generation = 0;
    std::uint64_t committed = 0;
    std::uint32_t committed_crc = 0;
    bool closed = false;
    bool died = false;
    std::map<std::uint32_t, pb::Definition> definitions;  // of the living Open
    std::map<std::uint32_t, pb::Definition> definitions_ever;
    std::map<std::uint64_t, pb::Chunk> chunks;
    // As each came first, be it that it was lost since: what comes again must be the same.
    std::map<std::uint64_t, pb::Chunk> chunks_ever;
    std::vector<pb::GapRange> gaps;
    std::vector<pb::CaptureReport> reports;
    std::vector<std::string> wrongs;  // what broke the contract
    std::uint64_t swallowed = 0;      // the highest sequence that SwallowChunks took
    int open_count = 0;
    int repeat_count = 0;  // of what is stored
    int resend_count = 0;  // of what ever came
  };
  // One sample as stored.
  struct Sample {
    std::string name;
    std::map<std::string, std::string> labels;
    std::int64_t time_us;
    std::int32_t batch;
    double value;
    std::string metric_group;
  };

  ~FakeMaster() override { Stop(); }
  // Listens on the same port after the first time.
  void Start();
  void Stop();
  int port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  // As a real one takes them.
  static constexpr std::size_t kWritersPerStreamMax = 256;
  // The most writers that one stream held open at a time.
  std::size_t writers_per_stream() const ABSL_LOCKS_EXCLUDED(mu_);

  // Misbehaviour; acts on later messages. Refuses the Opens of trials so named.
  void RefuseTrial(const std::string& external_id);
  void SetCredit(std::int64_t bytes);
  // The next `count` chunks are neither stored nor answered.
  void SwallowChunks(int count);
  // While paused, nothing is taken from any stream, and connections live on.
  void Pause() ABSL_LOCKS_EXCLUDED(mu_);
  void Resume() ABSL_LOCKS_EXCLUDED(mu_);
  // Streams that ever began.
  int stream_count() const ABSL_LOCKS_EXCLUDED(mu_);
  // As `stepwell restore` would change it.
  void SetIncarnation(const std::string& incarnation);
  // What writers of `external_id` (its samplers or its ranks) are asked for: in each Opened from now
  // on, or at once in a message of its own.
  enum class Whom { kRanks, kSamplers };
  void DirectAtOpen(Whom whom, const std::string& external_id,
                    std::vector<pb::Directive> directives) ABSL_LOCKS_EXCLUDED(mu_);
  void DirectNow(Whom whom, const std::string& external_id, pb::Directive directive)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Changes what is said, all of it, on the way out. Before an agent connects.
  using Rewrite = std::function<void(std::vector<pb::StreamChunksResponse>&)>;
  void SetRewrite(Rewrite rewrite) { rewrite_ = std::move(rewrite); }
  // Its wall clock against this machine's. Before an agent connects.
  void SetClockAhead(absl::Duration ahead) { clock_ahead_ = ahead; }
  // As one of a release that told its time in Opened alone. Before Start.
  void TellNoClock() { tells_clock_ = false; }
  // Who asks for the time hears nothing, as long as it waits.
  void HoldClock() { holds_clock_ = true; }
  // With what tokens it was asked for the time; "" = with none.
  std::vector<std::string> clock_tokens() const ABSL_LOCKS_EXCLUDED(mu_);
  // Writers go back to what they had at `sequence`, as a restored database would.
  void RewindAll(std::uint64_t sequence);
  void Change(const std::function<void(std::map<std::string, Writer>&)>& change);

  std::map<std::string, Writer> writers() const;
  // All samples of all chunks of a writer, in sequence order.
  static std::vector<Sample> SamplesOf(const Writer& writer);
  // Waits until `holds` or 60 s have passed (many times the longest wait of an agent); false then.
  bool WaitUntil(const std::function<bool(const std::map<std::string, Writer>&)>& holds) const;

  grpc::Status StreamChunks(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<pb::StreamChunksResponse, pb::StreamChunksRequest>* stream) override;

 private:
  class Clocks final : public pb::ClockService::Service {
   public:
    explicit Clocks(FakeMaster& master) : master_(master) {}
    grpc::Status ReadClock(grpc::ServerContext* context, const pb::ReadClockRequest* request,
                           pb::ReadClockResponse* response) override;

   private:
    FakeMaster& master_;
  };
  using Stream = grpc::ServerReaderWriter<pb::StreamChunksResponse, pb::StreamChunksRequest>;
  void Talk(Stream& stream, const bool& ended) ABSL_LOCKS_EXCLUDED(mu_);
  void Answer(const pb::StreamChunksRequest& request, std::vector<pb::StreamChunksResponse>& out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // False, and refused: all places of its stream are taken.
  bool FindPlace(const pb::StreamChunksRequest& request, std::set<std::string>& places,
                 std::vector<pb::StreamChunksResponse>& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static void RefuseOpen(const pb::Open& open, const std::string& reason,
                         std::vector<pb::StreamChunksResponse>& out);
  void OnOpen(const pb::Open& open, std::vector<pb::StreamChunksResponse>& out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CheckResend(const pb::Chunk& chunk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static void RefuseHole(const std::string& id, std::uint64_t expected,
                         std::vector<pb::StreamChunksResponse>& out);
  void OnSequenced(const std::string& id, std::uint64_t first, std::uint64_t last,
                   const std::function<void(Writer&)>& store,
                   std::vector<pb::StreamChunksResponse>& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  int port_ = 0;
  absl::Duration clock_ahead_;
  Clocks clocks_{*this};
  bool tells_clock_ = true;
  bool holds_clock_ = false;
  Rewrite rewrite_;
  std::unique_ptr<grpc::Server> server_;
  mutable absl::Mutex mu_;
  std::map<std::string, Writer> writers_ ABSL_GUARDED_BY(mu_);
  std::string refused_trial_ ABSL_GUARDED_BY(mu_);
  std::int64_t credit_ ABSL_GUARDED_BY(mu_) = 1 << 20;
  std::string incarnation_ ABSL_GUARDED_BY(mu_) = std::string(16, 'a');
  std::map<std::pair<Whom, std::string>, std::vector<pb::Directive>> directives_
      ABSL_GUARDED_BY(mu_);
  // Of each stream that lives, what is to be said next.
  std::map<Stream*, std::vector<pb::StreamChunksResponse>> waiting_ ABSL_GUARDED_BY(mu_);
  int swallow_count_ ABSL_GUARDED_BY(mu_) = 0;
  bool paused_ ABSL_GUARDED_BY(mu_) = false;
  int stream_count_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<std::string> clock_tokens_ ABSL_GUARDED_BY(mu_);
  std::size_t writers_per_stream_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace stepwell::agent
