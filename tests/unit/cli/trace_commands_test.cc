// stepwell trace merge and report, on files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/traces/trace_file.h"
#include "tests/unit/cli/outcome.h"

namespace stepwell::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

class TraceCommandsTest : public ::testing::Test {
 protected:
  TraceCommandsTest() {
    std::string made = ::testing::TempDir() + "traces-XXXXXX";
    folder_ = mkdtemp(made.data());
  }
  ~TraceCommandsTest() override { fs::remove_all(folder_); }

  std::string File(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  static std::string Text(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  // One operator of `begin_us` on, a tenth of a second long.
  static std::string Operator(std::int64_t begin_us) {
    return absl::StrCat(
        "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op\",\"ts\":", begin_us,
        ",\"dur\":100000,\"pid\":4,\"tid\":5}]}");
  }

  fs::path folder_;
};

TEST_F(TraceCommandsTest, FilesOfTwoRanksBecomeOnePackedOrNot) {
  const std::string zero = File("ep0-ba7-rank0.json", Operator(1'000));
  const std::string one = File("ep0-ba7-rank1.json", Operator(3'000));
  for (const std::string name : {"merged.json", "merged.json.gz"}) {
    const std::string out = folder_ / name;
    const Outcome outcome =
        RunWords({"trace", "merge", zero, one, "--output", out, "--shift", one + "=-1500.5"});
    EXPECT_EQ(outcome.exit, kExitOk) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(absl::StrCat("2 events of 2 files are in ", out)));
    std::string text;
    const auto form = traces::ReadTraceFile(out, {.event =
                                                      [&](std::string_view event) {
                                                        text += event;
                                                        text += '\n';
                                                        return absl::OkStatus();
                                                      },
                                                  .member = {}});
    ASSERT_TRUE(form.ok()) << form.status();
    EXPECT_FALSE(form->is_cut);
    EXPECT_THAT(text, HasSubstr("\"ts\":1000.000"));
    EXPECT_THAT(text, HasSubstr("\"ts\":1499.500"));
    EXPECT_THAT(text, HasSubstr("rank 1"));
  }
  EXPECT_EQ(Text(folder_ / "merged.json.gz").substr(0, 2), "\x1f\x8b");
  const Outcome told = RunWords(
      {"trace", "merge", zero, one, "--one-machine", "--json", "--output", folder_ / "again.json"});
  EXPECT_EQ(json::parse(told.out).at("inputs").at(1).at("clock_error_us"), 0.0);
  EXPECT_EQ(told.err, "");
  const Outcome printed = RunWords({"trace", "merge", zero, one, "--one-machine"});
  EXPECT_EQ(printed.out, Text(folder_ / "again.json"));
}

TEST_F(TraceCommandsTest, PerfettosFormIsWrittenAndReadAgain) {
  const std::string zero = File("ep0-ba7-rank0.json", Operator(1'000));
  const std::string one = File("ep0-ba7-rank1.json", Operator(3'000));
  const std::string out = folder_ / "merged-rank0.pftrace";
  const Outcome outcome = RunWords({"trace", "merge", zero, one, "--one-machine", "--output", out});
  EXPECT_EQ(outcome.exit, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("2 events of 2 files are in "));
  EXPECT_EQ(Text(out).substr(0, 1), "\n");
  const std::string packed = folder_ / "merged.bin.gz";
  const Outcome again = RunWords(
      {"trace", "merge", zero, one, "--one-machine", "--format", "perfetto", "--output", packed});
  EXPECT_EQ(again.exit, kExitOk) << again.err;
  // What was merged so is an input, too.
  const std::string back = folder_ / "back.json";
  for (const std::string& file : {out, packed}) {
    const Outcome read =
        RunWords({"trace", "merge", file, "--rank", file + "=0", "--output", back});
    EXPECT_EQ(read.exit, kExitOk) << read.err;
    int begun = 0;
    const json trace = json::parse(Text(back));
    for (const json& event : trace.at("traceEvents")) {
      begun += event.at("ph") == "X" && event.at("name") == "op" ? 1 : 0;
    }
    EXPECT_EQ(begun, 2);
  }
}

// As tar itself reads it: the files as they are, and where they belong.
TEST_F(TraceCommandsTest, AnArchiveHasTheFilesAsTheyAreAndTheirPlaces) {
  const std::string zero = File("ep0-ba7-rank0.json", Operator(1'000));
  const std::string one = File("ep0-ba7-rank1.json", Operator(3'000));
  const std::string packed = folder_ / "rank2.pftrace";
  const std::string two = File("two.json", Operator(5'000));
  ASSERT_EQ(RunWords({"trace", "merge", two, "--rank", two + "=2", "--output", packed}).exit,
            kExitOk);
  const std::string out = folder_ / "all.tar";
  const Outcome outcome = RunWords({"trace", "merge", zero, one, packed, "--shift", one + "=-2.5",
                                    "--shift", packed + "=7", "--output", out});
  EXPECT_EQ(outcome.exit, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("3 files and their places are in "));
  const std::string into = folder_ / "unpacked";
  fs::create_directory(into);
  ASSERT_EQ(std::system(("tar -xf '" + out + "' -C '" + into + "'").c_str()), 0);
  EXPECT_EQ(Text(into + "/0-ep0-ba7-rank0.json"), Text(zero));
  EXPECT_EQ(Text(into + "/1-ep0-ba7-rank1.json"), Text(one));
  EXPECT_EQ(Text(into + "/2-rank2.pftrace"), Text(packed));
  const std::string manifest = Text(into + "/perfetto_manifest.json");
  EXPECT_EQ(manifest.rfind("{\"perfetto_manifest\"", 0), 0u) << "by this it is known";
  const json told = json::parse(manifest).at("perfetto_manifest");
  EXPECT_EQ(told.at("version"), 1);
  const json& files = told.at("files");
  ASSERT_EQ(files.size(), 3u);
  // Rank 1's lies lowest: the others lie later than it by so much.
  EXPECT_FALSE(files[1].contains("clocks"));
  EXPECT_EQ(files[1].at("machine").at("name"), "rank 1");
  EXPECT_EQ(files[0].at("clocks"),
            json::parse(R"({"sync_to":{"file":"1-ep0-ba7-rank1.json"},"offset_ns":2500})"));
  EXPECT_EQ(files[2].at("clocks").at("clock"), "REALTIME");
  EXPECT_EQ(files[2].at("clocks").at("offset_ns"), 9500);

  const Outcome stored =
      RunWords({"trace", "merge", "--trial", "t", "--output", out, "--one-machine"});
  EXPECT_EQ(stored.exit, kExitUsage);
  EXPECT_THAT(stored.err, HasSubstr("--one-machine goes with FILEs, not with --trial"));
}

// An image calls all its machines the same: processes of two kernels are none of one machine, also where somebody says a name.
TEST_F(TraceCommandsTest, MachinesOfOneNameAreToldApartByTheirKernels) {
  const auto recorded = [&](const char* name, const std::string& boot_id, double ahead_us) {
    return File(
        name,
        absl::StrCat(R"([{"ph":"X","name":"step","ts":1000,"dur":5,"pid":1,"tid":1},)",
                     R"({"ph":"M","name":"machine","args":{"name":"localhost","boot_id":")",
                     boot_id, R"("}},{"ph":"M","name":"master_clock","args":{"at_ns":1000000,)",
                     R"("ahead_ns":)", ahead_us * 1000, R"(,"error_ns":100,"trial":"p/t"}}])"));
  };
  const std::string zero = recorded("rank0.json", "boot-a", 0);
  const std::string one = recorded("rank1.json", "boot-b", -500);
  const std::string out = folder_ / "all.json";
  Outcome outcome = RunWords({"trace", "merge", zero, one, "--output", out});
  EXPECT_EQ(outcome.exit, kExitOk) << outcome.err;
  const auto inputs = [&] { return json::parse(Text(out)).at("metadata").at("inputs"); };
  EXPECT_EQ(inputs()[1].at("shift_us"), -500) << inputs().dump();
  for (const std::string& said : {one + "=localhost", zero + "=node-7"}) {
    // Of one file alone: the other's kernel is known by its name.
    outcome = RunWords({"trace", "merge", zero, one, "--output", out, "--machine", said});
    EXPECT_EQ(outcome.exit, kExitOk) << outcome.err;
    const bool is_one = said == one + "=localhost";
    EXPECT_EQ(inputs()[1].at("shift_us"), is_one ? 0 : -500) << inputs().dump();
  }
  const std::string archive = folder_ / "kernels.tar";
  outcome = RunWords({"trace", "merge", zero, one, "--output", archive});
  EXPECT_EQ(outcome.exit, kExitOk) << outcome.err;
  const std::string bytes = Text(archive);
  for (const char* name : {"\"localhost boot-a\"", "\"localhost boot-b\""}) {
    EXPECT_NE(bytes.find(name), std::string::npos) << name;
  }
}

TEST_F(TraceCommandsTest, ACutPackedFileGivesWhatItHas) {
  std::string whole = "[";
  for (int i = 0; i < 20'000; ++i) {
    absl::StrAppend(&whole, i == 0 ? "" : ",", "\n{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op",
                    i * 7919 % 1000, "\",\"ts\":", i * 10, ",\"dur\":5,\"pid\":4,\"tid\":5}");
  }
  const std::string plain = File("rank0.json", whole + "]");
  const std::string packed = folder_ / "rank0.json.gz";
  ASSERT_EQ(RunWords({"trace", "merge", plain, "--output", packed}).exit, kExitOk);
  fs::resize_file(packed, fs::file_size(packed) / 2);
  const Outcome outcome = RunWords({"trace", "report", packed, "--json"});
  EXPECT_EQ(outcome.exit, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("ends too early"));
  EXPECT_GT(json::parse(outcome.out).at("steps").at(0).at("seconds"), 0.05);
}

TEST_F(TraceCommandsTest, ReportAddsUpAStep) {
  const auto event = [](const char* category, const char* name, int begin_us, int length_us) {
    return absl::StrCat("{\"ph\":\"X\",\"cat\":\"", category, "\",\"name\":\"", name,
                        "\",\"ts\":", begin_us, ",\"dur\":", length_us, ",\"pid\":1,\"tid\":1}");
  };
  const std::string file = File(
      "t.json", absl::StrCat("[", event("user_annotation", "ProfilerStep#4", 0, 1000), ",",
                             event("user_annotation", "enumerate(DataLoader)#x.__next__", 0, 600),
                             ",", event("cpu_op", "aten::add", 600, 300), ",7]"));
  const Outcome text = RunWords({"trace", "report", file});
  EXPECT_EQ(text.exit, kExitOk) << text.err;
  EXPECT_THAT(text.out, HasSubstr("1 step of 1.00 ms on average"));
  EXPECT_THAT(text.out, HasSubstr("data loader  600 µs"));
  EXPECT_THAT(text.out, HasSubstr("60.0 %"));
  EXPECT_THAT(text.err, HasSubstr("1 thing that is no event left out"));
  const json report = json::parse(RunWords({"trace", "report", file, "--json"}).out);
  EXPECT_EQ(report.at("steps").at(0).at("name"), "ProfilerStep#4");
  EXPECT_DOUBLE_EQ(report.at("steps").at(0).at("class_seconds").at("processor"), 300e-6);
}

// Of the cases of the core the command's part: whose a file is, and what is told of it.
TEST_F(TraceCommandsTest, ReportOfSeveralHasARowForEachRank) {
  const auto trace = [](int rank, int length_us) {
    return absl::StrCat(
        "{\"distributedInfo\":{\"rank\":", rank, "},\"traceEvents\":[",
        "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#4\",\"ts\":0,\"dur\":"
        "1000},",
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"ts\":0,\"dur\":200},",
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"gloo:all_reduce\",\"ts\":100,\"dur\":",
        length_us, "}]}");
  };
  // The trace tells it, its name does; of two none does.
  const std::string ten = File("a.json", trace(10, 700));
  const std::string two = File("rank2.json", trace(7, 400));
  const std::string nobodys = File("b.json", Operator(0));
  const std::string none = File("rank3.json", "[{\"ph\":\"M\",\"name\":\"x\"}]");
  const Outcome text = RunWords({"trace", "report", ten, nobodys, two, none});
  EXPECT_EQ(text.exit, kExitOk) << text.err;
  const std::string wide(nobodys.size() - 4, ' ');
  EXPECT_THAT(text.out,
              HasSubstr(absl::StrCat(
                  "3 ranks\n\n  rank", wide,
                  "  steps   a step  computation  overlap  communication   other\n"
                  "  2   ",
                  wide, "      1  1.00 ms       100 µs   100 µs         300 µs  500 µs\n")));
  EXPECT_THAT(text.out, HasSubstr("  rank  transfer  waited  in gloo:all_reduce\n"
                                  "  2       400 µs     0 s                 0 s\n"
                                  "  10      400 µs  300 µs              300 µs\n"));
  EXPECT_THAT(text.err, HasSubstr("rank3.json has no step"));
  const json report = json::parse(RunWords({"trace", "report", ten, nobodys, two, "--json"}).out);
  const json& ranks = report.at("ranks");
  ASSERT_EQ(ranks.size(), 3u);
  EXPECT_EQ(ranks[0].at("rank"), 2);
  EXPECT_EQ(ranks[0].at("traces"), json::array({two}));
  EXPECT_EQ(ranks[1].at("rank"), 10);
  EXPECT_EQ(ranks[2].at("rank"), nullptr);
  EXPECT_DOUBLE_EQ(ranks[1].at("computation_seconds"), 100e-6);
  EXPECT_DOUBLE_EQ(ranks[1].at("overlap_seconds"), 100e-6);
  EXPECT_DOUBLE_EQ(ranks[1].at("communication_seconds"), 600e-6);
  EXPECT_DOUBLE_EQ(ranks[1].at("other_seconds"), 200e-6);
  EXPECT_DOUBLE_EQ(ranks[1].at("transfer_seconds"), 400e-6);
  EXPECT_DOUBLE_EQ(ranks[1].at("wait_seconds"), 300e-6);
  EXPECT_EQ(ranks[1].at("steps").at(0).at("name"), "ProfilerStep#4");
  EXPECT_DOUBLE_EQ(ranks[1].at("steps").at(0).at("wait_seconds"), 300e-6);
  EXPECT_EQ(ranks[1].at("collectives").at(0).at("name"), "gloo:all_reduce");
  EXPECT_EQ(ranks[1].at("collectives").at(0).at("call_count"), 1);
  EXPECT_DOUBLE_EQ(ranks[1].at("collectives").at(0).at("wait_seconds"), 300e-6);
  EXPECT_EQ(report.at("unmatched_count"), 0);

  const Outcome gone = RunWords({"trace", "report", ten, folder_ / "rank4.json"});
  EXPECT_EQ(gone.exit, kExitNoInput);
  EXPECT_THAT(gone.err, HasSubstr("rank4.json: No such file"));
  EXPECT_EQ(RunWords({"trace", "report", none, none}).exit, kExitFailed);
}

TEST_F(TraceCommandsTest, ReportOfSeveralTellsHowLongDevicesWereIdle) {
  const auto trace = [](const std::string& kernel) {
    return absl::StrCat(
        "[{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#4\",\"ts\":0,"
        "\"dur\":1000},{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"ts\":0,\"dur\":"
        "200}",
        kernel, "]");
  };
  const std::string zero =
      File("rank0.json", trace(",{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"ts\":100,"
                               "\"dur\":300},{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\","
                               "\"ts\":600,\"dur\":100}"));
  const std::string one = File("rank1.json", trace(""));
  const Outcome text = RunWords({"trace", "report", zero, one});
  EXPECT_THAT(text.out, HasSubstr("   other    idle  device busy\n"));
  EXPECT_THAT(text.out, HasSubstr("  600 µs  600 µs       66.7 %\n"));
  const json ranks = json::parse(RunWords({"trace", "report", zero, one, "--json"}).out)["ranks"];
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_DOUBLE_EQ(ranks[0].at("idle_seconds"), 600e-6);
  EXPECT_DOUBLE_EQ(ranks[0].at("steps").at(0).at("idle_seconds"), 600e-6);
  EXPECT_DOUBLE_EQ(ranks[0].at("device_busy_seconds"), 400e-6);
  EXPECT_DOUBLE_EQ(ranks[0].at("device_span_seconds"), 600e-6);
  EXPECT_EQ(ranks[1].at("idle_seconds"), nullptr);
}

// What a viewer shows times in says nothing of what they are: microseconds in each.
TEST_F(TraceCommandsTest, ADisplayUnitChangesNoTime) {
  const auto trace = [](const char* unit) {
    return absl::StrCat("{\"displayTimeUnit\":\"", unit,
                        "\",\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op\",",
                        "\"ts\":1000,\"dur\":250.5,\"pid\":4,\"tid\":5}]}");
  };
  const std::string zero = File("ep0-ba7-rank0.json", trace("ns"));
  const std::string one = File("ep0-ba7-rank1.json", trace("ms"));
  const std::string out = folder_ / "merged.json";
  ASSERT_EQ(RunWords({"trace", "merge", zero, one, "--one-machine", "--output", out}).exit,
            kExitOk);
  const json merged = json::parse(Text(out));
  EXPECT_EQ(merged.at("displayTimeUnit"), "ms");
  int count = 0;
  for (const json& event : merged.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    ++count;
    EXPECT_EQ(event.at("ts"), 1000.0);
    EXPECT_EQ(event.at("dur"), 250.5);
  }
  EXPECT_EQ(count, 2);
  const json report = json::parse(RunWords({"trace", "report", zero, one, "--json"}).out);
  for (const json& rank : report.at("ranks")) EXPECT_DOUBLE_EQ(rank.at("seconds"), 250.5e-6);
}

TEST_F(TraceCommandsTest, WrongUseAndBadFilesAreNamed) {
  const std::string good = File("rank0.json", Operator(1'000));
  const std::string nameless = File("trace.json", Operator(1'000));
  const std::string text = File("rank1.txt", "hello");
  const std::string empty = File("rank2.json", "");
  const std::string far = File("rank3.json", Operator(1'700'000'000'000'000));
  const std::string none = folder_ / "rank4.json";
  const std::string nanoseconds = File("rank5.json", Operator(1'700'000'000'000'000'000));
  const struct {
    std::vector<std::string> words;
    int exit;
    std::string says;
  } rows[] = {
      {{"merge"}, kExitUsage, "no FILE to merge"},
      {{"merge", good, "--align", "end"}, kExitUsage, "--align is 'end'; allowed: clock, start"},
      {{"merge", good, "--rank", "x.json=1"},
       kExitUsage,
       "allowed: FILE=NUMBER, with a FILE that is merged"},
      {{"merge", good, "--rank", good}, kExitUsage, "allowed: FILE=NUMBER"},
      {{"merge", good, "--rank", good + "=-1"}, kExitUsage, "allowed: 0 and up"},
      {{"merge", good, "--shift", good + "=soon"}, kExitUsage, "allowed: microseconds"},
      {{"merge", good, "--output", ""}, kExitUsage, "--output is ''"},
      {{"merge", good, "--output", good}, kExitUsage, "which is one of the files"},
      {{"merge", good, "--format", "xplane"}, kExitUsage, "--format is 'xplane'; allowed: json"},
      {{"merge", good, "--without-system-metrics"}, kExitUsage, "goes with --trial"},
      {{"report", "one", "--trial", "t"}, kExitUsage, "one"},
      {{"merge", nameless}, kExitFailed, "trace.json: nothing tells its rank"},
      {{"merge", text},
       kExitFailed,
       "rank1.txt: this is no Chrome trace: '{' or '[' expected, found 'h'"},
      {{"merge", empty}, kExitFailed, "rank2.json: this is empty"},
      {{"merge", good, far}, kExitFailed, "rank3.json begins 53.9 years after"},
      {{"merge", good, nanoseconds},
       kExitFailed,
       "rank5.json: it has no event with a time, in microseconds before the year 2262"},
      {{"merge", good, none}, kExitNoInput, "rank4.json: No such file or directory"},
      {{"merge", good, "--output", "/proc/none/x.json"}, kExitFailed, "/proc/none/x.json"},
      {{"report"}, kExitUsage, "FILE is missing"},
      {{"report", none}, kExitNoInput, "rank4.json: No such file"},
      {{"report", "my-run"}, kExitNoInput, "; traces that the master keeps: --trial my-run\n"},
      {{"merge", "my-run"}, kExitNoInput, "; traces that the master keeps: --trial my-run\n"},
      {{"report", folder_}, kExitNoInput, "is a directory: name the traces in it"},
      {{"merge", good, folder_}, kExitNoInput, "is a directory: name the traces in it"},
      {{"report", File("m.json", "[{\"ph\":\"M\",\"name\":\"x\"}]")}, kExitFailed, "has no step"},
  };
  for (const auto& row : rows) {
    std::vector<std::string> words = {"trace"};
    words.insert(words.end(), row.words.begin(), row.words.end());
    const Outcome outcome = RunWords(words);
    EXPECT_EQ(outcome.exit, row.exit) << row.says << "\n" << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(row.says));
    EXPECT_EQ(outcome.out, "");
  }
  const std::string out = folder_ / "out.json";
  const Outcome started =
      RunWords({"trace", "merge", good, far, "--align", "start", "--output", out});
  EXPECT_EQ(started.exit, kExitOk);
  EXPECT_EQ(started.err.find("clocks"), std::string::npos) << started.err;
}

TEST(TraceFileNames, TellRankAndCycle) {
  const struct {
    const char* path;
    std::optional<std::int32_t> rank;
    const char* cycle;
  } rows[] = {
      {"ep0-ba7-rank3.json", 3, "ep0-ba7"},
      {"/rank9/ep1-ba20-rank12.json.gz", 12, "ep1-ba20"},
      {"rank3.7.pt.trace.json.gz", 3, ""},
      {"frank-rank2.json", 2, ""},
      {"/rank5/trace.json", std::nullopt, ""},
      {"rank99999999999.json", std::nullopt, ""},
      {"", std::nullopt, ""},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(RankOfTraceName(row.path), row.rank) << row.path;
    EXPECT_EQ(CycleOfTraceName(row.path), row.cycle) << row.path;
  }
}

}  // namespace
}  // namespace stepwell::cli
