// A client of the wire contract without recorder and agent: one writer that seals a small chunk at
// a fixed rate (--samples of each of --series), keeps all of them, sends what is not acked, and goes from one
// master to the next when acks stay away. Logs samples when it seals them and acks when they come, and says on
// stdout which series its trial has no room for. Seals no more after --chunks of them. SIGTERM: seals no more,
// waits for the last acks and the Close.
//
// Exit code: 0 all is acked and closed, 3 not within --close-wait-ms.
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/crc32c.h"
#include "base/uuid.h"
#include "stepwell/v1/ingest.grpc.pb.h"
#include "tests/faults/checker/ledger.h"
#include "tests/faults/programs/options.h"

namespace stepwell::faults {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::uint64_t kWindow = 16;

volatile sig_atomic_t g_stop = 0;

// How far this machine's clock is from the truth, as the test wants it.
std::int64_t g_clock_shift_us = 0;

std::int64_t NowUs() {
  return g_clock_shift_us + std::chrono::duration_cast<std::chrono::microseconds>(
                                std::chrono::system_clock::now().time_since_epoch())
                                .count();
}

// One connection to one master. The reader thread takes the answers, the other calls the rest.
class Connection {
 public:
  explicit Connection(const std::string& server) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = v1::IngestService::NewStub(
        grpc::CreateCustomChannel(server, grpc::InsecureChannelCredentials(), arguments));
    stream_ = stub_->StreamChunks(&context_);
    reader_ = std::thread([this] { Read(); });
  }
  ~Connection() {
    context_.TryCancel();
    reader_.join();
    (void)stream_->Finish();
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  struct State {
    bool opened = false;
    std::uint64_t generation = 0;
    std::uint64_t committed = 0;
    std::int64_t credit_bytes = 0;
    bool closed = false;
    bool broken = false;  // ended, or refused
    std::string why;
  };

  State state() {
    const std::lock_guard<std::mutex> lock(mu_);
    return state_;
  }
  // Until something came, at most `patience`.
  void WaitForNews(milliseconds patience) {
    std::unique_lock<std::mutex> lock(mu_);
    changed_.wait_for(lock, patience, [this] { return news_; });
    news_ = false;
  }
  bool Write(const v1::StreamChunksRequest& message) { return stream_->Write(message); }

 private:
  void Read() {
    v1::StreamChunksResponse message;
    while (stream_->Read(&message)) {
      const std::lock_guard<std::mutex> lock(mu_);
      if (message.has_opened()) {
        state_.opened = true;
        state_.generation = message.opened().generation();
        state_.committed = message.opened().committed_sequence();
        state_.credit_bytes = message.opened().credit_bytes();
      } else if (message.has_ack()) {
        state_.committed = std::max(state_.committed, message.ack().committed_sequence());
        state_.credit_bytes = message.ack().credit_bytes();
        state_.closed = state_.closed || message.ack().closed();
      } else if (message.has_refused() && message.refused().reason() == "SERIES_LIMIT") {
        // Some of the definitions alone; what is sent of them is told as a gap.
        std::printf("refused %s: %s\n", message.refused().reason().c_str(),
                    message.refused().message().c_str());
        std::fflush(stdout);
      } else if (message.has_refused()) {
        state_.broken = true;
        state_.why = message.refused().reason() + ": " + message.refused().message();
      }
      news_ = true;
      changed_.notify_all();
    }
    const std::lock_guard<std::mutex> lock(mu_);
    state_.broken = news_ = true;
    changed_.notify_all();
  }

  grpc::ClientContext context_;
  std::unique_ptr<v1::IngestService::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::StreamChunksRequest, v1::StreamChunksResponse>>
      stream_;
  std::thread reader_;
  std::mutex mu_;
  std::condition_variable changed_;
  State state_;
  bool news_ = false;
};

class RawWriter {
 public:
  explicit RawWriter(const ProgramOptions& options)
      : rank_(static_cast<int>(options.Number("--rank"))),
        seed_(static_cast<std::uint64_t>(options.Number("--seed"))),
        trial_(options.Text("--trial")),
        interval_(std::chrono::microseconds(1'000'000 / options.Number("--rate"))),
        series_count_(static_cast<int>(options.Number("--series"))),
        sample_count_(static_cast<int>(options.Number("--samples"))),
        chunks_max_(static_cast<std::size_t>(options.Number("--chunks"))),
        ack_patience_(options.Number("--ack-patience-ms")),
        log_(open(options.Text("--log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)),
        writer_(Uuid::Random().ToBytes()),
        due_(steady_clock::now()) {}

  // One connection's life. True once the Close is acked.
  bool Serve(const std::string& server) {
    Connection connection(server);
    if (!Open(connection)) return false;
    sent_ = acked_;
    bool close_sent = false;
    auto moved = steady_clock::now();
    while (true) {
      Seal();
      const Connection::State state = connection.state();
      if (state.committed > acked_) moved = steady_clock::now();
      NoteAcked(state.committed);
      if (state.closed) return true;
      if (state.broken) return Left(server, state.why);
      if (!Send(connection, state)) return Left(server, "");
      if (g_stop != 0 && acked_ == chunks_.size() && !close_sent) {
        close_sent = true;
        v1::StreamChunksRequest message;
        message.mutable_close()->set_writer(writer_);
        message.mutable_close()->set_final_sequence(chunks_.size());
        if (!connection.Write(message)) return false;
      }
      const bool waits = sent_ > acked_ || close_sent;
      if (!waits) moved = steady_clock::now();
      if (steady_clock::now() - moved > ack_patience_) return Left(server, "no acks");
      connection.WaitForNews(milliseconds(5));
    }
  }

  // Between connections.
  void Seal() {
    while (g_stop == 0 && chunks_.size() < chunks_max_ && steady_clock::now() >= due_) {
      due_ = std::max(due_ + interval_, steady_clock::now() - std::chrono::seconds(1));
      chunks_.push_back(NextChunk());
    }
  }

 private:
  bool Left(const std::string& server, const std::string& why) const {
    std::printf("raw writer %d: left %s at sequence %llu: %s\n", rank_, server.c_str(),
                static_cast<unsigned long long>(acked_), why.c_str());
    std::fflush(stdout);
    return false;
  }

  bool Open(Connection& connection) {
    v1::StreamChunksRequest message;
    v1::Open& open = *message.mutable_open();
    open.set_writer(writer_);
    open.set_external_id(trial_);
    open.set_attempt_key("one");
    open.set_agent_id("raw");
    open.set_machine("raw");
    open.set_rank(rank_);
    open.set_recorder_version("raw/1");
    open.set_last_generation(generation_);
    open.set_last_sequence(chunks_.size());
    open.set_acked_sequence(acked_);
    open.set_sent_time_us(NowUs());
    if (!chunks_.empty()) open.set_last_crc32c(chunks_.back().crc32c());
    if (!connection.Write(message)) return false;
    const auto deadline = steady_clock::now() + ack_patience_;
    while (!connection.state().opened) {
      if (connection.state().broken || steady_clock::now() > deadline) return false;
      connection.WaitForNews(milliseconds(20));
    }
    const Connection::State state = connection.state();
    generation_ = state.generation;
    NoteAcked(state.committed);
    // A restored database knows less than it once acked: all of it is kept here, so it is replayed.
    acked_ = state.committed;
    v1::StreamChunksRequest defining;
    defining.mutable_definitions()->set_writer(writer_);
    for (int i = 0; i < series_count_; ++i) {
      v1::Definition& definition = *defining.mutable_definitions()->add_definitions();
      definition.set_ref(static_cast<std::uint32_t>(i + 1));
      definition.set_tick_group(1);
      definition.set_metric_group("faults");
      definition.set_name(NameOf(i));
      definition.set_kind(v1::SERIES_KIND_GAUGE);
    }
    return connection.Write(defining);
  }

  bool Send(Connection& connection, const Connection::State& state) {
    if (state.credit_bytes == 0) return true;
    while (sent_ < chunks_.size() && sent_ < acked_ + kWindow) {
      v1::StreamChunksRequest message;
      *message.mutable_chunk() = chunks_[sent_];
      if (!connection.Write(message)) return false;
      ++sent_;
    }
    return true;
  }

  static std::string NameOf(int series) {
    return series == 0 ? "raw" : "raw_" + std::to_string(series);
  }

  void NoteAcked(std::uint64_t committed) {
    acked_ = std::max(acked_, committed);
    if (committed <= logged_acked_) return;
    logged_acked_ = committed;
    const auto per_chunk = static_cast<std::uint64_t>(sample_count_) * series_count_;
    Write("ack " + std::to_string(committed * per_chunk) + "\n");
  }

  v1::Chunk NextChunk() {
    v1::ChunkBody body;
    v1::Table& table = *body.add_tables();
    table.set_tick_group(1);
    table.set_first_batch(static_cast<std::int32_t>(number_));
    for (int i = 0; i < series_count_; ++i) {
      table.add_columns()->set_ref(static_cast<std::uint32_t>(i + 1));
    }
    std::string lines;
    for (int i = 0; i < sample_count_; ++i, ++number_) {
      const std::int64_t before_us = time_us_;
      time_us_ = std::max(time_us_ + 1, NowUs());
      if (i == 0) {
        table.set_first_time_us(time_us_);
      } else {
        table.add_time_deltas_us(time_us_ - before_us);
        table.add_batch_deltas(1);
      }
      for (int series = 0; series < series_count_; ++series) {
        const double value = ValueOf(seed_ + static_cast<std::uint64_t>(series), rank_, number_);
        table.mutable_columns(series)->mutable_doubles()->Add(value);
        lines += SampleLine({"faults/" + NameOf(series), rank_, number_,
                             static_cast<std::int32_t>(number_), true, time_us_,
                             std::bit_cast<std::uint64_t>(value)});
      }
    }
    Write(lines);
    v1::Chunk chunk;
    chunk.set_writer(writer_);
    chunk.set_sequence(chunks_.size() + 1);
    chunk.set_sealed_time_us(NowUs());
    chunk.set_body(body.SerializeAsString());
    chunk.set_crc32c(ChunkCrc32c(chunk.sequence(), chunk.sealed_time_us(), chunk.body()));
    return chunk;
  }

  void Write(const std::string& lines) const {
    if (write(log_, lines.data(), lines.size()) != static_cast<ssize_t>(lines.size())) {
      std::perror("raw writer: ledger");
      std::_Exit(74);
    }
  }

  const int rank_;
  const std::uint64_t seed_;
  const std::string trial_;
  const steady_clock::duration interval_;
  const int series_count_;
  const int sample_count_;  // of a chunk, of each series
  const std::size_t chunks_max_;
  const milliseconds ack_patience_;
  const int log_;
  const std::string writer_;
  steady_clock::time_point due_;
  std::vector<v1::Chunk> chunks_;
  std::int64_t number_ = 0;
  std::int64_t time_us_ = 0;
  std::uint64_t generation_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t acked_ = 0;
  std::uint64_t logged_acked_ = 0;
};

int Main(int argc, char** argv) {
  const ProgramOptions options(argc, argv,
                               {{"--servers", ""},
                                {"--trial", "faults"},
                                {"--log", ""},
                                {"--rank", "0"},
                                {"--seed", "1"},
                                {"--rate", "20"},
                                {"--chunks", "1000000000"},
                                {"--series", "1"},
                                {"--samples", "20"},
                                {"--clock-shift-s", "0"},
                                {"--ack-patience-ms", "1500"},
                                {"--close-wait-ms", "60000"}});
  signal(SIGTERM, [](int) { g_stop = 1; });
  g_clock_shift_us = options.Number("--clock-shift-s") * 1'000'000;
  std::vector<std::string> servers;
  std::istringstream list(options.Text("--servers"));
  for (std::string server; std::getline(list, server, ',');) servers.push_back(server);
  RawWriter writer(options);
  steady_clock::time_point stopped = {};
  for (std::size_t i = 0;; ++i) {
    if (writer.Serve(servers[i % servers.size()])) return 0;
    if (g_stop != 0) {
      if (stopped == steady_clock::time_point()) stopped = steady_clock::now();
      const auto waited = steady_clock::now() - stopped;
      if (waited > milliseconds(options.Number("--close-wait-ms"))) return 3;
    }
    writer.Seal();
    std::this_thread::sleep_for(milliseconds(50));
  }
}

}  // namespace
}  // namespace stepwell::faults

int main(int argc, char** argv) { return stepwell::faults::Main(argc, argv); }
