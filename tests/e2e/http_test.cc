// The HTTP port of a real master: the lines of docs/http.md as they stand there, and the page.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "stepwell/v1/admin.pb.h"
#include "stepwell/v1/query.pb.h"
#include "stepwell/v1/token.pb.h"
#include "stepwell/v1/trace.grpc.pb.h"
#include "tests/e2e/bash.h"
#include "tests/e2e/spine.h"
#include "tests/e2e/trace_messages.h"
#include "tests/support/places/places.h"

namespace stepwell::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// The commands of the page's ```bash blocks, line by line.
std::vector<std::string> CommandsOfThePage() {
  std::ifstream page(SourcePlace("docs/http.md"));
  std::vector<std::string> commands;
  bool in_block = false;
  for (std::string line; std::getline(page, line);) {
    if (absl::StartsWith(line, "```")) {
      in_block = line == "```bash";
    } else if (in_block && !line.empty()) {
      commands.push_back(line);
    }
  }
  return commands;
}

// "QueryService/ListTrials" of each RPC of the contract that changes nothing: of all but those that are named here.
std::set<std::string> ReadingRpcs() {
  const std::set<std::string> changing = {
      "StreamChunks", "WriteChunks",  "Flush",        "SetProfiling",    "SetCaps",
      "SweepCaps",    "ArchiveTrial", "DeleteTrial",  "CreateToken",     "RevokeToken",
      "UploadTrace",  "DeleteTrace",  "CaptureTrace", "FetchIngestToken"};
  std::set<std::string> reading;
  for (const auto& entry : std::filesystem::directory_iterator(SourcePlace("proto/stepwell/v1"))) {
    const std::string name = absl::StrCat("stepwell/v1/", entry.path().filename().string());
    const auto* file = google::protobuf::DescriptorPool::generated_pool()->FindFileByName(name);
    EXPECT_NE(file, nullptr) << name << " is not linked in";
    for (int at = 0; file != nullptr && at < file->service_count(); ++at) {
      const auto& service = *file->service(at);
      for (int i = 0; i < service.method_count(); ++i) {
        const std::string method = service.method(i)->name();
        if (changing.count(method) == 0) reading.insert(absl::StrCat(service.name(), "/", method));
      }
    }
  }
  return reading;
}

constexpr char kTrace[] =
    R"({"traceEvents":[{"ph":"X","pid":1,"tid":1,"name":"ProfilerStep#7","cat":"user_annotation","ts":1000,"dur":500}]})";

class HttpTest : public SpineTest {
 protected:
  Answered RunBash(const std::string& script) { return testing::RunBash(scratch_.path(), script); }

  // A trial of two steps that has ended.
  void Record(const std::string& trial) {
    const Uuid writer = Uuid::Random();
    RawStream stream(*client_);
    Open(stream, writer, trial);
    ASSERT_TRUE(stream.Send(
        DefinitionMessage(writer, {{.ref = 2, .metric_group = "timing", .name = "step"}})));
    ASSERT_TRUE(stream.Send(ChunkMessage(writer, 1, OneColumn(2, NowUs(), 1000, {0.25, 0.5}))));
    ASSERT_TRUE(stream.WaitAck(writer, 1).has_value()) << master_->LogTail();
    ASSERT_TRUE(stream.Send(CloseMessage(writer, 1)));
    EXPECT_TRUE(stream.Finish().ok());
  }

  // Into `trial`, which is there.
  void UploadTrace(const std::string& trial) {
    const auto stub = v1::TraceService::NewStub(
        grpc::CreateChannel(master_->grpc_address(), grpc::InsecureChannelCredentials()));
    v1::TrialRef ref;
    ref.set_external_id(trial);
    TraceUploadCall call;
    call.writer = stub->UploadTrace(&call.context, &call.response);
    call.writer->Write(TraceHeader(ref, "ep0-ba7-rank0.json", kTrace));
    call.writer->Write(TracePart(0, kTrace));
    const grpc::Status status = call.End();
    ASSERT_TRUE(status.ok() && call.response.complete()) << status.error_message();
  }
};

TEST(HttpPageTest, EveryStreamOfThePortIsNamedAsOne) {
  std::vector<std::string> columns;
  std::ifstream page(SourcePlace("docs/http.md"));
  for (std::string line; std::getline(page, line);) {
    if (absl::StartsWith(line, "| | unary |")) columns.push_back(line);
  }
  ASSERT_EQ(columns.size(), 1U);
  int stream_count = 0;
  const std::vector<const google::protobuf::FileDescriptor*> files = {
      v1::ListTrialsRequest::descriptor()->file(), v1::FlushRequest::descriptor()->file(),
      v1::ListTracesRequest::descriptor()->file(), v1::ListTokensRequest::descriptor()->file()};
  for (const auto* file : files) {
    const auto& service = *file->service(0);
    for (int i = 0; i < service.method_count(); ++i) {
      const auto& method = *service.method(i);
      const bool is_stream = method.server_streaming() && !method.client_streaming();
      EXPECT_EQ(absl::StrContains(columns[0], absl::StrCat("`", method.name(), "`")), is_stream)
          << method.full_name();
      stream_count += is_stream ? 1 : 0;
    }
  }
  EXPECT_EQ(stream_count, 5);
}

