// Traces by command, on a real master and PostgreSQL: brought, listed, taken out, refused, and brought by an
// upload that outlives its master.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/steady_time.h"
#include "nlohmann/json.hpp"
#include "tests/e2e/traces_fixture.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {
namespace {

using TracesTest = TracesFixture;

TEST_F(TracesTest, WhatWasImportedIsListedAndComesBack) {
  StartMaster({"--sweep-interval", "200ms"});
  Record("kept", 100);
  const std::string first = Write("ep0-ba7-rank0.json", kTwoEvents);
  const std::string second = Write("host.pt.trace.json", kTwoEvents);
  const std::string plane = Write("host.xplane.pb", std::string("\x0a\x03xyz", 5));
  const Ran brought = Command({"trace", "import", "kept", first, plane});
  EXPECT_EQ(brought.ending, "exit 0") << brought.output;
  EXPECT_EQ(Command({"trace", "import", "kept", second, "--rank", "3"}).ending, "exit 0");
  // Once more: it is there.
  EXPECT_EQ(
      Command({"trace", "import", "kept", first}).output,
      "trace 1: ep0-ba7-rank0.json.gz, " +
          brought.output.substr(brought.output.find(".gz, ") + 5,
                                brought.output.find('\n') - brought.output.find(".gz, ") - 4));
  const auto list = List("kept");
  ASSERT_EQ(list["traces"].size(), 3U) << list.dump(2);
  EXPECT_EQ(list["traces"][0]["header"]["rank"], 0);
  EXPECT_EQ(list["traces"][0]["header"]["epoch"], 0);
  EXPECT_EQ(list["traces"][0]["header"]["last_batch"], 6);
  EXPECT_EQ(list["traces"][1]["header"]["format"], "xplane");
  EXPECT_EQ(list["traces"][2]["header"]["rank"], 3);
  EXPECT_EQ(list["traces"][2]["state"], "complete");

  const std::string out = scratch_ / "out";
  const Ran got = Command({"trace", "get", "kept", "--directory", out});
  EXPECT_EQ(got.ending, "exit 0") << got.output;
  EXPECT_EQ(ReadWhole(out + "/host.xplane.pb"), ReadWhole(plane));
  // Packed as it is, a merge reads it.
  const std::string merged = scratch_ / "merged.json";
  ChildProcess merge;
  merge.Start({BuiltProgram("stepwell"), "trace", "merge", out + "/ep0-ba7-rank0.json.gz",
               out + "/host.pt.trace.json.gz", "--rank", out + "/host.pt.trace.json.gz=3",
               "--one-machine", "--output", merged},
              {}, scratch_ / "merge-log");
  EXPECT_EQ(merge.Wait(absl::Seconds(60)), "exit 0") << ReadWhole(scratch_ / "merge-log");

  const std::string at_master = scratch_ / "at-master.json";
  const Ran stored = Command({"trace", "merge", "--trial", "kept", "--output", at_master});
  EXPECT_EQ(stored.ending, "exit 0") << stored.output;
  EXPECT_NE(stored.output.find("4 events of 2 traces"), std::string::npos) << stored.output;
  EXPECT_EQ(nlohmann::json::parse(ReadWhole(at_master))["traceEvents"],
            nlohmann::json::parse(ReadWhole(merged))["traceEvents"]);

  // A folder that nobody named for traces: what is there stays.
  std::ofstream(out + "/host.xplane.pb") << "mine";
  ChildProcess here;
  here.Start({"/bin/sh", "-c", R"(cd "$0" && exec "$1" trace get kept --server "$2")", out,
              BuiltProgram("stepwell"), master_->grpc_address()},
             {}, scratch_ / "here-log");
  EXPECT_EQ(here.Wait(absl::Seconds(60)), "exit 1");
  EXPECT_NE(ReadWhole(scratch_ / "here-log").find("is here already"), std::string::npos);
  EXPECT_EQ(ReadWhole(out + "/host.xplane.pb"), "mine");

  const std::string logs = scratch_ / "logs";
  const Ran laid = Command({"trace", "get", "kept", "--tensorboard", logs});
  EXPECT_EQ(laid.ending, "exit 0") << laid.output;
  EXPECT_TRUE(std::filesystem::exists(logs + "/kept/plugins/profile/profile/trace2.xplane.pb"))
      << laid.output;
  EXPECT_TRUE(std::filesystem::exists(logs + "/kept/rank3.3.pt.trace.json.gz")) << laid.output;
  EXPECT_TRUE(
      std::filesystem::exists(logs + "/kept/plugins/profile/ep0-ba6/rank0_trace1.trace.json.gz"))
      << laid.output;

  EXPECT_EQ(Command({"trace", "delete", "kept", "2"}).ending, "exit 0");
  EXPECT_EQ(List("kept")["traces"].size(), 2U);
  EXPECT_EQ(Command({"admin", "archive", "kept"}).ending, "exit 0");
  EXPECT_EQ(Command({"admin", "delete", "kept", "--yes"}).ending, "exit 0");
  // Sweeps do what the call has no time for.
  const auto is_gone = [&] {
    return QueryNumber("select count(*) from stepwell.trace_parts where trial_id <> $1", 0) == 0;
  };
  EXPECT_TRUE(Eventually(is_gone, absl::Seconds(120)));
}

TEST_F(TracesTest, AMergeAtTheMasterHasWhatMachinesMeasuredAndAProfileIsBrokenDown) {
  StartMaster();
  RawStream stream(*client_);
  const Uuid writer = Uuid::Random();
  Open(stream, writer, "measured");
  stream.Send(
      DefinitionMessage(writer, {{.ref = 2, .metric_group = "memory", .name = "memory_free"}}));
  const std::int64_t time_us = start_us_;
  stream.Send(ChunkMessage(
      writer, 1,
      OneColumn(2, time_us - 3'000'000, 500'000, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13})));
  ASSERT_TRUE(stream.WaitAck(writer, 1).has_value()) << master_->LogTail();
  const std::string step = absl::StrCat(
      R"({"schemaVersion":1,"traceEvents":[{"ph":"X","cat":"user_annotation","name":"ProfilerStep#4",)"
      R"("ts":)",
      time_us, R"(,"dur":1000,"pid":1,"tid":1},{"ph":"X","cat":"cpu_op","name":"aten::add","ts":)",
      time_us + 600, R"(,"dur":300,"pid":1,"tid":1}]})");
  const std::string file = Write("rank0.pt.trace.json", step);
  EXPECT_EQ(Command({"trace", "import", "measured", file}).ending, "exit 0");

  const std::string merged = scratch_ / "merged.json";
  const Ran with = Command({"trace", "merge", "--trial", "measured", "--output", merged});
  EXPECT_EQ(with.ending, "exit 0") << with.output;
  EXPECT_NE(with.output.find("series of system metrics"), std::string::npos) << with.output;
  // A second more on both sides.
  std::vector<double> counts;
  const auto trace = nlohmann::json::parse(ReadWhole(merged), nullptr, false);
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "C") continue;
    EXPECT_EQ(event["name"], "memory_free rank=0");
    counts.push_back(event["args"]["value"].get<double>());
  }
  EXPECT_EQ(counts, (std::vector<double>{5, 6, 7, 8, 9}));
  const Ran without = Command(
      {"trace", "merge", "--trial", "measured", "--output", merged, "--without-system-metrics"});
  EXPECT_NE(without.output.find("2 events of 1 trace are in"), std::string::npos) << without.output;

  const Ran report = Command({"trace", "report", "--trial", "measured", "1", "--json"});
  EXPECT_EQ(report.ending, "exit 0") << report.output;
  const auto answer = nlohmann::json::parse(report.output, nullptr, false);
  ASSERT_TRUE(answer.is_object()) << report.output;
  const auto& steps = answer["steps"];
  ASSERT_EQ(steps.size(), 1U) << report.output;
  EXPECT_EQ(steps[0]["name"], "ProfilerStep#4");
  EXPECT_DOUBLE_EQ(steps[0]["class_seconds"]["processor"], 300e-6);
  EXPECT_EQ(Command({"trace", "report", "--trial", "measured", "2"}).ending, "exit 1");

  const std::string out = scratch_ / "perfetto";
  const Ran got = Command({"trace", "get", "measured", "--format", "perfetto", "--directory", out});
  EXPECT_EQ(got.ending, "exit 0") << got.output;
  EXPECT_EQ(ReadWhole(out + "/rank0.pt.trace.pftrace").substr(0, 1), "\n") << got.output;
}

// The clock of one of two machines is five seconds ahead: its trace is shifted, and what it measured with it.
TEST_F(TracesTest, WhatAMachineMeasuredLiesWhereItsTracesDo) {
  StartMaster();
  RawStream stream(*client_);
  const Uuid writer = Uuid::Random();
  v1::StreamChunksRequest opening = OpenMessage({.writer = writer, .external_id = "two-machines"});
  opening.mutable_open()->set_is_sampler(true);
  const std::string ahead = opening.open().agent_id();
  stream.Send(opening);
  stream.Send(
      DefinitionMessage(writer, {{.ref = 2, .metric_group = "memory", .name = "memory_free"}}));
  constexpr std::int64_t kAheadUs = 5'000'000;
  const std::int64_t time_us = start_us_;
  stream.Send(ChunkMessage(writer, 1,
                           OneColumn(2, time_us + kAheadUs - 2'750'000, 500'000,
                                     {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13})));
  ASSERT_TRUE(stream.WaitAck(writer, 1).has_value()) << master_->LogTail();
  const auto import = [&](int rank, const std::string& machine, std::int64_t ahead_us) {
    const std::string file = Write(
        absl::StrCat("ep0-ba7-rank", rank, ".json"),
        absl::StrCat(R"([{"ph":"X","name":"step","ts":)", time_us + ahead_us,
                     R"(,"dur":1000,"pid":1,"tid":1},{"ph":"M","name":"master_clock","args":)",
                     R"({"at_ns":)", (time_us + ahead_us) * 1000, R"(,"ahead_ns":)",
                     -ahead_us * 1000, R"(,"error_ns":50000,"trial":"default/two-machines"}}])"));
    const Ran ran = Command({"trace", "import", "two-machines", file, "--machine", machine});
    EXPECT_EQ(ran.ending, "exit 0") << ran.output;
  };
  import(0, "another", 0);
  import(1, ahead, kAheadUs);

  const std::string merged = scratch_ / "merged.json";
  const Ran ran = Command({"trace", "merge", "--trial", "two-machines", "--output", merged});
  EXPECT_EQ(ran.ending, "exit 0") << ran.output;
  EXPECT_NE(ran.output.find("clocks: within "), std::string::npos) << ran.output;
  const auto trace = nlohmann::json::parse(ReadWhole(merged), nullptr, false);
  const auto base_us = static_cast<double>(trace["baseTimeNanoseconds"].get<std::int64_t>() / 1000);
  int steps = 0;
  std::vector<double> counts;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "M") continue;
    const double off_us = base_us + event["ts"].get<double>() - static_cast<double>(time_us);
    if (event["ph"] == "C") {
      counts.push_back(event["args"]["value"].get<double>());
      EXPECT_NEAR(off_us, (counts.back() - 6.5) * 500'000, 2000) << event.dump();
    } else {
      ++steps;
      EXPECT_NEAR(off_us, 0, 2000) << event.dump();
    }
  }
  EXPECT_EQ(steps, 2);
  EXPECT_EQ(counts, (std::vector<double>{5, 6, 7, 8})) << ran.output;
}

// No master is needed for what the agent records.
TEST_F(TracesTest, AKilledTrainingLeavesItsTrace) {
  const std::string traces = scratch_ / "traces";
  const std::string temporary = scratch_ / "tmp";
  std::filesystem::create_directory(temporary);
  const std::string folder = scratch_ / "texts";
  std::filesystem::create_directory(folder);
  std::string text;
  while (text.size() < 20'000) text += "the quick brown fox jumps over the lazy dog. ";
  Write("texts/one.txt", text);
  ChildProcess training;
  training.Start({BuiltProgram("stepwell-demo"), "--data", folder, "--seconds", "120", "--quiet",
                  "--trial", "killed"},
                 {{"STEPWELL_OFFLINE", "1"},
                  {"STEPWELL_AGENT", ""},
                  {"STEPWELL_AGENT_IDLE_EXIT", "1"},
                  {"STEPWELL_SYSTEM_ROOT", "/no/such/root"},
                  {"STEPWELL_SHARED_MEMORY", temporary},
                  {"STEPWELL_TRACES", traces},
                  {"TMPDIR", temporary}},
                 scratch_ / "training-log");
  const std::string recording = traces + "/recording-rank0-0.pftrace";
  std::error_code error;
  const auto is_recorded = [&] { return std::filesystem::file_size(recording, error) + 1 > 5000; };
  ASSERT_TRUE(Eventually(is_recorded, absl::Seconds(60))) << ReadWhole(scratch_ / "training-log");
  training.Kill();
  std::string name;
  const auto is_finished = [&] {
    for (const auto& each : std::filesystem::directory_iterator(traces, error)) {
      name = each.path().filename();
    }
    return name.rfind("ep0-ba", 0) == 0;
  };
  ASSERT_TRUE(Eventually(is_finished, absl::Seconds(60))) << name;
  const std::string merged = scratch_ / "merged.json";
  ChildProcess merge;
  merge.Start({BuiltProgram("stepwell"), "trace", "merge", traces + "/" + name, "--output", merged},
              {}, scratch_ / "merge-log");
  EXPECT_EQ(merge.Wait(absl::Seconds(60)), "exit 0") << ReadWhole(scratch_ / "merge-log");
  const auto trace = nlohmann::json::parse(ReadWhole(merged), nullptr, false);
  // Each batch once, up to the last, with what is within it.
  std::int64_t steps = 0;
  std::int64_t forwards = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    if (event["name"] == "step") {
      EXPECT_EQ(event["args"]["batch"], steps++);
      EXPECT_EQ(event["args"]["rank"], 0);
    }
    forwards += event["name"] == "forward" && event["args"].contains("batch") ? 1 : 0;
  }
  EXPECT_GT(steps, 0);
  EXPECT_EQ(forwards, steps);
  EXPECT_EQ(name, absl::StrCat("ep0-ba", steps, "-rank0.pftrace"));
}

// Two trainings, whose agent brings what it recorded of them; the second while its master is not there.
TEST_F(TracesTest, WhatAnAgentRecordsIsWithItsTrialAlsoWhereTheMasterComesLater) {
  StartMaster();
  const std::string temporary = scratch_ / "tmp";
  std::filesystem::create_directory(temporary);
  const std::string folder = scratch_ / "texts";
  std::filesystem::create_directory(folder);
  std::string text;
  while (text.size() < 20'000) text += "the quick brown fox jumps over the lazy dog. ";
  Write("texts/one.txt", text);
  const auto train = [&](const std::string& trial, const std::string& upload) {
    ChildProcess training;
    training.Start({BuiltProgram("stepwell-demo"), "--data", folder, "--seconds", "1", "--quiet",
                    "--trial", trial},
                   {{"STEPWELL_AGENT", ""},
                    {"STEPWELL_AGENT_IDLE_EXIT", "1"},
                    {"STEPWELL_EXIT_WAIT", "0"},
                    {"STEPWELL_SERVER", master_->grpc_address()},
                    {"STEPWELL_SYSTEM_ROOT", "/no/such/root"},
                    {"STEPWELL_SHARED_MEMORY", temporary},
                    {"STEPWELL_TRACES", scratch_ / trial},
                    {"STEPWELL_TRACES_UPLOAD", upload},
                    {"TMPDIR", temporary}},
                   scratch_ / "training-log");
    EXPECT_EQ(training.Wait(absl::Seconds(60)), "exit 0") << ReadWhole(scratch_ / "training-log");
  };
  const auto becomes_stored = [&](const std::string& trial) {
    return Eventually(
        [&] {
          const Ran ran = Command({"trace", "list", trial, "--json"});
          const auto list = nlohmann::json::parse(ran.output, nullptr, false);
          return ran.ending == "exit 0" && list.contains("traces") && list["traces"].size() == 1 &&
                 list["traces"][0]["state"] == "complete";
        },
        absl::Seconds(60));
  };
  train("here", "1");
  ASSERT_TRUE(becomes_stored("here"));
  const auto header = List("here")["traces"][0]["header"];
  EXPECT_EQ(header["format"], "perfetto");
  EXPECT_EQ(header["rank"], 0);
  EXPECT_EQ(header["first_batch"], 0);
  EXPECT_GT(header["last_batch"], 0);
  const std::string name = header["name"];
  EXPECT_EQ(name, absl::StrCat("ep0-ba", header["last_batch"].get<int>() + 1, "-rank0.pftrace"));
  const Ran got = Command({"trace", "get", "here", "--directory", scratch_ / "out"});
  EXPECT_EQ(got.ending, "exit 0") << got.output;
  EXPECT_EQ(ReadWhole(scratch_ / "out/" + name), ReadWhole(scratch_ / "here/" + name));

  // As Chrome's JSON: the same slices, whole, with the numbers that the kernel gave their threads.
  const Ran as_json =
      Command({"trace", "get", "here", "--format", "json", "--directory", scratch_ / "out"});
  EXPECT_EQ(as_json.ending, "exit 0") << as_json.output;
  const std::string stem = name.substr(0, name.size() - std::string(".pftrace").size());
  EXPECT_EQ(ReadWhole(scratch_ / "out/" + stem + ".json.gz").substr(0, 2), "\x1f\x8b");
  // By the name that was asked for.
  EXPECT_EQ(Command({"trace", "get", "here", "1", "--output", scratch_ / "out/plain.json"}).ending,
            "exit 0");
  const auto json = nlohmann::json::parse(ReadWhole(scratch_ / "out/plain.json"), nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["distributedInfo"]["rank"], 0);
  EXPECT_GT(json["baseTimeNanoseconds"], 1'600'000'000'000'000'000);
  std::int64_t steps = 0;
  for (const auto& event : json["traceEvents"]) {
    EXPECT_TRUE(event["ph"] != "B" && event["ph"] != "E") << event.dump();
    if (event["ph"] != "X" || event["name"] != "step") continue;
    ++steps;
    EXPECT_GT(event["dur"], 0);
    EXPECT_EQ(event["tid"], event["args"]["thread"]);
    EXPECT_GT(event["tid"], 1);
  }
  EXPECT_EQ(steps, header["last_batch"].get<int>() + 1);

  train("not-wanted", "0");
  master_->Kill();
  train("later", "1");
  ASSERT_TRUE(master_->StartAndWait({})) << master_->LogTail();
  EXPECT_TRUE(becomes_stored("later"));
  EXPECT_EQ(Command({"trace", "list", "not-wanted", "--json"}).output.find("pftrace"),
            std::string::npos);
}

TEST_F(TracesTest, WhatCannotBeKeptIsAnsweredAndTheRestIs) {
  StartMaster();
  Record("odd", 100);
  const std::string good = Write("rank0.json", kTwoEvents);
  const std::string cut = Write("rank1.json", std::string(kTwoEvents).substr(0, 80));
  const struct {
    std::string file;
    const char* says;
    const char* ending;
  } rows[] = {
      {Write("empty.json", ""), "is empty", "exit 1"},
      {scratch_ / "none.json", "No such file", "exit 66"},
      {Write("unknown.bin", "\x01\x02"), "--format says it", "exit 1"},
      {Write("other.json", "{\"a\":1}"), "other.json", "exit 1"},
      {Write("deep.json", std::string(1000, '[')), "deep.json", "exit 0"},
      {cut, "ends too early; what it has is kept", "exit 0"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.file);
    const Ran ran = Command({"trace", "import", "odd", row.file, good});
    EXPECT_EQ(ran.ending, row.ending) << ran.output;
    EXPECT_NE(ran.output.find(row.says), std::string::npos) << ran.output;
    EXPECT_NE(ran.output.find(": rank0.json.gz, "), std::string::npos) << ran.output;
  }
  EXPECT_EQ(Command({"caps", "set", "--trial", "odd", "--trace-bytes", "10B", "--yes"}).ending,
            "exit 0");
  const std::string large = Write("rank2.json", LongText(100).insert(0, "[\"") + "\"]");
  const Ran refused = Command({"trace", "import", "odd", large});
  EXPECT_EQ(refused.ending, "exit 1") << refused.output;
  EXPECT_NE(refused.output.find("allowed are up to 10 (trace_bytes)"), std::string::npos)
      << refused.output;
  const Ran list = Command({"trace", "list", "odd"});
  EXPECT_NE(list.output.find("refused: trace_bytes"), std::string::npos) << list.output;
}

TEST_F(TracesTest, AnUploadOutlivesItsMaster) {
  // It dies behind the third part and, next time, before the commit of another.
  StartMaster({}, "trace_part_after_commit=exit@2");
  Record("killed", 100);
  const std::string text = Write("flops.txt", LongText(6'500'000));
  ChildProcess import;
  const std::string log = scratch_ / "import-log";
  import.Start({BuiltProgram("stepwell"), "trace", "import", "killed", text, "--server",
                master_->grpc_address(), "--timeout", "2m"},
               {}, log);
  const auto died = [&] { return !master_->running(); };
  ASSERT_TRUE(Eventually(died, absl::Seconds(60))) << ReadWhole(log);
  ASSERT_TRUE(master_->StartAndWait({.failpoints = "trace_part_before_commit=exit@1"}))
      << master_->LogTail();
  ASSERT_TRUE(Eventually(died, absl::Seconds(60))) << ReadWhole(log);
  ASSERT_TRUE(master_->StartAndWait()) << master_->LogTail();
  EXPECT_EQ(import.Wait(absl::Seconds(120)), "exit 0") << ReadWhole(log);
  const std::string out = scratch_ / "out.txt";
  const Ran got = Command({"trace", "get", "killed", "1", "--output", out});
  EXPECT_EQ(got.ending, "exit 0") << got.output;
  EXPECT_TRUE(ReadWhole(out) == ReadWhole(text));
  EXPECT_EQ(QueryNumber("select count(*) from stepwell.trace_parts where trial_id <> $1", 0), 7);
}

TEST_F(TracesTest, AnUploadBeyondTheRateIsSlowedAndArrives) {
  // Ten seconds' worth at once, which is less than the upload.
  StartMaster({"--ingest-bytes-per-second", "262144"});
  Record("slowed", 100);
  const std::string text = Write("flops.txt", LongText(4'500'000));
  const SteadyTime begin = SteadyTime::Now();
  const Ran import = Command({"trace", "import", "slowed", text, "--wait", "0s"});
  EXPECT_EQ(import.ending, "exit 0") << import.output;
  EXPECT_GE(SteadyTime::Now() - begin, absl::Seconds(2));
  const std::string out = scratch_ / "out.txt";
  EXPECT_EQ(Command({"trace", "get", "slowed", "1", "--output", out}).ending, "exit 0");
  EXPECT_TRUE(ReadWhole(out) == ReadWhole(text));
}

}  // namespace
}  // namespace stepwell::testing
