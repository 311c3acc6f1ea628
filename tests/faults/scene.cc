#include "tests/faults/scene.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "tests/faults/master_client.h"
#include "tests/faults/seed.h"

namespace stepwell::faults {
namespace {

constexpr char kTrial[] = "faults";

std::string Tail(const std::string& path, std::size_t bytes) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return text.size() > bytes ? "..." + text.substr(text.size() - bytes) : text;
}

}  // namespace

Scene::Scene(const std::string& name)
    : name_(name),
      start_(absl::Now()),
      seed_(Seed()),
      random_(seed_),
      spool_dir_(scratch_ / "spool") {
  std::cout << name_ << ": in " << scratch_.path() << "\n";
  mkdir(spool_dir_.c_str(), 0700);
}

// Producers first: an agent that goes before them would be missed.
Scene::~Scene() {
  producers_.clear();
  agent_.Kill();
}

void Scene::StartsNobody() { ::testing::Test::RecordProperty(kStartsNobody, 1); }

void Scene::Say(const std::string& what) const {
  std::cout << absl::StrFormat("%7.2f s  ", absl::ToDoubleSeconds(Elapsed())) << what << std::endl;
}

bool Scene::Await(const std::string& what, absl::Duration patience,
                  const std::function<bool()>& condition) const {
  const absl::Time begin = absl::Now();
  const bool came = Eventually(condition, patience);
  Say(absl::StrFormat("%s %s %.2f s", what, came ? "after" : "NOT within",
                      absl::ToDoubleSeconds(absl::Now() - begin)));
  return came;
}

std::string Scene::Program(const std::string& name) const {
  return programs_.empty() ? testing::BuiltProgram(name) : programs_ + "/" + name;
}

void Scene::StartAgent(const std::string& server, const std::vector<std::string>& flags,
                       const std::string& failpoints) {
  std::vector<std::string> words = {Program("stepwell"), "agent",    "--server",          server,
                                    "--spool-dir",       spool_dir_, "--no-auto-sampling"};
  words.insert(words.end(), flags.begin(), flags.end());
  std::map<std::string, std::string> environment;
  if (!failpoints.empty()) environment["STEPWELL_FAILPOINTS"] = failpoints;
  agent_.Start(words, environment, path("agent.log"));
}

ChildProcess& Scene::StartTrainer(int rank, const std::map<std::string, std::string>& options) {
  std::map<std::string, std::string> all = options;
  all.insert({"--spool-dir", spool_dir_});  // where the test wants no other
  ::testing::Test::RecordProperty(kStartsTrainer, 1);
  return StartProducer("fault_trainer", rank, std::move(all));
}

ChildProcess& Scene::StartRawWriter(int rank, const std::string& servers,
                                    const std::map<std::string, std::string>& options) {
  std::map<std::string, std::string> all = {{"--servers", servers}};
  all.insert(options.begin(), options.end());
  return StartProducer("fault_raw_writer", rank, std::move(all));
}

ChildProcess& Scene::StartCrowd(int rank, const std::string& server,
                                const std::map<std::string, std::string>& options) {
  const std::string spools = path(absl::StrCat("crowd-", rank));
  mkdir(spools.c_str(), 0700);
  std::map<std::string, std::string> all = {{"--servers", server}, {"--spool-dir", spools}};
  all.insert(options.begin(), options.end());
  return StartProducer("fault_writer_crowd", rank, std::move(all));
}

ChildProcess& Scene::StartProducer(const std::string& program, int rank,
                                   std::map<std::string, std::string> options) {
  ledgers_.push_back(path(absl::StrCat("ledger-", ledgers_.size())));
  std::ofstream(ledgers_.back(), std::ios::app).flush();
  options.insert({{"--trial", kTrial},
                  {"--log", ledgers_.back()},
                  {"--rank", absl::StrCat(rank)},
                  {"--seed", absl::StrCat(seed_ & 0xffffffff)}});
  std::vector<std::string> words = {Program(program)};
  for (const auto& [name, value] : options) words.insert(words.end(), {name, value});
  producers_.push_back(std::make_unique<ChildProcess>());
  producers_.back()->Start(words, {}, path("producers.log"));
  return *producers_.back();
}

void Scene::StopProducers(absl::Duration patience) {
  std::vector<ChildProcess*> stopped;
  for (const auto& producer : producers_) {
    if (!producer->running()) continue;
    producer->Signal(SIGTERM);
    stopped.push_back(producer.get());
  }
  const absl::Time deadline = absl::Now() + patience;
  for (ChildProcess* producer : stopped) {
    EXPECT_EQ(producer->Wait(deadline - absl::Now()), "exit 0") << Logs();
  }
  Say(absl::StrCat(stopped.size(), " producers closed"));
}

Ledger Scene::ReadLedgers() const {
  Ledger ledger;
  for (const std::string& path : ledgers_) EXPECT_EQ(ReadLedger(path, ledger), "");
  return ledger;
}

Allowance Scene::DropsOfRecorders() const {
  return {.causes = {Cause::kRingFull}, .count_max = ReadLedgers().dropped_count};
}

Verdict Scene::ExpectExact(MasterProcess& master, Demand demand, const Allowance& allowed) {
  // A database that has just been killed may be away for a moment.
  MasterClient client(master.grpc_address());
  EXPECT_TRUE(Await("flushed", absl::Seconds(60), [&] { return client.Flush().empty(); }))
      << client.Flush() << master.LogTail();
  const Ledger ledger = ReadLedgers();
  std::set<std::string> series;
  for (const LoggedSample& sample : ledger.samples) series.insert(sample.series);
  stored_ = StoredTrial();
  EXPECT_EQ(ReadStoredTrial(master.database_url(), kTrial, {series.begin(), series.end()}, stored_),
            "");
  const Verdict verdict = Check(ledger, stored_.samples, stored_.gaps, demand, allowed);
  Say(absl::StrCat("recorded ", ledger.samples.size(), ", of them acked ", ledger.acked_count(),
                   ", dropped by recorders ", ledger.dropped_count));
  Say(absl::StrCat("checker: ", verdict.ToText()));
  for (const std::string& gap : stored_.gap_texts) Say("gap: " + gap);
  EXPECT_TRUE(verdict.ok()) << verdict.ToText() << "\n" << Logs() << "\n" << master.LogTail();
  return verdict;
}

std::string Scene::Logs() const {
  return absl::StrCat("-- agent\n", Tail(path("agent.log"), 3000), "\n-- producers\n",
                      Tail(path("producers.log"), 2000));
}

}  // namespace stepwell::faults
