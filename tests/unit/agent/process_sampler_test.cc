#include "client/agent/process_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/unit/agent/sensors/machine.h"

namespace stepwell::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class ProcessSamplerTest : public ::testing::Test {
 protected:
  void Visit(pid_t pid, const SensorSelection& selection = {}) {
    sampler_.Visit({.pid = pid, .batch = 7}, selection);
  }
  // Names of what was sealed, with the number of ticks; losses as their counts.
  std::vector<std::string> Sealed() {
    std::vector<std::string> texts;
    for (const ChunkBuilder::Body& bytes : builder_.Seal()) {
      pb::ChunkBody body;
      EXPECT_TRUE(body.ParseFromString(bytes.bytes));
      for (const pb::Table& table : body.tables()) {
        for (const pb::Column& column : table.columns()) {
          texts.push_back(catalog_.definition(column.ref()).name() + " " +
                          std::to_string(1 + table.time_deltas_us_size()));
        }
      }
      for (const pb::Loss& loss : body.losses()) {
        texts.push_back(loss.metric_group() + " lost " + std::to_string(loss.sample_count()));
      }
    }
    return texts;
  }
  Machine machine_;
  SeriesCatalog catalog_;
  ChunkBuilder builder_{catalog_};
  FakeClock clock_;
  ProcessSampler sampler_{catalog_, builder_, clock_};
};

TEST_F(ProcessSamplerTest, SamplesAtOnceWithRatesAfter100MsAndThenOnceAnInterval) {
  Visit(getpid());
  Visit(getpid());
  clock_.Advance(absl::Milliseconds(100));
  Visit(getpid());
  clock_.Advance(absl::Milliseconds(100));
  Visit(getpid());
  EXPECT_THAT(Sealed(), UnorderedElementsAre("cpu_process_threads 2", "memory_process_resident 2",
                                             "cpu_util_process 2", "disk_process_read 2",
                                             "disk_process_write 2"));
}

TEST_F(ProcessSamplerTest, AProcessThatTheAgentDoesNotSeeAndGroupsThatNobodyWantsGiveNothing) {
  Visit(0);
  Visit(getpid(), SensorSelection::Parse({.groups = "gpu"}).value());
  EXPECT_THAT(Sealed(), IsEmpty());
}

TEST_F(ProcessSamplerTest, WhatFailedAtTheEndIsTold) {
  machine_.Write("proc/42/stat", "42 (x) S 1 2\n");
  machine_.Write("proc/42/statm", "5 1 2 1 0 8 0\n");
  machine_.Write("proc/42/io", "read_bytes: 1\nwrite_bytes: 1\n");
  ProcessSampler sampler(catalog_, builder_, clock_, machine_.root());
  for (int i = 0; i < 3; ++i) {
    sampler.Visit({.pid = 42}, {});
    clock_.Advance(absl::Seconds(1));
  }
  Sealed();
  sampler.End();
  EXPECT_THAT(Sealed(), ElementsAre("cpu lost 4"));
  sampler.End();
  EXPECT_THAT(Sealed(), IsEmpty());
}

}  // namespace
}  // namespace stepwell::agent
