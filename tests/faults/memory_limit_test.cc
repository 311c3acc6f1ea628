// A master with a limit of its memory, beside clients that send all they can and readers, while its database is stopped,
// killed, and back: it stays below the limit all the while, and what it acked is there, once.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/worker.h"
#include "stepwell/v1/query.grpc.pb.h"
#include "tests/faults/checker/bounds.h"
#include "tests/faults/child_pids.h"
#include "tests/faults/database_text.h"
#include "tests/faults/greedy_streams.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// "VmRSS" or "VmHWM" of a process, in bytes; -1 = not known.
std::int64_t MemoryOf(pid_t pid, const std::string& field) {
  const std::vector<std::string> lines =
      absl::StrSplit(ReadText(absl::StrCat("/proc/", pid, "/status")), '\n');
  for (const std::string& line : lines) {
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(": \t"), absl::SkipEmpty());
    std::int64_t kib = 0;
    if (words.size() > 1 && words[0] == field && absl::SimpleAtoi(words[1], &kib)) return kib << 10;
  }
  return -1;
}

// All processes of a PostgreSQL now.
std::vector<pid_t> ProcessesOf(pid_t postmaster) {
  std::vector<pid_t> pids = ChildPids(postmaster);
  pids.insert(pids.begin(), postmaster);
  return pids;
}

// Ask for all of a trial, again and again, and take what they get.
class Readers {
 public:
  Readers(const std::string& address, const std::string& trial, int count) {
    for (int i = 0; i < count; ++i) {
      workers_.push_back(
          std::make_unique<Worker>("reader", [this, address, trial] { Run(address, trial); }));
    }
  }
  ~Readers() {
    ends_ = true;
    for (const auto& worker : workers_) worker->Join();
  }
  int answer_count() const { return answer_count_; }
  int refusal_count() const { return refusal_count_; }

 private:
  void Run(const std::string& address, const std::string& trial) {
    const auto stub =
        v1::QueryService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
    while (!ends_) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(2));
      v1::ReadSamplesRequest request;
      request.mutable_trial()->set_external_id(trial);
      const auto call = stub->ReadSamples(&context, request);
      v1::ReadSamplesResponse response;
      while (!ends_ && call->Read(&response)) continue;
      context.TryCancel();
      ++(call->Finish().ok() ? answer_count_ : refusal_count_);
    }
  }

  std::atomic<bool> ends_ = false;
  std::atomic<int> answer_count_ = 0;
  std::atomic<int> refusal_count_ = 0;
  std::vector<std::unique_ptr<Worker>> workers_;
};

enum class Harm { kStopped, kKilled };

struct Row {
  const char* name;
  std::int64_t limit_mib = 512;
  GreedyStreams::Load load;
  Harm harm = Harm::kStopped;
  absl::Duration away = absl::Seconds(8);
  // Without a step forward.
  absl::Duration patience = absl::Seconds(40);
  std::vector<std::string> options = {};
};

// Until all is acked. How long that takes is up to the machine: new series rest between turns of a thousand, and four tests at
// once share two processors. So nobody waits for a time in all, but for each step forward, which is told: what is acked, and
// how many series are made.
bool AwaitAllAcked(const Scene& scene, const GreedyStreams& streams, const Row& row,
                   const std::string& database_url) {
  const auto told = [&] {
    return absl::StrCat(
        "acked ", streams.acked_sample_count(), " samples, series ",
        DatabaseText(database_url, absl::StrCat("select series_count from stepwell.trials where"
                                                " external_id = '",
                                                row.load.trial, "'")));
  };
  std::string last = told();
  absl::Duration since = scene.Elapsed();
  absl::Duration look = since;
  scene.Await("all acked, or none for a while", absl::Minutes(5), [&] {
    if (streams.done()) return true;
    if (scene.Elapsed() < look) return false;
    look = scene.Elapsed() + absl::Seconds(1);
    if (std::string now = told(); now != last) {
      last = std::move(now);
      since = scene.Elapsed();
      scene.Say(last);
    }
    return scene.Elapsed() - since > row.patience;
  });
  return streams.done();
}