TEST_F(HttpTest, TheLinesOfThePageAnswerAsTheyStandThere) {
  StartMaster();
  Record("documented");
  Record("another");
  UploadTrace("documented");
  std::string prelude = "set -o pipefail\nTRIAL=documented\nOTHER=another\n";
  std::map<std::string, std::string> answers;  // RPC → what its line printed
  for (const std::string& command : CommandsOfThePage()) {
    const std::string here =
        absl::StrReplaceAll(command, {{"127.0.0.1:7818", master_->http_address()}});
    const std::vector<std::string> words = absl::StrSplit(here, ' ');
    if (words[0] != "ask" && words[0] != "stream") {
      prelude += here + "\n";
      continue;
    }
    SCOPED_TRACE(command);
    const Answered answered = RunBash(prelude + here + "\n");
    // Of a master that asks for no token.
    const bool is_refused = words[1] == "TokenService/ListTokens";
    EXPECT_EQ(answered.exit_code, is_refused ? 22 : 0) << answered.output;
    EXPECT_EQ(absl::StrContains(answered.output, "failed_precondition"), is_refused);
    answers[words[1]] = answered.output;
  }
  std::set<std::string> documented;
  for (const auto& [rpc, answer] : answers) documented.insert(rpc);
  EXPECT_EQ(documented, ReadingRpcs());
  const auto json = [&](const char* rpc) {
    return nlohmann::json::parse(answers[rpc], nullptr, false);
  };
  EXPECT_EQ(json("QueryService/ListTrials")["trials"][1]["externalId"], "documented")
      << answers["QueryService/ListTrials"];
  EXPECT_EQ(json("QueryService/GetTrial")["trial"]["externalId"], "documented")
      << answers["QueryService/GetTrial"];
  EXPECT_EQ(json("QueryService/ListSeries")["series"][0]["key"]["name"], "step")
      << answers["QueryService/ListSeries"];
  EXPECT_EQ(json("QueryService/LatestValues")["values"][0]["value"], 0.5)
      << answers["QueryService/LatestValues"];
  EXPECT_EQ(json("QueryService/QueryBuckets")["series"][0]["seriesNos"][0], 2)
      << answers["QueryService/QueryBuckets"];
  EXPECT_EQ(json("QueryService/SummarizeTimings")["attempt"], 1)
      << answers["QueryService/SummarizeTimings"];
  EXPECT_EQ(json("QueryService/CompareTrials")["series"].size(), 1U)
      << answers["QueryService/CompareTrials"];
  for (const char* rpc : {"QueryService/ReadSamples", "QueryService/FollowSamples"}) {
    EXPECT_THAT(answers[rpc], HasSubstr("\"values\":[0.25,0.5]"));
    EXPECT_THAT(answers[rpc], ::testing::EndsWith("{}")) << "a stream that ended well";
  }
  EXPECT_EQ(json("TraceService/ListTraces")["traces"][0]["header"]["byteCount"],
            std::to_string(sizeof(kTrace) - 1));
  EXPECT_EQ(json("TraceService/SummarizeTrace")["steps"][0]["name"], "ProfilerStep#7");
  EXPECT_EQ(answers["TraceService/GetTrace"], kTrace);
  EXPECT_EQ(json("TraceService/MergeTraces")["traceEvents"].back()["name"], "ProfilerStep#7")
      << answers["TraceService/MergeTraces"];
  EXPECT_TRUE(json("ClockService/ReadClock").contains("serverTimeNs"));
  EXPECT_EQ(json("AdminService/GetStatus")["role"], "owner");
  EXPECT_FALSE(json("AdminService/GetCaps")["effective"].empty());
  EXPECT_EQ(json("AdminService/PreviewCaps"), nlohmann::json::object()) << "nothing would go";
}

TEST_F(HttpTest, ThePageComesOutOfTheExecutableByItsNamesAlone) {
  StartMaster();
  const std::string page = master_->Get("/");
  EXPECT_THAT(page, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(page, HasSubstr("<title>Stepwell"));
  EXPECT_THAT(page, HasSubstr("Content-Security-Policy: default-src 'self'"));
  EXPECT_THAT(master_->Get("/metrics"), HasSubstr("\nstepwell_ready 1\n"));
  const std::string url = "http://" + master_->http_address();
  const auto status = [&](const std::string& arguments) {
    return RunBash("curl -sS -o /dev/null -w '%{http_code}' " + arguments).output;
  };
  EXPECT_EQ(status("-H 'Host: evil.example' " + url + "/"), "403");
  EXPECT_EQ(status("-H 'Host: evil.example' " + url + "/livez"), "200");
  const std::string call = " -H 'Content-Type: application/json' -d '{}' " + url +
                           "/stepwell.v1.QueryService/ListTrials";
  EXPECT_EQ(status(call), "200");
  EXPECT_EQ(status("-H 'Origin: " + url + "'" + call), "200");
  EXPECT_EQ(status("-H 'Origin: http://evil.example'" + call), "403");
  EXPECT_EQ(status("-d '{}' " + url + "/stepwell.v1.AdminService/Flush"), "415") << "a form";
  EXPECT_EQ(status(url + "/stepwell.v1.QueryService/ListTrials"), "405") << "GET is off";
  EXPECT_EQ(status("-X POST " + url + "/stepwell.v1.IngestService/WriteChunks"), "404");
}

}  // namespace
}  // namespace stepwell::testing
