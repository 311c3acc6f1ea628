#include "client/cli/trace_words.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "client/traces/profile_session.h"
#include "client/traces/trace_upload.h"

namespace stepwell::cli {
namespace {

TEST(TraceWordsTest, TracesLieWhereTensorboardLooksForThem) {
  struct Row {
    const char* name;
    v1::TraceFormat format;
    int rank;
    const char* machine;
    const char* path;
  };
  const Row rows[] = {
      {"host.xplane.pb", v1::TRACE_FORMAT_XPLANE, -1, "",
       "my-run/plugins/profile/profile/trace4.xplane.pb"},
      {"host.xplane.pb", v1::TRACE_FORMAT_XPLANE, 3, "node 1.example",
       "my-run/plugins/profile/profile/node_1_example_rank3_trace4.xplane.pb"},
      {"a.trace.json.gz", v1::TRACE_FORMAT_CHROME_JSON, 0, "",
       "my-run/plugins/profile/profile/rank0_trace4.trace.json.gz"},
      {"host_1.2.pt.trace.json.gz", v1::TRACE_FORMAT_CHROME_JSON, 0, "",
       "my-run/rank0.4.pt.trace.json.gz"},
      {"host_1.2.pt.trace.json", v1::TRACE_FORMAT_CHROME_JSON, 0, "",
       "my-run/rank0.4.pt.trace.json"},
      {"host_1.2.pt.trace.json", v1::TRACE_FORMAT_CHROME_JSON, 3, "node 1",
       "my-run/node_1_rank3.4.pt.trace.json"},
      {"host_1.2.pt.trace.json", v1::TRACE_FORMAT_CHROME_JSON, -1, "",
       "my-run/trace4.4.pt.trace.json"},
      // As they were, in TensorBoard's layout; what leads elsewhere is no such name.
      {"2026_11_27@node1.example.xplane.pb", v1::TRACE_FORMAT_XPLANE, 3, "m",
       "my-run/plugins/profile/2026_11_27/node1.example.xplane.pb"},
      {"2026_11_27@node1.trace.json.gz", v1::TRACE_FORMAT_CHROME_JSON, -1, "",
       "my-run/plugins/profile/2026_11_27/node1.trace.json.gz"},
      {"..@host.xplane.pb", v1::TRACE_FORMAT_XPLANE, -1, "",
       "my-run/plugins/profile/profile/trace4.xplane.pb"},
      {"a@b@host.xplane.pb", v1::TRACE_FORMAT_XPLANE, -1, "",
       "my-run/plugins/profile/profile/trace4.xplane.pb"},
      {"a@.xplane.pb", v1::TRACE_FORMAT_XPLANE, -1, "",
       "my-run/plugins/profile/profile/trace4.xplane.pb"},
      {"a@rank0.1.pt.trace.json.gz", v1::TRACE_FORMAT_CHROME_JSON, 0, "",
       "my-run/rank0.4.pt.trace.json.gz"},
      {"../../etc/x", v1::TRACE_FORMAT_TEXT, -1, "", "my-run/trace4.______etc_x"},
  };
  for (const Row& row : rows) {
    v1::Trace trace;
    trace.set_trace_no(4);
    trace.mutable_header()->set_name(row.name);
    trace.mutable_header()->set_format(row.format);
    trace.mutable_header()->set_machine(row.machine);
    if (row.rank >= 0) trace.mutable_header()->set_rank(row.rank);
    std::set<std::string> taken;
    EXPECT_EQ(TensorboardPath("my-run", trace, taken), row.path);
  }
  v1::Trace trace;
  trace.mutable_header()->set_format(v1::TRACE_FORMAT_XPLANE);
  trace.mutable_header()->set_epoch(0);
  trace.mutable_header()->set_last_batch(7);
  std::set<std::string> taken;
  EXPECT_EQ(TensorboardPath("../..", trace, taken),
            "_____/plugins/profile/ep0-ba7/trace0.xplane.pb");
  // Ranks that began a second apart have sessions apart, and batches in common.
  trace.mutable_header()->set_name("2026_11_27_10_00_00@host.xplane.pb");
  trace.mutable_header()->set_rank(3);
  EXPECT_EQ(TensorboardPath("run", trace, taken),
            "run/plugins/profile/ep0-ba7/rank3_trace0.xplane.pb");
}

TEST(TraceWordsTest, NoTwoTracesLieInOnePlace) {
  std::set<std::string> taken;
  v1::Trace trace;
  trace.mutable_header()->set_format(v1::TRACE_FORMAT_XPLANE);
  const auto path = [&](int trace_no, const char* name) {
    trace.set_trace_no(trace_no);
    trace.mutable_header()->set_name(name);
    return TensorboardPath("run", trace, taken);
  };
  const std::string folder = "run/plugins/profile/s/";
  EXPECT_EQ(path(1, "s@host.xplane.pb"), folder + "host.xplane.pb");
  EXPECT_EQ(path(2, "s@trace3.xplane.pb"), folder + "trace3.xplane.pb");
  EXPECT_EQ(path(3, "s@host.xplane.pb"), folder + "trace3_.xplane.pb");
  EXPECT_EQ(path(4, "t@host.xplane.pb"), "run/plugins/profile/t/host.xplane.pb");
}

TEST(TraceWordsTest, ASessionOfTensorboardsLayoutIsPartOfTheName) {
  const struct {
    const char* path;
    const char* name;
  } rows[] = {
      {"/logs/plugins/profile/2026_11_27_10_00_00/node1.xplane.pb",
       "2026_11_27_10_00_00@node1.xplane.pb"},
      {"/plugins/profile/s/node1.trace.json.gz", "s@node1.trace.json.gz"},
      {"/logs/plugins/profile/s/node1.memory_profile.json.gz", ""},
      {"/logs/plugins/profile/a b/node1.xplane.pb", ""},
      {"/logs/plugins/profile/.s/node1.xplane.pb", ""},
      {"/logs/profile/s/node1.xplane.pb", ""},
      {"/logs/plugins/profile/node1.xplane.pb", ""},
      {"node1.xplane.pb", ""},
  };
  for (const auto& row : rows) EXPECT_EQ(traces::SessionNameOf(row.path), row.name) << row.path;
  const std::string folder = "/plugins/profile/" + std::string(230, 's');
  EXPECT_EQ(traces::SessionNameOf(folder + "/12345678901.xplane.pb").size(), 252U);
  EXPECT_EQ(traces::SessionNameOf(folder + "/123456789012.xplane.pb"), "");
}

TEST(TraceWordsTest, CyclesAndStatesInWords) {
  v1::TraceHeader header;
  EXPECT_EQ(TraceCycleText(header), "");
  header.set_last_batch(7);
  EXPECT_EQ(TraceCycleText(header), "ba7");
  header.set_first_batch(5);
  header.set_epoch(1);
  EXPECT_EQ(TraceCycleText(header), "ep1-ba5...7");
  v1::Trace trace;
  trace.set_state(v1::TRACE_STATE_UPLOADING);
  trace.mutable_header()->set_byte_count(1000);
  trace.set_received_bytes(500);
  EXPECT_EQ(TraceStateText(trace), "uploading, 50 %");
  trace.set_state(v1::TRACE_STATE_REFUSED);
  trace.set_reason("trace_bytes");
  EXPECT_EQ(TraceStateText(trace), "refused: trace_bytes");
  EXPECT_TRUE(absl::IsInvalidArgument(ParseTraceFormat("chrome").status()));
}

TEST(TraceWordsTest, NamesAndFirstBytesTellTheFormat) {
  struct Row {
    const char* path;
    const char* begin;
    v1::TraceFormat format;
  };
  const Row rows[] = {
      {"x/host.xplane.pb", "\n", v1::TRACE_FORMAT_XPLANE},
      {"host.xplane.pb.gz", "\x1f\x8b", v1::TRACE_FORMAT_XPLANE},
      {"t.pftrace", "\n", v1::TRACE_FORMAT_PERFETTO},
      {"flops.txt", "{", v1::TRACE_FORMAT_TEXT},
      {"trace.json", " \n[", v1::TRACE_FORMAT_CHROME_JSON},
      {"trace", "{\"", v1::TRACE_FORMAT_CHROME_JSON},
      {"trace.json.gz", "\x1f\x8b", v1::TRACE_FORMAT_CHROME_JSON},
      {"trace.gz", "\x1f\x8b", v1::TRACE_FORMAT_UNSPECIFIED},
      {"trace.json", "x", v1::TRACE_FORMAT_UNSPECIFIED},
  };
  for (const Row& row : rows)
    EXPECT_EQ(traces::FormatOfTrace(row.path, row.begin), row.format) << row.path;
}

}  // namespace
}  // namespace stepwell::cli