void StayBelow(const Row& row) {
  Scene scene(row.name);
  std::vector<std::string> options = row.options;
  options.push_back(absl::StrCat("--memory-bytes=", row.limit_mib, "MiB"));
  MasterProcess master({scene.path(""), "master", "", std::move(options)});
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  const pid_t pid = master.pid();
  std::printf("%s: resident %lld MiB idle\n", row.name,
              static_cast<long long>(MemoryOf(pid, "VmRSS") >> 20));
  GreedyStreams streams(master.grpc_address(), row.load);
  ASSERT_TRUE(scene.Await("first acks", absl::Seconds(60), [&] { return streams.has_begun(); }))
      << master.LogTail();
  const Readers readers(master.grpc_address(), row.load.trial, 4);
  const auto most_mib = [&] { return static_cast<long long>(MemoryOf(pid, "VmHWM") >> 20); };
  const auto told = [&](const char* when) {
    scene.Say(absl::StrCat("most resident ", most_mib(), " MiB ", when, ", now ",
                           MemoryOf(pid, "VmRSS") >> 20, "; streams broken ", streams.break_count(),
                           " ", streams.LastBreak()));
  };
  const std::vector<pid_t> postgres = ProcessesOf(master.PostmasterPid());
  ASSERT_GT(postgres.size(), 1U);
  const auto signal_all = [&](int signal) {
    for (const pid_t each : postgres) kill(each, signal);
  };
  told("with all open");
  signal_all(SIGSTOP);
  streams.LetGo();
  const absl::Duration until = scene.Elapsed() + row.away;
  scene.Await("the database is away", row.away + absl::Seconds(5),
              [&] { return scene.Elapsed() >= until; });
  told("beside a database that stood");
  if (row.harm == Harm::kKilled) signal_all(SIGKILL);
  signal_all(SIGCONT);
  EXPECT_TRUE(AwaitAllAcked(scene, streams, row, master.database_url()))
      << "acked " << streams.acked_sample_count() << " samples; streams broken "
      << streams.break_count() << " " << streams.LastBreak() << "\n"
      << master.LogTail();
  told("once it was back");
  ASSERT_TRUE(master.running()) << master.LogTail();
  MasterClient client(master.grpc_address());
  EXPECT_EQ(client.Flush(), "");
  told("in the end");
  EXPECT_LT(MemoryOf(pid, "VmHWM"), Bounds::OfMaster(row.limit_mib << 10).memory_kib << 10);
  EXPECT_EQ(DatabaseText(master.database_url(),
                         absl::StrCat("select count(*) || ' ' || count(distinct s.value) from"
                                      " stepwell.trials t, stepwell.samples(t.trial_id, 'test',"
                                      " 'value') s where t.external_id = '",
                                      row.load.trial, "'")),
            absl::StrCat(streams.acked_sample_count(), " ", streams.acked_sample_count()));
  std::printf("%s: most %lld MiB of %lld; readers answered %d, refused %d\n", row.name, most_mib(),
              static_cast<long long>(row.limit_mib), readers.answer_count(),
              readers.refusal_count());
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

TEST(MemoryLimitTest, FullChunksBesideADatabaseThatStands) {
  StayBelow(
      {.name = "256 streams of chunks of 1 MiB", .load = {.stream_count = 256, .chunk_count = 2}});
}

TEST(MemoryLimitTest, DefinitionsBesideADatabaseThatIsKilled) {
  // Beside readers who list its series, 2 KB each.
  StayBelow({.name = "16 streams of definitions of 4 MiB",
             .load = {.stream_count = 16, .chunk_count = 1, .definition_count = 1900},
             .harm = Harm::kKilled});
}

TEST(MemoryLimitTest, DefinitionsThatSayNothingBeyondTheirRate) {
  // Each builds a hundred times as much as it has bytes; most of them wait for their rate.
  StayBelow(
      {.name = "128 streams of 480 KB of empty definitions",
       .limit_mib = 1024,
       .load = {.stream_count = 128,
                .chunk_count = 1,
                .chunk_bytes = 0,
                .empty_definition_count = 240'000},
       .away = absl::Seconds(4),
       // Many are read at once, by as many threads: on a busy machine all of them come late, together.
       .patience = absl::Seconds(120),
       .options = {"--ingest-bytes-per-second=1MiB"}});
}

TEST(MemoryLimitTest, LongEachLoadEachHarmAndTheDefault) {
  const GreedyStreams::Load chunks{.stream_count = 256, .chunk_count = 6, .chunk_samples = 20'000};
  const GreedyStreams::Load definitions{
      .stream_count = 64, .chunk_count = 2, .definition_count = 1900};
  for (const Row& row : {
           Row{"chunks, stopped", 512, chunks, Harm::kStopped, absl::Seconds(30)},
           Row{"chunks, killed", 512, chunks, Harm::kKilled, absl::Seconds(15)},
           Row{"definitions, stopped", 1024, definitions, Harm::kStopped, absl::Seconds(30)},
           Row{"definitions, killed", 1024, definitions, Harm::kKilled, absl::Seconds(15)},
           Row{"chunks, 1 GiB", 1024, chunks, Harm::kStopped, absl::Seconds(15)},
       }) {
    SCOPED_TRACE(row.name);
    StayBelow(row);
  }
}

}  // namespace
}  // namespace stepwell::faults
