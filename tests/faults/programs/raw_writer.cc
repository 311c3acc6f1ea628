// A client of the wire contract without recorder and agent: one writer that seals a small chunk at
// a fixed rate (--samples of each of --series), keeps all of them, sends what is not acked, and goes from one
// master to the next when acks stay away. Logs samples when it seals them and acks when they come, and says on
// stdout which series its trial has no room for. Seals no more after --chunks of them. SIGTERM: seals no more,
// waits for the last acks and the Close. With --quirk it does again and again what others do not (quirk.h), and says
// at its end how often, and how often it was refused or told that another stream has its writer.
//
// Exit code: 0 all is acked and closed, 3 not within --close-wait-ms, 5 the master answered otherwise than it must.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/crc32c.h"
#include "base/uuid.h"
#include "tests/faults/checker/ledger.h"
#include "tests/faults/programs/options.h"
#include "tests/faults/programs/quirk.h"
#include "tests/faults/programs/raw_connection.h"

namespace stepwell::faults {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::uint64_t kWindow = 16;
// From one odd doing to the next, in chunks.
constexpr std::uint64_t kOddEach = 5;
// That nothing was defined as.
constexpr std::uint32_t kNoRef = 2000;

volatile sig_atomic_t g_stop = 0;

// How far this machine's clock is from the truth, as the test wants it.
std::int64_t g_clock_shift_us = 0;

std::int64_t NowUs() {
  return g_clock_shift_us + std::chrono::duration_cast<std::chrono::microseconds>(
                                std::chrono::system_clock::now().time_since_epoch())
                                .count();
}

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
        quirk_(QuirkNamed(options.Text("--quirk"))),
        ack_patience_(options.Number("--ack-patience-ms")),
        log_(open(options.Text("--log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)),
        writer_(Uuid::Random().ToBytes()),
        due_(steady_clock::now()) {}

  // One connection's life. True once the Close is acked.
  bool Serve(const std::string& server) {
    auto connection = std::make_unique<RawConnection>(
        server,
        quirk_ == Quirk::kNone ? RawConnection::Refusals::kEndIt : RawConnection::Refusals::kCount);
    if (!Open(*connection)) return false;
    if (older_ != nullptr) ExpectFenced();
    bool close_sent = false;
    refused_seen_ = 0;
    auto moved = steady_clock::now();
    while (true) {
      Seal();
      const RawConnection::State state = connection->state();
      if (state.committed > acked_) moved = steady_clock::now();
      if (LosesAck(state.committed)) return false;
      NoteAcked(state.committed);
      NoteRefused(state);
      if (state.closed) return true;
      if (state.broken) return Left(server, state.why);
      if (!Send(*connection, state)) return Left(server, "");
      if (g_stop != 0 && acked_ == chunks_.size() && !close_sent) {
        close_sent = true;
        v1::StreamChunksRequest message;
        message.mutable_close()->set_writer(writer_);
        message.mutable_close()->set_final_sequence(chunks_.size());
        if (!connection->Write(message)) return false;
      }
      if (quirk_ == Quirk::kOpensElsewhere && !close_sent && IsOddAt(acked_)) {
        older_ = std::move(connection);
        return false;
      }
      const bool waits = sent_ > acked_ || close_sent;
      if (!waits) moved = steady_clock::now();
      if (steady_clock::now() - moved > ack_patience_) return Left(server, "no acks");
      connection->WaitForNews(milliseconds(5));
    }
  }

  void Tell() const {
    std::printf("raw writer %d: odd %d times, refused %d, fenced %d\n", rank_, odd_count_,
                refused_count_, fenced_count_);
    for (const std::string& reason : refused_reasons_) {
      std::printf("raw writer %d: refused as %s\n", rank_, reason.c_str());
    }
    std::fflush(stdout);
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

  [[noreturn]] void Wrong(const std::string& what) const {
    std::printf("raw writer %d: %s\n", rank_, what.c_str());
    std::fflush(stdout);
    std::_Exit(5);
  }

  // The next of its chunks behind which something odd is due. True once for each.
  bool IsOddAt(std::uint64_t sequence) {
    if (sequence < odd_next_) return false;
    odd_next_ = sequence + kOddEach;
    ++odd_count_;
    return true;
  }

  // Of chunks up to that one, how many could not be stored.
  std::uint64_t SpoiledCount(std::uint64_t sequence) const {
    return quirk_ == Quirk::kSpoils ? sequence / kOddEach : 0;
  }

  // Once for each chunk that was spoiled, as if its stream had ended before the ack was there.
  bool LosesAck(std::uint64_t committed) {
    if (SpoiledCount(committed) <= SpoiledCount(told_)) return false;
    told_ = committed;
    ++odd_count_;
    return true;
  }

  // Also on a stream that has it open.
  bool Open(RawConnection& connection) {
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
    const int times = quirk_ == Quirk::kOpensAgain ? 2 : 1;
    const int before = connection.state().opened_count;
    for (int i = 0; i < times; ++i) {
      if (!connection.Write(message)) return false;
    }
    const auto deadline = steady_clock::now() + ack_patience_;
    while (connection.state().opened_count < before + times) {
      if (connection.state().broken || steady_clock::now() > deadline) return false;
      connection.WaitForNews(milliseconds(20));
    }
    const RawConnection::State state = connection.state();
    CheckOpened(state.opened, times);
    generation_ = state.opened.generation();
    NoteAcked(state.opened.committed_sequence());
    // A restored database knows less than it once acked: all of it is kept here, so it is replayed.
    acked_ = sent_ = state.opened.committed_sequence();
    if (!Define(connection)) return false;
    // What the lost ack was of comes once more.
    return SpoiledCount(sent_) == 0 || SendChunk(connection, sent_ - 1);
  }

  // The same answer each time, a generation further.
  void CheckOpened(const v1::Opened& opened, int times) {
    if (quirk_ == Quirk::kNone) return;
    if (first_opened_ && (opened.trial_id() != first_opened_->trial_id() ||
                          opened.writer_no() != first_opened_->writer_no() ||
                          opened.attempt() != first_opened_->attempt())) {
      Wrong("opened as another one: " + opened.ShortDebugString());
    }
    if (opened.generation() != generation_ + static_cast<std::uint64_t>(times)) {
      Wrong("generation " + std::to_string(opened.generation()) + " after " +
            std::to_string(generation_));
    }
    if (!first_opened_) first_opened_ = opened;
    CheckRejections(opened);
  }

  // Each chunk that was spoiled is told, and no other.
  void CheckRejections(const v1::Opened& opened) {
    std::uint64_t told_count = 0;
    for (const v1::Rejection& told : opened.rejections()) {
      for (std::uint64_t i = told.first_sequence(); i <= told.last_sequence(); ++i) {
        if (i % kOddEach != 0 || told.reason() != "UNKNOWN_REF") Wrong(told.ShortDebugString());
        ++told_count;
      }
    }
    if (told_count != SpoiledCount(opened.committed_sequence())) {
      Wrong("rejections told at Open: " + opened.ShortDebugString());
    }
    told_ = std::max(told_, opened.committed_sequence());
  }

  bool Define(RawConnection& connection) const {
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

  // It goes on sending on the stream of before, which must be told that it has lost its writer.
  void ExpectFenced() {
    const auto deadline = steady_clock::now() + ack_patience_;
    for (std::uint64_t next = sent_; !older_->state().broken;) {
      Seal();
      if (steady_clock::now() > deadline) Wrong("an older stream is not told that it is fenced");
      if (next < chunks_.size() && !SendChunk(*older_, next++)) break;
      older_->WaitForNews(milliseconds(5));
    }
    const std::string why = older_->state().why;
    if (why.rfind("FENCED", 0) != 0) Wrong("an older stream ended: " + why);
    ++fenced_count_;
    older_.reset();
  }

  // A hole is sent from where the master wants it.
  void NoteRefused(const RawConnection::State& state) {
    if (state.refused_count == refused_seen_) return;
    refused_count_ += state.refused_count - refused_seen_;
    refused_seen_ = state.refused_count;
    refused_reasons_.insert(state.refused_reasons.begin(), state.refused_reasons.end());
    if (state.expected > 0) sent_ = std::min(sent_, state.expected - 1);
  }

  bool Send(RawConnection& connection, const RawConnection::State& state) {
    if (state.credit_bytes == 0) return true;
    while (sent_ < chunks_.size() && sent_ < acked_ + kWindow) {
      const bool needs_next = quirk_ == Quirk::kSwaps || quirk_ == Quirk::kSkips;
      if (needs_next && sent_ >= odd_next_ && sent_ + 1 == chunks_.size() && g_stop == 0) break;
      const bool is_elsewhere = quirk_ == Quirk::kOpensElsewhere;
      // What is due behind it comes when it is acked, as often on a machine that is slow.
      if (is_elsewhere && sent_ >= odd_next_ && g_stop == 0) break;
      const bool is_between = !is_elsewhere && quirk_ != Quirk::kSpoils;
      const bool is_odd = is_between && IsOddAt(sent_);
      if (is_odd && !SendOdd(connection)) return false;
      if (sent_ == chunks_.size()) break;
      if (SpoiledCount(sent_) > SpoiledCount(told_)) break;
      if (!SendChunk(connection, sent_)) return false;
      ++sent_;
    }
    return true;
  }

  bool SendChunk(RawConnection& connection, std::uint64_t index) const {
    v1::StreamChunksRequest message;
    *message.mutable_chunk() = chunks_[index];
    return connection.Write(message);
  }

  // Before the chunk that is next.
  bool SendOdd(RawConnection& connection) {
    const bool has_next = sent_ + 1 < chunks_.size();
    switch (quirk_) {
      case Quirk::kRepeats:
        return (sent_ == 0 || SendChunk(connection, sent_ - 1)) && SendChunk(connection, sent_);
      case Quirk::kSwaps:
        return !has_next || SendChunk(connection, sent_ + 1);
      case Quirk::kSkips:
        if (has_next) ++sent_;
        return true;
      case Quirk::kOpensAgain:
        return Open(connection);
      case Quirk::kTalksWrong:
        return connection.Write(WrongMessage(writer_, odd_count_));
      case Quirk::kNone:
      case Quirk::kOpensElsewhere:
      case Quirk::kJumblesTimes:
      case Quirk::kExtremeValues:
      case Quirk::kSpoils:
        return true;
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
    Write("ack " + std::to_string((committed - SpoiledCount(committed)) * per_chunk) + "\n");
  }

  v1::Chunk NextChunk() {
    v1::ChunkBody body;
    v1::Table& table = *body.add_tables();
    table.set_tick_group(1);
    table.set_first_batch(static_cast<std::int32_t>(number_));
    const std::uint64_t sequence = chunks_.size() + 1;
    const bool is_spoiled = SpoiledCount(sequence) > SpoiledCount(sequence - 1);
    for (int i = 0; i < series_count_; ++i) {
      table.add_columns()->set_ref(is_spoiled ? kNoRef : static_cast<std::uint32_t>(i + 1));
    }
    std::string lines;
    for (int i = 0; i < sample_count_; ++i, ++number_) {
      const std::int64_t before_us = time_us_;
      time_us_ = NextTimeUs();
      if (i == 0) {
        table.set_first_time_us(time_us_);
      } else {
        table.add_time_deltas_us(time_us_ - before_us);
        table.add_batch_deltas(1);
      }
      for (int series = 0; series < series_count_; ++series) {
        const double value =
            quirk_ == Quirk::kExtremeValues
                ? ExtremeValue(number_)
                : ValueOf(seed_ + static_cast<std::uint64_t>(series), rank_, number_);
        table.mutable_columns(series)->mutable_doubles()->Add(value);
        lines += SampleLine({"faults/" + NameOf(series), rank_, number_,
                             static_cast<std::int32_t>(number_), true, time_us_,
                             std::bit_cast<std::uint64_t>(value)});
      }
    }
    // What nobody could store is not recorded.
    if (!is_spoiled) Write(lines);
    v1::Chunk chunk;
    chunk.set_writer(writer_);
    chunk.set_sequence(sequence);
    chunk.set_sealed_time_us(NowUs());
    chunk.set_body(body.SerializeAsString());
    chunk.set_crc32c(ChunkCrc32c(chunk.sequence(), chunk.sealed_time_us(), chunk.body()));
    return chunk;
  }

  std::int64_t NextTimeUs() const {
    const std::int64_t now_us = NowUs();
    if (quirk_ != Quirk::kJumblesTimes) return std::max(time_us_ + 1, now_us);
    // Of the last half second, in steps of 50 ms.
    constexpr std::int64_t kStepUs = 50'000;
    return (now_us / kStepUs - number_ * 7 % 10) * kStepUs;
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
  const Quirk quirk_;
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
  // Of its quirk.
  std::optional<v1::Opened> first_opened_;
  std::unique_ptr<RawConnection> older_;
  std::uint64_t odd_next_ = kOddEach;
  // The newest Opened told what was rejected up to here, or its ack was lost.
  std::uint64_t told_ = 0;
  int odd_count_ = 0;
  int refused_seen_ = 0;  // of this connection
  int refused_count_ = 0;
  std::set<std::string> refused_reasons_;
  int fenced_count_ = 0;
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
                                {"--quirk", ""},
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
    if (writer.Serve(servers[i % servers.size()])) {
      if (!options.Text("--quirk").empty()) writer.Tell();
      return 0;
    }
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
