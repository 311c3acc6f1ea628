// What commands make of traces that a master keeps, themselves: reports of several ranks, archives, TensorBoard's layout.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/e2e/traces_fixture.h"

namespace stepwell::testing {
namespace {

using TakenTracesTest = TracesFixture;

TEST_F(TakenTracesTest, AReportOfATrialHasARowForEachRank) {
  StartMaster();
  Record("measured", 10);
  const std::string step =
      R"({"schemaVersion":1,"traceEvents":[)"
      R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#4","ts":0,"dur":1000,"pid":1,"tid":1},)"
      R"({"ph":"X","cat":"cpu_op","name":"aten::add","ts":600,"dur":300,"pid":1,"tid":1}]})";
  const Ran brought = Command({"trace", "import", "measured", Write("rank0.pt.trace.json", step),
                               Write("rank1.pt.trace.json", step), Write("rank2.txt", "flops")});
  EXPECT_EQ(brought.ending, "exit 0") << brought.output;
  const Ran rows = Command({"trace", "report", "--trial", "measured", "--json"});
  EXPECT_EQ(rows.ending, "exit 0") << rows.output;
  const auto told = nlohmann::json::parse(rows.output, nullptr, false);
  ASSERT_TRUE(told.is_object()) << rows.output;
  ASSERT_EQ(told["ranks"].size(), 2U) << rows.output;
  EXPECT_EQ(told["ranks"][1]["rank"], 1);
  EXPECT_EQ(told["ranks"][1]["traces"][0], "trace 2 (rank1.pt.trace.json.gz)");
  EXPECT_DOUBLE_EQ(told["ranks"][1]["computation_seconds"], 300e-6);
  const Ran named = Command({"trace", "report", "--trial", "measured", "1", "2"});
  EXPECT_EQ(named.ending, "exit 0") << named.output;
  EXPECT_NE(named.output.find("2 ranks"), std::string::npos) << named.output;
  const Ran no_trace = Command({"trace", "report", "--trial", "measured", "1", "3"});
  EXPECT_EQ(no_trace.ending, "exit 1") << no_trace.output;
}

TEST_F(TakenTracesTest, AnArchiveHasWhatTheMasterKeepsAsItCame) {
  StartMaster();
  Record("kept", 10);
  const Ran brought = Command({"trace", "import", "kept", Write("ep0-ba7-rank0.json", kTwoEvents),
                               Write("host.xplane.pb", std::string("\x0a\x03xyz", 5)),
                               Write("host-rank3.pt.trace.json", kTwoEvents)});
  EXPECT_EQ(brought.ending, "exit 0") << brought.output;
  const std::string out = scratch_ / "out";
  EXPECT_EQ(Command({"trace", "get", "kept", "--directory", out}).ending, "exit 0");
  const std::string archive = scratch_ / "all.tar";
  const Ran archived = Command({"trace", "merge", "--trial", "kept", "--output", archive});
  EXPECT_EQ(archived.ending, "exit 0") << archived.output;
  EXPECT_NE(archived.output.find("2 traces and their places are in"), std::string::npos)
      << archived.output;
  const std::string into = scratch_ / "unpacked";
  std::filesystem::create_directory(into);
  ASSERT_EQ(std::system(("tar -xf '" + archive + "' -C '" + into + "'").c_str()), 0);
  EXPECT_EQ(ReadWhole(into + "/0-ep0-ba7-rank0.json.gz"),
            ReadWhole(out + "/ep0-ba7-rank0.json.gz"));
  EXPECT_EQ(ReadWhole(into + "/1-host-rank3.pt.trace.json.gz"),
            ReadWhole(out + "/host-rank3.pt.trace.json.gz"));
  const auto manifest =
      nlohmann::json::parse(ReadWhole(into + "/perfetto_manifest.json"), nullptr, false);
  EXPECT_EQ(manifest["perfetto_manifest"]["files"][1]["machine"]["name"], "rank 3")
      << manifest.dump();
  EXPECT_EQ(Command({"trace", "merge", "--trial", "kept", "2", "--output", archive}).ending,
            "exit 1");
}

TEST_F(TakenTracesTest, AMergeOfAllLeavesOutWhatCannotBeUnpackedOrPlaced) {
  StartMaster();
  Record("kept", 10);
  // What is said to be of Perfetto's form nobody looks into.
  const std::string damaged("\x1f\x8b\x08\x00 no gzip behind this", 24);
  const Ran brought = Command({"trace", "import", "kept", Write("rank0.json", kTwoEvents),
                               Write("nobodys.json", kTwoEvents), Write("rank7.pftrace", damaged)});
  EXPECT_EQ(brought.ending, "exit 0") << brought.output;
  const auto expect_told = [](const Ran& ran) {
    for (const char* says : {"trace 2 (nobodys.json.gz): nothing tells its rank",
                             "trace 3 (rank7.pftrace): damaged gzip", "; left out"}) {
      EXPECT_NE(ran.output.find(says), std::string::npos) << says << "\n" << ran.output;
    }
  };
  const std::string merged = scratch_ / "merged.json";
  const Ran all = Command({"trace", "merge", "--trial", "kept", "--output", merged});
  EXPECT_EQ(all.ending, "exit 0") << all.output;
  expect_told(all);
  EXPECT_NE(all.output.find("2 events of 1 trace are in"), std::string::npos) << all.output;
  const std::string archive = scratch_ / "all.tar";
  const Ran archived = Command({"trace", "merge", "--trial", "kept", "--output", archive});
  EXPECT_EQ(archived.ending, "exit 0") << archived.output;
  expect_told(archived);
  EXPECT_NE(archived.output.find("1 trace and their places are in"), std::string::npos)
      << archived.output;
  // Nobody fetches it: what was merged is told before that.
  const Ran opened = Command({"trace", "open", "kept", "--port", "0", "--timeout", "1ms"});
  EXPECT_EQ(opened.ending, "exit 75") << opened.output;
  expect_told(opened);

  // Who names them wants them.
  for (const auto& [trace_no, says] :
       {std::pair("2", "nothing tells its rank"), std::pair("3", "damaged gzip")}) {
    for (const std::string& output : {merged, archive}) {
      const Ran named =
          Command({"trace", "merge", "--trial", "kept", "1", trace_no, "--output", output});
      EXPECT_EQ(named.ending, "exit 1") << named.output;
      EXPECT_NE(named.output.find(says), std::string::npos) << named.output;
    }
  }
  EXPECT_EQ(Command({"trace", "delete", "kept", "1"}).ending, "exit 0");
  for (const std::string& output : {merged, archive}) {
    const Ran none = Command({"trace", "merge", "--trial", "kept", "--output", output});
    EXPECT_EQ(none.ending, "exit 1") << none.output;
    EXPECT_NE(none.output.find("trace 2 (nobodys.json.gz): nothing tells its rank"),
              std::string::npos)
        << none.output;
  }
}

// As Perfetto's page does with what the command says: one trace is fetched as it is, several as a merge.
TEST_F(TakenTracesTest, WhatIsOpenedIsServedOnceAtTheAddressThatIsTold) {
  StartMaster();
  Record("kept", 10);
  ASSERT_EQ(Command({"trace", "import", "kept", Write("ep0-ba7-rank0.json", kTwoEvents),
                     Write("ep0-ba7-rank1.json", kTwoEvents)})
                .ending,
            "exit 0");
  const std::string one = scratch_ / "one", all = scratch_ / "all.pftrace";
  ASSERT_EQ(Command({"trace", "get", "kept", "2", "--output", one}).ending, "exit 0");
  // What is kept packed, by the name that was asked for.
  const std::string plain = scratch_ / "plain.json";
  ASSERT_EQ(Command({"trace", "get", "kept", "2", "--output", plain}).ending, "exit 0");
  EXPECT_EQ(ReadWhole(plain), kTwoEvents);
  EXPECT_EQ(ReadWhole(one).substr(0, 2), "\x1f\x8b");
  ASSERT_EQ(Command({"trace", "merge", "--trial", "kept", "--output", all}).ending, "exit 0");
  for (const auto& [trace_no, file] : {std::pair<std::string, std::string>("2", one), {"", all}}) {
    SCOPED_TRACE(trace_no);
    const std::string log = scratch_ / ("open" + trace_no);
    std::vector<std::string> words = {BuiltProgram("stepwell"), "trace", "open", "kept"};
    if (!trace_no.empty()) words.push_back(trace_no);
    words.insert(words.end(), {"--port", "0", "--server", master_->grpc_address()});
    ChildProcess command;
    command.Start(words, {}, log);
    const std::string before = "https://ui.perfetto.dev/#!/?url=";
    std::string url;
    ASSERT_TRUE(Eventually(
        [&] {
          const std::string said = ReadWhole(log);
          const std::size_t at = said.find(before);
          const std::size_t end = said.find('\n', at);
          if (at == std::string::npos || end == std::string::npos) return false;
          url = said.substr(at + before.size(), end - at - before.size());
          return true;
        },
        absl::Seconds(30)))
        << ReadWhole(log);
    const std::string got = scratch_ / ("got" + trace_no);
    const std::string fetch = absl::StrCat("curl --silent --fail --output '", got, "' '", url, "'");
    EXPECT_EQ(std::system(fetch.c_str()), 0) << fetch;
    EXPECT_EQ(ReadWhole(got), ReadWhole(file));
    EXPECT_EQ(command.Wait(absl::Seconds(30)), "exit 0") << ReadWhole(log);
  }
}

// Who comes new does not know that it waits, for whom, nor what to do where the browser is elsewhere.
TEST_F(TakenTracesTest, WhatWaitsForABrowserSaysSoAndASignalLeavesNothingBehind) {
  StartMaster();
  Record("kept", 10);
  ASSERT_EQ(Command({"trace", "import", "kept", Write("ep0-ba7-rank0.json", kTwoEvents),
                     Write("ep0-ba7-rank1.json", kTwoEvents)})
                .ending,
            "exit 0");
  const std::filesystem::path temporary = scratch_ / "temporary";
  std::filesystem::create_directory(temporary);
  // What a shell starts in the background ignores it, and so would the command.
  signal(SIGINT, SIG_DFL);
  for (const auto& [signal, ending] : {std::pair(SIGINT, "killed by signal 2"),
                                       {SIGTERM, "killed by signal 15"},
                                       {SIGKILL, "killed by signal 9"}}) {
    SCOPED_TRACE(ending);
    const std::string log = scratch_ / absl::StrCat("waits", signal);
    ChildProcess command;
    command.Start({BuiltProgram("stepwell"), "trace", "open", "kept", "1", "2", "--port", "0",
                   "--server", master_->grpc_address()},
                  {{"TMPDIR", temporary.string()}}, log);
    const std::string last = "stepwell trace get kept 1 2\n";
    ASSERT_TRUE(Eventually([&] { return absl::EndsWith(ReadWhole(log), last); }, absl::Seconds(30)))
        << ReadWhole(log);
    const std::string said = ReadWhole(log);
    EXPECT_NE(said.find("waits 10m for a browser on this machine"), std::string::npos) << said;
    const std::string before = "url=http://127.0.0.1:";
    const std::size_t at = said.find(before) + before.size();
    const std::string port = said.substr(at, said.find('/', at) - at);
    EXPECT_NE(said.find(absl::StrCat("  ssh -L ", port, ":127.0.0.1:", port, " HOST\n")),
              std::string::npos)
        << said;
    EXPECT_TRUE(std::filesystem::is_empty(temporary));
    command.Signal(signal);
    EXPECT_EQ(command.Wait(absl::Seconds(30)), ending) << ReadWhole(log);
    EXPECT_TRUE(std::filesystem::is_empty(temporary));
  }
}

TEST_F(TakenTracesTest, SessionsOfOneHostLieInTensorboardsLayoutAsTheyWere) {
  StartMaster();
  Record("kept", 10);
  for (const char* session : {"2026_11_27_10_00_00", "2026_11_27_11_00_00"}) {
    const std::string folder = absl::StrCat("logs/plugins/profile/", session);
    std::filesystem::create_directories(scratch_ / folder);
    Write(folder + "/node1.example.xplane.pb", absl::StrCat("\x0a\x03", session));
  }
  const Ran brought = Command({"trace", "import", "kept", scratch_ / "logs"});
  EXPECT_EQ(brought.ending, "exit 0") << brought.output;
  EXPECT_EQ(List("kept")["traces"][1]["header"]["name"],
            "2026_11_27_11_00_00@node1.example.xplane.pb");
  const std::string laid = scratch_ / "laid";
  EXPECT_EQ(Command({"trace", "get", "kept", "--tensorboard", laid}).ending, "exit 0");
  for (const char* session : {"2026_11_27_10_00_00", "2026_11_27_11_00_00"}) {
    const std::string file = absl::StrCat("/plugins/profile/", session, "/node1.example.xplane.pb");
    EXPECT_EQ(ReadWhole(laid + "/kept" + file), ReadWhole(scratch_ / ("logs" + file))) << file;
    EXPECT_FALSE(ReadWhole(laid + "/kept" + file).empty());
  }
}

}  // namespace
}  // namespace stepwell::testing
