// Two agents on one machine, in a container each with a GPU of its own, of which the master lets one
// sample: all that there is is stored, and once. The machine is two false roots of files and two
// copies of the stand-in for NVIDIA's library.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/agent/sampler_writer.h"
#include "tests/support/places/places.h"

namespace stepwell::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;

// "memory_free" or "gpu_util{GPU-stub-0}": the times of its samples.
using Stored = std::map<std::string, std::set<std::int64_t>>;

// An agent's sampler, and what the master has of it.
class SampledContainer {
 public:
  // Its GPU is GPU-stub-`number`.
  SampledContainer(const fs::path& path, int number) : path_(path) {
    Write("root/proc/stat", "cpu  100 0 50 800 50 0 0 0 40 0\n");
    Write("root/proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 900 kB\n");
    Write("root/proc/self/mountinfo", "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    Write("root/proc/self/cgroup", absl::StrCat("0::/pod/", number, "\n"));
    const std::string group = absl::StrCat("root/sys/fs/cgroup/pod/", number, "/");
    Write(group + "memory.current", absl::StrCat(1000 + number, "\n"));
    Write(group + "memory.stat", "inactive_file 0\n");
    Write("nvml/scenario", absl::StrCat("gpus 1\ngpu 0 number ", number, "\n"));
    fs::copy_file(BuildPlace("nvml_stub/new/libnvidia-ml.so.1"), path_ / "nvml/libnvidia-ml.so.1");
    fs::create_directories(path_ / "writer");
  }
  void Open() {
    WriterIdentity identity;
    identity.writer = Uuid::Random();
    identity.trial = "t";
    identity.is_sampler = true;
    identity.placement = {{"pod", path_.filename()}};
    SamplerWriter::Settings settings;
    settings.selection.SetInterval(absl::Milliseconds(20));
    settings.machine.root = path_ / "root";
    settings.machine.nvml_path = path_ / "nvml/libnvidia-ml.so.1";
    settings.machine.amd_paths = {"/nowhere", "/nowhere"};
    settings.machine.set.first_look_patience = absl::Seconds(20);
    auto sampler = SamplerWriter::Open(
        FileDescriptor(open((path_ / "writer").c_str(), O_RDONLY | O_DIRECTORY)), identity,
        settings, {sender_, RealClock::Get(), AgentFace(), Spool::Options()});
    ASSERT_TRUE(sampler.ok()) << sampler.status();
    sampler_ = *std::move(sampler);
    sender_.OnConnected();
  }
  // One visit of the agent's loop, with a master that answers once `sampling` is known.
  void Visit(const std::optional<pb::Sampling>& sampling) {
    sampler_->Visit({});
    Talk(sampling);
  }
  void Close(const std::optional<pb::Sampling>& sampling) {
    sampler_->Close({});
    Talk(sampling);
  }
  // A directive of its own.
  void Tell(const pb::Sampling& sampling) {
    pb::StreamChunksResponse said;
    said.mutable_directive()->set_writer(writer_);
    *said.mutable_directive()->mutable_sampling() = sampling;
    sender_.OnMessage(said, RealClock::Get().Monotonic());
  }

  const Stored& stored() const { return stored_; }
  std::vector<std::string> gpus() const { return {gpus_.begin(), gpus_.end()}; }
  std::size_t Count(const std::string& series) const {
    const auto found = stored_.find(series);
    return found == stored_.end() ? 0 : found->second.size();
  }
  void Forget() { stored_.clear(); }

 private:
  void Write(const std::string& name, const std::string& text) {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::trunc) << text;
  }
  void Talk(const std::optional<pb::Sampling>& sampling) {
    if (waiting_ && sampling) Answer(*std::exchange(waiting_, std::nullopt), sampling);
    while (auto said = sender_.Next(RealClock::Get().Monotonic())) {
      if (said->has_open()) {
        writer_ = said->open().writer();
        waiting_ = said->open();
        if (sampling) Answer(*std::exchange(waiting_, std::nullopt), sampling);
      } else if (said->has_definitions()) {
        for (const pb::Definition& definition : said->definitions().definitions()) {
          const auto device = definition.labels().find("device");
          if (device != definition.labels().end()) gpus_.insert(device->second);
          series_[definition.ref()] = TextOf(definition);
        }
      } else if (said->has_chunk()) {
        Take(said->chunk());
      }
    }
  }
  void Answer(const pb::Open& open, const std::optional<pb::Sampling>& sampling) {
    pb::StreamChunksResponse answer;
    answer.mutable_opened()->set_writer(open.writer());
    answer.mutable_opened()->set_credit_bytes(1 << 30);
    pb::Directive& directive = *answer.mutable_opened()->add_directives();
    directive.set_writer(open.writer());
    *directive.mutable_sampling() = *sampling;
    sender_.OnMessage(answer, RealClock::Get().Monotonic());
  }
  static std::string TextOf(const pb::Definition& definition) {
    for (const char* label : {"device", "container", "pod"}) {
      const auto found = definition.labels().find(label);
      if (found != definition.labels().end()) {
        return absl::StrCat(definition.name(), "{", found->second, "}");
      }
    }
    return definition.name();
  }
  void Take(const pb::Chunk& chunk) {
    pb::ChunkBody body;
    ASSERT_TRUE(body.ParseFromString(chunk.body()));
    for (const pb::Table& table : body.tables()) {
      std::vector<std::int64_t> times = {table.first_time_us()};
      for (const std::int64_t delta : table.time_deltas_us()) times.push_back(times.back() + delta);
      for (const pb::Column& column : table.columns()) {
        stored_[series_.at(column.ref())].insert(times.begin(), times.end());
      }
    }
    pb::StreamChunksResponse answer;
    answer.mutable_ack()->set_writer(chunk.writer());
    answer.mutable_ack()->set_committed_sequence(chunk.sequence());
    answer.mutable_ack()->set_credit_bytes(1 << 30);
    sender_.OnMessage(answer, RealClock::Get().Monotonic());
  }

