// What is kept: caps that are set, previewed and swept, by command and by the master itself; trials that
// are archived and deleted; the profiling window. On a real master and PostgreSQL.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <optional>
#include <tuple>

#include "nlohmann/json.hpp"
#include "stepwell/v1/query.grpc.pb.h"
#include "tests/e2e/commands.h"
#include "tests/support/child_process.h"
#include "tests/support/pty_child.h"

namespace stepwell::testing {
namespace {

class CapsTest : public CommandsTest {
 protected:
  // Three writers of one series after each other, 1000 samples each: a row of metrics each.
  std::int64_t RecordThreeRows(const std::string& trial) {
    RawStream stream(*client_);
    std::int64_t trial_id = 0;
    for (int turn = 0; turn < 3; ++turn) {
      const Uuid writer = Uuid::Random();
      trial_id = Open(stream, writer, trial).trial_id();
      std::vector<double> values(1000);
      std::iota(values.begin(), values.end(), turn * 1000.0);
      EXPECT_TRUE(stream.Send(
          ChunkMessage(writer, 1, OneColumn(1, start_us_ + turn * 10'000'000, 1000, values))));
      EXPECT_TRUE(stream.WaitAck(writer, 1).has_value()) << master_->LogTail();
      EXPECT_TRUE(stream.Send(CloseMessage(writer, 1)));
    }
    EXPECT_TRUE(Eventually(
        [&] {
          return QueryNumber("select count(*) from stepwell.metrics where trial_id = $1",
                             trial_id) == 3 &&
                 QueryNumber("select count(*) from stepwell.recent where trial_id = $1",
                             trial_id) == 0;
        },
        absl::Seconds(60)))
        << master_->LogTail();
    return trial_id;
  }

