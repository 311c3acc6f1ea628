// A trace is uploaded beside a training of the same trial, and the master dies behind one part of it and before another's
// COMMIT. The trace comes out as it went in, and of the training nothing is lost or doubled.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/faults/database_text.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

// Seven parts once it is packed.
constexpr std::size_t kTraceBytes = 6'500'000;

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(CutUploadTest, GoesOnWhereItWasAndTheTrainingLosesNothing) {
  Scene scene("cut upload");
  MasterProcess master({.scratch = scene.path("")});
  MasterClient client(master.grpc_address());
  ASSERT_TRUE(master.StartAndWait({.failpoints = "trace_part_after_commit=exit@2"}))
      << master.LogTail();
  scene.StartAgent(master.grpc_address());
  for (const int rank : {0, 1}) scene.StartTrainer(rank, {{"--world-size", "2"}});
  ASSERT_TRUE(scene.Await("20 chunks", absl::Seconds(60), [&] {
    const auto status = client.Status();
    return status && status->chunks_committed() >= 20;
  })) << scene.Logs();
  std::string trace;
  while (trace.size() < kTraceBytes) absl::StrAppend(&trace, scene.random()(), "\n");
  std::ofstream(scene.path("flops.txt"), std::ios::binary) << trace;
  const std::string program = testing::BuiltProgram("stepwell");
  ChildProcess import;
  import.Start({program, "trace", "import", "faults", scene.path("flops.txt"), "--server",
                master.grpc_address(), "--timeout", "2m"},
               {}, scene.path("import.log"));
  const auto await_death = [&](const std::string& when) {
    ASSERT_TRUE(scene.Await(when, absl::Seconds(60), [&] { return !master.running(); }))
        << ReadText(scene.path("import.log"));
  };
  ASSERT_NO_FATAL_FAILURE(await_death("it dies behind a part"));
  ASSERT_TRUE(master.StartAndWait({.failpoints = "trace_part_before_commit=exit@1"}))
      << master.LogTail();
  ASSERT_NO_FATAL_FAILURE(await_death("it dies before another's COMMIT"));
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  EXPECT_EQ(import.Wait(absl::Seconds(120)), "exit 0") << ReadText(scene.path("import.log"));
  scene.StopProducers(absl::Seconds(60));
  ChildProcess get;
  get.Start({program, "trace", "get", "faults", "1", "--output", scene.path("out.txt"), "--server",
             master.grpc_address()},
            {}, scene.path("get.log"));
  EXPECT_EQ(get.Wait(absl::Seconds(60)), "exit 0") << ReadText(scene.path("get.log"));
  EXPECT_TRUE(ReadText(scene.path("out.txt")) == trace);
  EXPECT_EQ(DatabaseText(master.database_url(), "select count(*) from stepwell.trace_parts"), "7")
      << "each part once";
  const Verdict verdict = scene.ExpectExact(master, Demand::kRecorded);
  EXPECT_EQ(verdict.declared_count, 0U);
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
