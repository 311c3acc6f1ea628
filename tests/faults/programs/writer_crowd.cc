// Many agents in one process, made of the agent's own parts: --streams streams to one master, each with
// --writers writers of its own, each of which appends a frame of one sample once a second to its spool,
// from where its stream takes it. Ranks are numbered from --rank on. Each second a line on stdout:
//
//   crowd 0, 12 s: appended 6000, acked 5900, behind 0, marks 1, waiting 0
// The number is the first rank.
// behind: writers that have a frame which no master has acked for five seconds. SIGUSR1 is a mark; waiting:
// writers that were acked nothing since the last one. SIGTERM: appends no more, waits until all is acked.
//
// Exit code: 0 all is acked, 3 not within --close-wait-ms.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "client/agent/chunk_builder.h"
#include "client/agent/outbound_writer.h"
#include "client/agent/sender.h"
#include "client/agent/series_catalog.h"
#include "client/agent/spool.h"
#include "client/agent/stream.h"
#include "tests/faults/checker/ledger.h"
#include "tests/faults/programs/options.h"

namespace stepwell::faults {
namespace {

using agent::OutboundWriter;
using agent::Spool;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A second is so many turns: in each a part of the writers append.
constexpr int kTurns = 50;
constexpr std::uint64_t kBehindSeconds = 5;
// An agent looks at its writers, and wakes its stream, each 100 ms: not all agents at one time.
constexpr std::size_t kTurnsOfLook = 5;

volatile sig_atomic_t g_stop = 0;
volatile sig_atomic_t g_marks = 0;

std::int64_t NowUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

template <typename T>
T OrDie(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "crowd: %s\n", value.status().ToString().c_str());
  std::_Exit(74);
}

struct Agent {
  agent::Sender sender;
  std::unique_ptr<agent::Stream> stream;
};

struct Writer {
  std::shared_ptr<Spool> spool;
  std::shared_ptr<OutboundWriter> outbound;
  int rank = 0;
  std::size_t agent = 0;
  // What was acked at the last mark.
  std::uint64_t acked_before = 0;
};

class Crowd {
 public:
  explicit Crowd(const ProgramOptions& options)
      : seed_(static_cast<std::uint64_t>(options.Number("--seed"))),
        log_(open(options.Text("--log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
    agent::SeriesSpec series;
    series.metric_group = "faults";
    series.name = "checked";
    ref_ = catalog_.Ref({agent::TickGroupKind::kAlone, 0}, series);
    agent::Stream::Options stream_options;
    stream_options.server = options.Text("--servers");
    const auto streams = static_cast<std::size_t>(options.Number("--streams"));
    const std::string folder = options.Text("--spool-dir");
    for (std::size_t i = 0; i < streams; ++i) {
      Agent& made = *agents_.emplace_back(std::make_unique<Agent>());
      made.stream =
          std::make_unique<agent::Stream>(stream_options, made.sender, RealClock::Get(), [] {});
      for (int k = 0; k < options.Number("--writers"); ++k) AddWriter(options, folder, i);
    }
  }

  void Run() {
    for (const auto& made : agents_) made->stream->Start();
    auto due = steady_clock::now();
    for (int turn = 0; g_stop == 0; ++turn) {
      for (std::size_t i = static_cast<std::size_t>(turn % kTurns); i < writers_.size();
           i += kTurns) {
        Append(writers_[i]);
      }
      WriteLog();
      Mark();
      Look(turn);
      if (turn % kTurns == kTurns - 1) Say(turn / kTurns + 1);
      due = std::max(due + milliseconds(1000 / kTurns), steady_clock::now() - milliseconds(1000));
      std::this_thread::sleep_until(due);
    }
  }

  // Whether all is acked in time.
  bool Finish(milliseconds patience) {
    const auto deadline = steady_clock::now() + patience;
    bool acked = false;
    while (!(acked = AllAcked()) && steady_clock::now() < deadline) {
      Wake();
      std::this_thread::sleep_for(milliseconds(100));
    }
    if (acked) pending_ += "ack " + std::to_string(appended_) + "\n";
    WriteLog();
    for (const auto& made : agents_) made->stream->Stop();
    return acked;
  }

 private:
  void AddWriter(const ProgramOptions& options, const std::string& folder, std::size_t of) {
    Writer writer;
    writer.agent = of;
    writer.rank =
        static_cast<int>(options.Number("--rank") + static_cast<std::int64_t>(writers_.size()));
    agent::WriterIdentity identity;
    identity.writer = Uuid::Random();
    identity.trial = options.Text("--trial");
    identity.attempt_key = "one";
    identity.rank = writer.rank;
    identity.world_size = static_cast<std::int32_t>(options.Number("--world-size"));
    auto directory = OrDie(agent::OpenDirectoryAt(
        AT_FDCWD, folder + "/" + std::to_string(writer.rank), agent::WhenAbsent::kCreate));
    Spool::Options spool;
    spool.writer = identity.writer;
    writer.spool = OrDie(Spool::Open(std::move(directory), spool, RealClock::Get()));
    agent::AgentFace face{.agent_id = "crowd-" + std::to_string(of),
                          .machine = "crowd-" + std::to_string(of),
                          .version = "0.1.0"};
    writer.outbound = std::make_shared<OutboundWriter>(identity, face, writer.spool);
    writer.outbound->AddDefinition(catalog_.definition(ref_));
    agents_[of]->sender.Add(writer.outbound);
    writers_.push_back(std::move(writer));
  }

  void Append(Writer& writer) {
    const auto number = static_cast<std::int64_t>(writer.spool->last_sequence());
    const double value = ValueOf(seed_, writer.rank, number);
    const std::int64_t time_us = NowUs();
    agent::ChunkBuilder builder(catalog_);
    builder.AddSample(ref_, time_us, static_cast<std::int32_t>(number), value);
    const auto bodies = builder.Seal();
    const Spool::Sealed sealed{time_us, bodies.front().span, bodies.front().bytes};
    const absl::Status written = writer.spool->AppendFrames({&sealed, 1}, {});
    if (!written.ok()) {
      std::fprintf(stderr, "crowd: %s\n", written.ToString().c_str());
      std::_Exit(74);
    }
    ++appended_;
    pending_ +=
        SampleLine({"faults/checked", writer.rank, number, static_cast<std::int32_t>(number), true,
                    time_us, std::bit_cast<std::uint64_t>(value)});
    if (number % 60 == 59) writer.spool->Trim().IgnoreError();
  }

  void Mark() {
    const int marks = g_marks;
    if (marks == mark_count_) return;
    mark_count_ = marks;
    for (Writer& writer : writers_) writer.acked_before = writer.outbound->status().acked_sequence;
  }

  void Look(int turn) {
    for (std::size_t i = static_cast<std::size_t>(turn) % kTurnsOfLook; i < agents_.size();
         i += kTurnsOfLook) {
      Tend(*agents_[i]);
    }
  }
  void Wake() {
    for (const auto& made : agents_) Tend(*made);
  }
  static void Tend(Agent& made) {
    if (made.sender.HasNext(RealClock::Get().Monotonic())) made.stream->Wake();
    made.stream->Tend();
  }

  bool AllAcked() const {
    return std::all_of(writers_.begin(), writers_.end(),
                       [](const Writer& writer) { return writer.outbound->status().all_acked; });
  }

  void Say(int second) const {
    std::uint64_t acked = 0;
    int behind = 0;
    int waiting = 0;
    for (const Writer& writer : writers_) {
      const std::uint64_t mark = writer.outbound->status().acked_sequence;
      acked += mark;
      behind += mark + kBehindSeconds < writer.spool->last_sequence() ? 1 : 0;
      waiting += mark == writer.acked_before ? 1 : 0;
    }
    std::printf("crowd %d, %d s: appended %llu, acked %llu, behind %d, marks %d, waiting %d\n",
                writers_.front().rank, second, static_cast<unsigned long long>(appended_),
                static_cast<unsigned long long>(acked), behind, mark_count_, waiting);
    std::fflush(stdout);
  }

  void WriteLog() {
    if (write(log_, pending_.data(), pending_.size()) != static_cast<ssize_t>(pending_.size()))
      std::_Exit(74);
    pending_.clear();
  }

  const std::uint64_t seed_;
  const int log_;
  agent::SeriesCatalog catalog_;
  std::uint32_t ref_ = 0;
  std::vector<std::unique_ptr<Agent>> agents_;
  std::vector<Writer> writers_;
  std::uint64_t appended_ = 0;
  int mark_count_ = 0;
  std::string pending_;
};

int Main(int argc, char** argv) {
#ifdef STEPWELL_RELEASE
  // As the agent that is shipped (client/cli/main.cc): looking for cycles of locks would cost more than all of its own.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
#endif
  const ProgramOptions options(argc, argv,
                               {{"--servers", ""},
                                {"--spool-dir", ""},
                                {"--trial", "faults"},
                                {"--log", ""},
                                {"--rank", "0"},
                                {"--world-size", "1"},
                                {"--seed", "1"},
                                {"--streams", "10"},
                                {"--writers", "50"},
                                {"--close-wait-ms", "120000"}});
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  signal(SIGTERM, [](int) { g_stop = 1; });
  signal(SIGUSR1, [](int) { g_marks = g_marks + 1; });
  Crowd crowd(options);
  crowd.Run();
  const int code = crowd.Finish(milliseconds(options.Number("--close-wait-ms"))) ? 0 : 3;
  std::fflush(nullptr);
  return code;
}

}  // namespace
}  // namespace stepwell::faults

int main(int argc, char** argv) { return stepwell::faults::Main(argc, argv); }