  template <typename Request, typename Response>
  grpc::Status Ask(grpc::Status (v1::AdminService::Stub::*method)(grpc::ClientContext*,
                                                                  const Request&, Response*),
                   const Request& request, Response& response) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    return (client_->admin().*method)(&context, request, &response);
  }
  grpc::Status SetCaps(const v1::SetCapsRequest& request) {
    v1::SetCapsResponse response;
    return Ask(&v1::AdminService::Stub::SetCaps, request, response);
  }
  grpc::Status Archive(const std::string& trial, bool archived) {
    v1::ArchiveTrialRequest request;
    request.mutable_trial()->set_external_id(trial);
    request.set_archived(archived);
    v1::ArchiveTrialResponse response;
    return Ask(&v1::AdminService::Stub::ArchiveTrial, request, response);
  }
  grpc::Status Delete(const std::string& trial, v1::DeleteTrialResponse& response) {
    v1::DeleteTrialRequest request;
    request.mutable_trial()->set_external_id(trial);
    return Ask(&v1::AdminService::Stub::DeleteTrial, request, response);
  }
  grpc::Status GetTrial(const std::string& trial, v1::GetTrialResponse& response) {
    const auto query = v1::QueryService::NewStub(client_->channel());
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    v1::GetTrialRequest request;
    request.mutable_trial()->set_external_id(trial);
    return query->GetTrial(&context, request, &response);
  }
  std::vector<v1::Gap> CapGaps(const std::string& trial) {
    v1::GetTrialResponse response;
    const grpc::Status status = GetTrial(trial, response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    std::vector<v1::Gap> gaps;
    for (const v1::Gap& gap : response.completeness().gaps()) {
      if (gap.cause() == v1::GAP_CAUSE_CAP) gaps.push_back(gap);
    }
    return gaps;
  }

  static std::optional<v1::Refused> NextRefused(RawStream& stream, const Uuid& writer) {
    const auto answer = stream.WaitFor([&](const auto& message) {
      return message.has_refused() && message.refused().writer() == writer.ToBytes();
    });
    if (!answer) return std::nullopt;
    return answer->refused();
  }
  // Until the writer is told to record, or not to.
  static bool WaitProfiling(RawStream& stream, const Uuid& writer, bool on) {
    return stream
        .WaitFor([&](const auto& message) {
          return message.has_directive() && message.directive().writer() == writer.ToBytes() &&
                 message.directive().has_profiling() && message.directive().profiling().on() == on;
        })
        .has_value();
  }
};

TEST_F(CapsTest, ASweepRemovesWhatThePreviewSaidAndAGapTellsIt) {
  StartMaster({"--fold-interval", "100ms", "--sweep-interval", "1h"});
  const std::int64_t trial_id = RecordThreeRows("capped");
  EXPECT_EQ(Command({"caps", "preview"}).output, "A sweep would remove nothing.\n");
  const Ran set = Command({"caps", "set", "--trial", "capped", "--samples", "1500", "--yes"});
  EXPECT_EQ(set.ending, "exit 0") << set.output;
  EXPECT_NE(set.output.find("trial capped"), std::string::npos) << set.output;
  const Ran got = Command({"caps", "get", "--trial", absl::StrCat("id:", trial_id), "--json"});
  ASSERT_EQ(got.ending, "exit 0") << got.output;
  const auto caps = nlohmann::json::parse(got.output);
  EXPECT_EQ(caps["set"]["series_samples"], 1500);
  EXPECT_TRUE(caps["set"]["trial_bytes"].is_null());
  EXPECT_EQ(caps["effective"][3]["value"], 1500);
  EXPECT_EQ(caps["effective"][3]["place"]["trial"]["external_id"], "capped");
  EXPECT_TRUE(caps["effective"][0]["place"].is_null());

  const Ran preview = Command({"caps", "preview", "--json"});
  ASSERT_EQ(preview.ending, "exit 0") << preview.output;
  const Ran sweep = Command({"caps", "sweep", "--json"});
  ASSERT_EQ(sweep.ending, "exit 0") << sweep.output;
  const auto would_go = nlohmann::json::parse(preview.output);
  auto went = nlohmann::json::parse(sweep.output);
  went.erase("leaves_left");
  EXPECT_EQ(went["sample_count"], 1000);
  EXPECT_EQ(went["removals"][0]["field"], "series_samples");
  EXPECT_EQ(went["removals"][0]["first_time_us"], start_us_);
  EXPECT_EQ(went["removals"][0]["last_time_us"], start_us_ + 999 * 1000);
  EXPECT_EQ(went["sample_count"], would_go["sample_count"]);
  EXPECT_EQ(went["removals"][0]["first_time_us"], would_go["removals"][0]["first_time_us"]);

  const auto samples = Samples(trial_id, "value");
  ASSERT_EQ(samples.size(), 2000U);
  EXPECT_EQ(samples.front().value, 1000);
  const auto gaps = CapGaps("capped");
  ASSERT_EQ(gaps.size(), 1U);
  EXPECT_EQ(gaps[0].sample_count(), 1000);
  EXPECT_EQ(gaps[0].reason(), "series_samples");
  v1::GetTrialResponse trial;
  ASSERT_TRUE(GetTrial("capped", trial).ok());
  EXPECT_EQ(trial.completeness().samples_held(), 2000);
  EXPECT_EQ(trial.completeness().samples_missing(), 1000);
  EXPECT_EQ(Command({"caps", "sweep"}).output, "Nothing was to be removed.\n");
}

// A forgotten unit, `--bytes 1`, was taken without a word, and the next sweep removed all of it.
TEST_F(CapsTest, CapsThatWouldRemoveSomethingAreAskedForBeforeTheyAreSet) {
  StartMaster({"--fold-interval", "100ms", "--sweep-interval", "1h"});
  const std::int64_t trial_id = RecordThreeRows("dear");
  const auto bytes_set = [&] {
    const Ran got = Command({"caps", "get", "--trial", "dear", "--json"});
    return nlohmann::json::parse(got.output)["set"]["trial_bytes"];
  };
  // Nobody can be asked.
  const std::vector<std::string> words = {"caps", "set", "--trial", "dear", "--bytes", "1"};
  const Ran refused = Command(words);
  EXPECT_EQ(refused.ending, "exit 64") << refused.output;
  for (const char* says : {"trial dear the next sweep would remove 3,000 samples (", "for good.",
                           "nothing was set: nobody can be asked here", "give --yes"}) {
    EXPECT_NE(refused.output.find(says), std::string::npos) << says << "\n" << refused.output;
  }
  EXPECT_TRUE(bytes_set().is_null());
  // Nothing would go.
  const Ran large = Command({"caps", "set", "--trial", "dear", "--bytes", "1GiB"});
  EXPECT_EQ(large.ending, "exit 0") << large.output;
  EXPECT_EQ(large.output.find("would remove"), std::string::npos) << large.output;

  for (const auto& [answer, ending, bytes] :
       {std::tuple("n\r", "exit 1", INT64_C(1) << 30), std::tuple("\r", "exit 1", INT64_C(1) << 30),
        std::tuple("y\r", "exit 0", INT64_C(1))}) {
    SCOPED_TRACE(answer);
    std::vector<std::string> asked = {BuiltProgram("stepwell")};
    asked.insert(asked.end(), words.begin(), words.end());
    asked.insert(asked.end(), {"--server", master_->grpc_address()});
    PtyChild person(asked, {{"TERM", "xterm"}}, 200, 40);
    ASSERT_TRUE(person.WaitFor("Set them? [y/N] ", absl::Seconds(30))) << person.shown();
    EXPECT_NE(person.shown().find(absl::StrCat("id:", trial_id)), std::string::npos);
    person.Type(answer);
    EXPECT_EQ(person.Wait(absl::Seconds(30)), ending) << person.shown();
    EXPECT_EQ(bytes_set(), bytes);
  }
  // All of it goes anyway by now: a wider cap changes nothing of that.
  const Ran again = Command({"caps", "set", "--bytes", "1"});
  EXPECT_EQ(again.ending, "exit 0") << again.output;
  const Ran scripted = Command({"caps", "set", "--trial", "dear", "--samples", "1", "--yes"});
  EXPECT_EQ(scripted.ending, "exit 0") << scripted.output;
}

TEST_F(CapsTest, TheMasterSweepsByItselfAndEndsInOrder) {
  StartMaster({"--fold-interval", "100ms", "--sweep-interval", "200ms"});
  const std::int64_t trial_id = RecordThreeRows("by-itself");
  v1::SetCapsRequest request;
  request.mutable_place()->set_project("default");
  request.mutable_caps()->set_series_samples(900);
  ASSERT_TRUE(SetCaps(request).ok());
  EXPECT_TRUE(
      Eventually([&] { return Samples(trial_id, "value").size() == 1000; }, absl::Seconds(60)))
      << master_->LogTail();
}

TEST_F(CapsTest, RefusesWhatCannotBeAndNamesTheField) {
  StartMaster();
  struct Row {
    std::function<void(v1::SetCapsRequest&)> change;
    grpc::StatusCode code;
    std::string says;
  };
  const Row rows[] = {
      {[](auto& request) { request.clear_place(); }, grpc::StatusCode::INVALID_ARGUMENT,
       "place is missing"},
      {[](auto& request) { request.mutable_caps()->set_raw_age_seconds(-1); },
       grpc::StatusCode::INVALID_ARGUMENT,
       "caps.raw_age_seconds: -1; allowed are 0 (no bound) to 3153600000"},
      {[](auto& request) { request.mutable_place()->set_project("a b"); },
       grpc::StatusCode::INVALID_ARGUMENT, "place.project must be"},
      {[](auto& request) { request.mutable_place()->set_metric_group(std::string(129, 'g')); },
       grpc::StatusCode::INVALID_ARGUMENT, "place.metric_group"},
      {[](auto& request) { request.add_clear("age"); }, grpc::StatusCode::INVALID_ARGUMENT,
       "clear: there is no cap 'age'"},
      {[](auto& request) {
         request.mutable_place()->set_metric_group("gpu");
         request.mutable_caps()->set_profiling_window_seconds(5);
       },
       grpc::StatusCode::INVALID_ARGUMENT, "caps.profiling_window_seconds: "},
      {[](auto& request) { request.mutable_place()->mutable_trial()->set_external_id("none"); },
       grpc::StatusCode::NOT_FOUND, "there is no trial 'none'"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.says);
    v1::SetCapsRequest request;
    request.mutable_place();
    row.change(request);
    const grpc::Status status = SetCaps(request);
    EXPECT_EQ(status.error_code(), row.code);
    EXPECT_NE(status.error_message().find(row.says), std::string::npos) << status.error_message();
  }
  // A ninth pair of ages; nothing of it is set.
  grpc::Status last;
  for (int days = 1; days <= 8 && last.ok(); ++days) {
    v1::SetCapsRequest request;
    request.mutable_place()->set_project(absl::StrCat("p", days));
    request.mutable_caps()->set_raw_age_seconds(days * 86'400);
    last = SetCaps(request);
  }
  EXPECT_EQ(last.error_code(), grpc::StatusCode::FAILED_PRECONDITION) << last.error_message();
}

TEST_F(CapsTest, AnArchivedTrialReadsOnAndIsNotWritten) {
  StartMaster({"--fold-interval", "100ms"});
  RawStream stream(*client_);
  const Uuid writer = Uuid::Random();
  const std::int64_t trial_id = Open(stream, writer, "shelf").trial_id();
  ASSERT_TRUE(stream.Send(ChunkMessage(writer, 1, OneColumn(1, start_us_, 1000, {1, 2, 3}))));
  ASSERT_TRUE(stream.WaitAck(writer, 1).has_value()) << master_->LogTail();

  v1::DeleteTrialResponse deleted;
  const grpc::Status in_use = Delete("shelf", deleted);
  EXPECT_EQ(in_use.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_NE(in_use.error_message().find("archive it first"), std::string::npos)
      << in_use.error_message();

  ASSERT_TRUE(Archive("shelf", true).ok());
  const auto told = NextRefused(stream, writer);
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->reason(), "TRIAL_ARCHIVED");
  EXPECT_TRUE(told->terminal());
  ASSERT_TRUE(stream.Send(ChunkMessage(writer, 2, OneColumn(1, start_us_, 1000, {4}))));
  EXPECT_EQ(NextRefused(stream, writer)->reason(), "TRIAL_ARCHIVED");
  const Uuid late = Uuid::Random();
  ASSERT_TRUE(stream.Send(OpenMessage({.writer = late, .external_id = "shelf"})));
  const auto refused = NextRefused(stream, late);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->reason(), "TRIAL_ARCHIVED");
  EXPECT_TRUE(refused->terminal());

  // What had been acked is there.
  ASSERT_TRUE(client_->Flush().ok());
  EXPECT_EQ(Samples(trial_id, "value").size(), 3U);
  v1::GetTrialResponse trial;
  EXPECT_TRUE(GetTrial("shelf", trial).ok());
  EXPECT_EQ(trial.completeness().samples_held(), 3);

  const Ran back = Command({"admin", "unarchive", "shelf"});
  EXPECT_EQ(back.ending, "exit 0") << back.output;
  EXPECT_EQ(Open(stream, writer, "shelf").committed_sequence(), 1U);
  ASSERT_TRUE(stream.Send(ChunkMessage(writer, 2, OneColumn(1, start_us_ + 9000, 1000, {4}))));
  EXPECT_TRUE(stream.WaitAck(writer, 2).has_value()) << master_->LogTail();
}

TEST_F(CapsTest, ALateWriterOfADeletedTrialIsRefusedForGood) {
  StartMaster({"--fold-interval", "100ms"});
  const std::int64_t trial_id = RecordThreeRows("gone");
  const Ran unasked = Command({"admin", "delete", "gone"});
  EXPECT_EQ(unasked.ending, "exit 64") << unasked.output;
  const Ran deleted = Command({"admin", "delete", "gone", "--yes", "--json"});
  ASSERT_EQ(deleted.ending, "exit 0") << deleted.output;
  const auto answer = nlohmann::json::parse(deleted.output);
  EXPECT_EQ(answer["trial_id"], trial_id);
  EXPECT_EQ(answer["sample_count"], 3000);
  EXPECT_TRUE(answer["done"]) << deleted.output;

  v1::GetTrialResponse trial;
  EXPECT_EQ(GetTrial("gone", trial).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(Samples(trial_id, "value").empty());
  EXPECT_EQ(QueryNumber("select count(*) from stepwell.metrics where trial_id = $1", trial_id), 0);
  RawStream stream(*client_);
  for (const std::int64_t by_id : {std::int64_t{0}, trial_id}) {
    for (int again = 0; again < 2; ++again) {
      const Uuid writer = Uuid::Random();
      ASSERT_TRUE(stream.Send(OpenMessage(
          {.writer = writer, .external_id = by_id == 0 ? "gone" : "", .trial_id = by_id})));
      const auto refused = NextRefused(stream, writer);
      ASSERT_TRUE(refused.has_value());
      EXPECT_EQ(refused->reason(), "TRIAL_DELETED");
      EXPECT_TRUE(refused->terminal());
    }
  }
  // It can be said again; another trial is not concerned.
  v1::DeleteTrialResponse once_more;
  EXPECT_TRUE(Delete("gone", once_more).ok());
  Open(stream, Uuid::Random(), "another");
}

TEST_F(CapsTest, AProfilingWindowEndsRecordingWhateverAnOperatorAsks) {
  StartMaster({"--fold-interval", "100ms"});
  RawStream stream(*client_);
  const Uuid writer = Uuid::Random();
  Open(stream, writer, "windowed");
  v1::SetCapsRequest request;
  request.mutable_place()->mutable_trial()->set_external_id("windowed");
  request.mutable_caps()->set_profiling_window_seconds(1);
  ASSERT_TRUE(SetCaps(request).ok());
  EXPECT_TRUE(WaitProfiling(stream, writer, false)) << master_->LogTail();
  EXPECT_TRUE(Eventually([&] { return CapGaps("windowed").size() == 1; }, absl::Seconds(20)));
  EXPECT_EQ(CapGaps("windowed")[0].reason(), "profiling_window_seconds");

  // An operator's wish is stored, and does not outlive the window.
  const Ran asked = Command({"admin", "profiling", "windowed", "on", "--interval", "2s"});
  EXPECT_EQ(asked.ending, "exit 0") << asked.output;
  EXPECT_TRUE(WaitProfiling(stream, writer, false));
  v1::GetTrialResponse trial;
  ASSERT_TRUE(GetTrial("windowed", trial).ok());
  ASSERT_TRUE(trial.has_profiling());
  EXPECT_FALSE(trial.profiling().on());
  EXPECT_EQ(trial.profiling().interval_us(), 2'000'000);

  // One that opens later is told at once.
  const Uuid later = Uuid::Random();
  const v1::Opened opened = Open(stream, later, "windowed", 1);
  ASSERT_GE(opened.directives_size(), 1);
  EXPECT_FALSE(opened.directives(0).profiling().on());

  // Lifted, what the operator stored holds; the gap stays, once.
  request.mutable_caps()->Clear();
  request.add_clear("profiling_window_seconds");
  ASSERT_TRUE(SetCaps(request).ok());
  EXPECT_TRUE(WaitProfiling(stream, writer, true)) << master_->LogTail();
  EXPECT_EQ(CapGaps("windowed").size(), 1U);
  ASSERT_TRUE(GetTrial("windowed", trial).ok());
  EXPECT_TRUE(trial.profiling().on());
}

TEST_F(CapsTest, AStandbyTellsCapsAndChangesNothing) {
  StartMaster();
  RawStream stream(*client_);
  Open(stream, Uuid::Random(), "kept");
  MasterProcess::Options options;
  options.scratch = scratch_.path();
  options.name = "second";
  options.database_url = master_->database_url();
  options.flags = {"--master-id=second"};
  MasterProcess second(options);
  second.Start({});
  ASSERT_TRUE(
      Eventually([&] { return second.Get("/readyz").find("standby: ") != std::string::npos; },
                 absl::Seconds(60)))
      << second.LogTail();
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"caps", "set", "--bytes", "3GiB"},
        {"caps", "sweep"},
        {"admin", "archive", "kept"},
        {"admin", "delete", "kept", "--yes"}}) {
    const Ran refused = Command(words, second.grpc_address());
    EXPECT_EQ(refused.ending, "exit 69") << refused.output;
    EXPECT_NE(refused.output.find("standby: "), std::string::npos) << refused.output;
  }
  const Ran got = Command({"caps", "get"}, second.grpc_address());
  EXPECT_EQ(got.ending, "exit 0") << got.output;
  EXPECT_EQ(got.output.find("3GiB"), std::string::npos) << got.output;
  EXPECT_EQ(second.Stop(), "exit 0") << second.LogTail();
}

}  // namespace
}  // namespace stepwell::testing