  const fs::path path_;
  Sender sender_;
  std::unique_ptr<SamplerWriter> sampler_;
  std::string writer_;
  std::optional<pb::Open> waiting_;
  std::set<std::string> gpus_;
  std::map<std::uint32_t, std::string> series_;
  Stored stored_;
};

pb::Sampling On() {
  pb::Sampling sampling;
  sampling.set_on(true);
  sampling.set_shared_with(1);
  return sampling;
}

pb::Sampling Off(const std::vector<std::string>& gpus) {
  pb::Sampling sampling;
  for (const std::string& gpu : gpus) sampling.add_gpus(gpu);
  return sampling;
}

class SharedMachineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-shared-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    path_ = pattern;
    one_ = std::make_unique<SampledContainer>(path_ / "one", 1);
    two_ = std::make_unique<SampledContainer>(path_ / "two", 2);
    one_->Open();
    two_->Open();
  }
  void TearDown() override {
    one_ = nullptr;
    two_ = nullptr;
    fs::remove_all(path_);
  }
  bool VisitUntil(const std::optional<pb::Sampling>& of_one,
                  const std::optional<pb::Sampling>& of_two, const std::function<bool()>& holds) {
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    while (!holds()) {
      if (absl::Now() > deadline) return false;
      one_->Visit(of_one);
      two_->Visit(of_two);
      absl::SleepFor(absl::Milliseconds(1));
    }
    return true;
  }
  fs::path path_;
  std::unique_ptr<SampledContainer> one_;
  std::unique_ptr<SampledContainer> two_;
};

TEST_F(SharedMachineTest, AgentRule07_EachGpuAndContainerIsStoredAndTheMachineOnce) {
  // The second is answered when the first has named its GPU, as the master's second directive tells.
  ASSERT_TRUE(VisitUntil(On(), std::nullopt, [this] {
    return one_->Count("gpu_util{GPU-stub-1}") >= 3 && one_->gpus().size() == 1;
  }));
  EXPECT_THAT(two_->stored(), IsEmpty());
  ASSERT_TRUE(VisitUntil(On(), Off(one_->gpus()), [this] {
    return two_->Count("gpu_util{GPU-stub-2}") >= 3 && one_->Count("memory_free") >= 10;
  }));
  one_->Close(On());
  two_->Close(Off(one_->gpus()));
  for (const char* series : {"memory_free", "memory_total", "shared_with"}) {
    EXPECT_GT(one_->Count(series), 0u) << series;
    EXPECT_EQ(two_->Count(series), 0u) << series;
  }
  EXPECT_THAT(one_->gpus(), ElementsAre("GPU-stub-1"));
  EXPECT_THAT(two_->gpus(), ElementsAre("GPU-stub-2"));
  EXPECT_GT(one_->Count("memory_container_used{pod/1}"), 0u);
  EXPECT_GT(two_->Count("memory_container_used{pod/2}"), 0u);
  EXPECT_EQ(one_->Count("memory_container_used{pod/2}"), 0u);
  // Where each of them is.
  EXPECT_GT(one_->Count("placement{one}"), 0u);
  EXPECT_GT(two_->Count("placement{two}"), 0u);
}

// Its first ticks are of the time before the answer: none of them is stored beside the other's, none
// of its own is lost.
TEST_F(SharedMachineTest, TicksBeforeTheAnswerAreToldAsTheAnswerSays) {
  const absl::Time begin = absl::Now();
  const std::int64_t begin_us = absl::ToUnixMicros(begin);
  ASSERT_TRUE(VisitUntil(On(), std::nullopt, [&] {
    return absl::Now() - begin > absl::Milliseconds(200) && one_->Count("memory_free") > 2;
  }));
  ASSERT_TRUE(VisitUntil(On(), Off({"GPU-stub-1"}),
                         [this] { return two_->Count("gpu_util{GPU-stub-2}") >= 10; }));
  EXPECT_THAT(two_->stored(), Not(Contains(Key("memory_free"))));
  const std::int64_t first_us = *two_->stored().at("gpu_util{GPU-stub-2}").begin();
  EXPECT_LT(first_us - begin_us, 150'000) << "it was sampled at once";
}

TEST_F(SharedMachineTest, AMasterThatIsSlowToAnswerCostsNoSample) {
  const absl::Time begin = absl::Now();
  ASSERT_TRUE(VisitUntil(On(), std::nullopt,
                         [&] { return absl::Now() - begin > absl::Milliseconds(2500); }));
  // They are in the spool by now, whatever the answer will be.
  ASSERT_TRUE(VisitUntil(On(), On(), [this] { return two_->Count("memory_free") >= 110; }));
}

// Both see one GPU: it is the first one's, once that one has named it.
TEST_F(SharedMachineTest, AGpuThatTheOtherNamesLaterIsLeftToIt) {
  ASSERT_TRUE(
      VisitUntil(On(), Off({}), [this] { return two_->Count("gpu_util{GPU-stub-2}") >= 3; }));
  two_->Tell(Off({"GPU-stub-1", "GPU-stub-2"}));
  // What was on its way.
  const absl::Time told = absl::Now();
  ASSERT_TRUE(
      VisitUntil(On(), Off({}), [&] { return absl::Now() - told > absl::Milliseconds(100); }));
  two_->Forget();
  const std::size_t count = one_->Count("memory_free");
  ASSERT_TRUE(VisitUntil(On(), Off({}), [&] { return one_->Count("memory_free") >= count + 10; }));
  EXPECT_EQ(two_->Count("gpu_util{GPU-stub-2}"), 0u);
  EXPECT_GT(two_->Count("memory_container_used{pod/2}"), 0u);
  // The other ended.
  two_->Tell(On());
  EXPECT_TRUE(VisitUntil(On(), On(), [this] {
    return two_->Count("memory_free") >= 3 && two_->Count("gpu_util{GPU-stub-2}") >= 3;
  }));
}

}  // namespace
}  // namespace stepwell::agent
