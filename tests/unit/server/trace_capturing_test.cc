// Captures from the call on: a director's streams are played by agents of a few lines.
#include "server/trace_capturing.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "server/error_details.h"

namespace stepwell {
namespace {

constexpr TrialId kTrial{7};

// An agent: answers what its writers are asked. Called under no lock, on the call's thread.
class Agent final : public DirectiveSink {
 public:
  using Answer = std::function<void(const Uuid& writer, const v1::Capture& asked)>;
  explicit Agent(Answer answer) : answer_(std::move(answer)) {}
  bool Direct(const Uuid& writer, std::uint64_t, const v1::Directive& directive) override {
    if (!directive.has_capture()) return true;
    if (directive.capture().cancelled()) {
      ++cancelled_;
    } else {
      answer_(writer, directive.capture());
    }
    return true;
  }
  int cancelled() const { return cancelled_; }

 private:
  const Answer answer_;
  std::atomic<int> cancelled_{0};
};

class TraceCapturingTest : public ::testing::Test {
 protected:
  static CaptureWish Wish(std::vector<std::int32_t> ranks,
                          absl::Duration timeout = absl::Seconds(30)) {
    return {.trial = {.external_id = "t"},
            .projects = std::vector<std::string>{"vision"},
            .ranks = std::move(ranks),
            .step_count = 5,
            .timeout = timeout};
  }
  Uuid OpenRank(std::int32_t rank, const std::shared_ptr<DirectiveSink>& agent,
                std::uint64_t generation = 1, std::optional<WriterNo> writer_no_wanted = {}) {
    const WriterNo writer_no = writer_no_wanted.value_or(WriterNo{rank + 1});
    const Uuid writer = Uuid::Random();
    director_.Opened({.trial_id = kTrial,
                      .writer_no = writer_no,
                      .generation = generation,
                      .uuid = writer,
                      .machine = "m",
                      .rank = rank},
                     agent);
    writer_nos_[writer] = writer_no;
    return writer;
  }
  v1::CaptureReport ReportOf(const v1::Capture& asked, v1::CaptureProgress progress) {
    v1::CaptureReport report;
    report.set_capture(asked.capture());
    report.set_progress(progress);
    return report;
  }
  // Whole steps from `next_batch` on; records and uploads what it is asked for.
  std::shared_ptr<Agent> Willing(std::int32_t next_batch) {
    return std::make_shared<Agent>(
        [this, next_batch](const Uuid& writer, const v1::Capture& asked) {
          const WriterNo writer_no = writer_nos_.at(writer);
          if (asked.step_count() == 0) {
            auto ready = ReportOf(asked, v1::CAPTURE_PROGRESS_READY);
            ready.set_first_batch(next_batch);
            return capturing_.Reported(kTrial, writer_no, 1, ready);
          }
          auto recorded = ReportOf(asked, v1::CAPTURE_PROGRESS_RECORDED);
          recorded.set_name(absl::StrCat("of-", asked.first_batch(), "-", Value(writer_no)));
          recorded.set_step_count(asked.step_count());
          capturing_.Reported(kTrial, writer_no, 1, recorded);
          capturing_.Uploaded(kTrial, recorded.name(), Value(writer_no));
        });
  }
  absl::Status Run(const CaptureWish& wish) {
    return capturing_.Run(
        wish, [this] { return is_asked_.load(); },
        [this](const v1::CaptureTraceResponse& news) {
          last_ = news;
          return absl::OkStatus();
        });
  }

  std::map<std::string, TrialId> trials_ = {{"t", kTrial}};
  std::map<Uuid, WriterNo> writer_nos_;
  std::vector<WriterRecord> writers_;
  std::string project_ = "vision";  // of the trial
  std::atomic<bool> is_asked_{true};
  v1::CaptureTraceResponse last_;
  WriterDirector director_{RealClock::Get()};
  TraceCapturing capturing_{
      director_,
      {.find_trial = [this](const TrialSelector& trial, const ProjectFilter& projects,
                            SteadyTime) -> absl::StatusOr<TrialId> {
         if (!projects.LetsThrough(project_)) return absl::NotFoundError("no such trial");
         const auto found = trials_.find(trial.external_id);
         if (found == trials_.end()) return absl::NotFoundError("no such trial");
         return found->second;
       },
       .list_writers = [this](TrialId, SteadyTime) { return writers_; }},
      {.answer_patience = absl::Milliseconds(200),
       .native_answer_patience = absl::Milliseconds(50),
       .upload_patience = absl::Milliseconds(200)}};
};

TEST_F(TraceCapturingTest, OfSeveralProcessesWithOneRankTheNewestIsAskedAndTheRowSaysSo) {
  const auto willing = Willing(8);
  OpenRank(0, willing);
  OpenRank(0, willing, 1, WriterNo{9});
  OpenRank(1, willing);
  ASSERT_EQ(Run(Wish({})), absl::OkStatus());
  ASSERT_EQ(last_.ranks_size(), 2);
  EXPECT_EQ(last_.ranks(0).trace_no(), 9);
  EXPECT_EQ(last_.ranks(0).message(), "of 2 open processes with this rank the newest was asked");
  EXPECT_EQ(last_.ranks(1).message(), "");
}

TEST_F(TraceCapturingTest, AllRanksGetTheSameSteps) {
  const auto slow = Willing(100);
  const auto fast = Willing(103);
  OpenRank(0, slow);
  OpenRank(1, fast);
  OpenRank(2, slow);
  ASSERT_EQ(Run(Wish({})), absl::OkStatus());
  EXPECT_TRUE(last_.is_over());
  EXPECT_EQ(last_.trial_id(), 7);
  EXPECT_EQ(last_.first_batch(), 103);
  ASSERT_EQ(last_.ranks_size(), 3);
  for (const auto& rank : last_.ranks()) {
    EXPECT_EQ(rank.name(), absl::StrCat("of-103-", rank.rank() + 1));
    EXPECT_EQ(rank.trace_no(), rank.rank() + 1);
  }
}

TEST_F(TraceCapturingTest, EachRankThatCannotSaysWhyAndKeepsNoOtherFromIt) {
  writers_ = {
      {.writer_no = WriterNo{2}, .rank = 1, .state = WriterState::kDied},
      {.writer_no = WriterNo{3}, .rank = 2, .state = WriterState::kClosed},
      {.writer_no = WriterNo{4}, .rank = 3, .agent_id = "gpu4", .state = WriterState::kOpen},
      {.writer_no = WriterNo{5}, .agent_id = "gpu4", .state = WriterState::kOpen}};
  const auto willing = Willing(10);
  const auto refusing =
      std::make_shared<Agent>([this](const Uuid& writer, const v1::Capture& asked) {
        auto failed = ReportOf(asked, v1::CAPTURE_PROGRESS_FAILED);
        failed.set_reason("ALL_USERS_AGENT");
        capturing_.Reported(kTrial, writer_nos_.at(writer), 1, failed);
      });
  const auto silent = std::make_shared<Agent>([](const Uuid&, const v1::Capture&) {});
  OpenRank(0, willing);
  OpenRank(4, refusing);
  OpenRank(5, silent);
  const SteadyTime began = SteadyTime::Now();
  ASSERT_EQ(Run(Wish({0, 1, 2, 3, 4, 5, 6})), absl::OkStatus());
  EXPECT_LT(SteadyTime::Now() - began, absl::Seconds(20));
  const std::vector<std::string> reasons = {"",
                                            "WRITER_ENDED",
                                            "WRITER_ENDED",
                                            "NO_AGENT",
                                            "ALL_USERS_AGENT",
                                            "AGENT_SILENT",
                                            "UNKNOWN_RANK"};
  ASSERT_EQ(last_.ranks_size(), 7);
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(last_.ranks(i).reason(), reasons[static_cast<std::size_t>(i)]) << i;
  }
  EXPECT_EQ(last_.ranks(0).state(), v1::CAPTURE_STATE_STORED);
  EXPECT_NE(last_.ranks(3).message().find("gpu4"), std::string::npos);
  EXPECT_EQ(silent->cancelled(), 1) << "it may answer later";
  EXPECT_EQ(willing->cancelled(), 0);
}

// Its steps begin later than others after the last answer, and no later than those after the call.
TEST_F(TraceCapturingTest, ANativeCaptureWaitsShorterForAnswers) {
  const auto silent = std::make_shared<Agent>([](const Uuid&, const v1::Capture&) {});
  OpenRank(5, silent);
  for (const bool native : {false, true}) {
    CaptureWish wish = Wish({5});
    wish.native = native;
    ASSERT_EQ(Run(wish), absl::OkStatus());
    EXPECT_EQ(last_.ranks(0).reason(), "AGENT_SILENT");
    EXPECT_NE(last_.ranks(0).message().find(native ? "within 50ms" : "within 200ms"),
              std::string::npos)
        << last_.ranks(0).message();
  }
}

TEST_F(TraceCapturingTest, OneCaptureOfATrialAtATimeAndNoneWithoutRanks) {
  const auto none = Run(Wish({}));
  EXPECT_TRUE(absl::IsFailedPrecondition(none)) << none;
  CaptureWish foreign = Wish({});
  foreign.trial.external_id = "other";
  EXPECT_TRUE(absl::IsNotFound(Run(foreign)));
  CaptureWish hidden = Wish({});
  hidden.projects = std::vector<std::string>{"speech"};
  EXPECT_TRUE(absl::IsNotFound(Run(hidden)));
  // Asked while it is under way.
  absl::Status second;
  const auto agent = std::make_shared<Agent>([&](const Uuid& writer, const v1::Capture& asked) {
    if (asked.step_count() > 0) return;
    second = capturing_.Run(
        Wish({}), [] { return true; }, [](const auto&) { return absl::OkStatus(); });
    auto failed = ReportOf(asked, v1::CAPTURE_PROGRESS_FAILED);
    capturing_.Reported(kTrial, writer_nos_.at(writer), 1, failed);
  });
  OpenRank(0, agent);
  EXPECT_EQ(Run(Wish({})), absl::OkStatus());
  EXPECT_TRUE(absl::IsFailedPrecondition(second)) << second;
  EXPECT_EQ(std::string(second.GetPayload("stepwell/reason").value_or(absl::Cord())),
            "CAPTURE_UNDER_WAY");
  EXPECT_EQ(Run(Wish({})), absl::OkStatus()) << "the place is free again";
}

TEST_F(TraceCapturingTest, WhoFindsNoPlaceIsToldWhenToComeAgain) {
  // Each is asked while those before it are under way.
  std::vector<absl::Status> ends;
  std::function<void(int)> capture;
  const auto agent = std::make_shared<Agent>([&](const Uuid& writer, const v1::Capture& asked) {
    if (asked.step_count() > 0) return;
    const WriterNo writer_no = writer_nos_.at(writer);
    capture(Value(writer_no) + 1);
    capturing_.Reported(TrialId{Value(writer_no)}, writer_no, 1,
                        ReportOf(asked, v1::CAPTURE_PROGRESS_FAILED));
  });
  capture = [&](int at) {
    const std::string name = absl::StrCat("t", at);
    const TrialId trial_id = trials_[name] = TrialId{at};
    const Uuid writer = Uuid::Random();
    writer_nos_[writer] = WriterNo{at};
    director_.Opened({.trial_id = trial_id,
                      .writer_no = WriterNo{at},
                      .generation = 1,
                      .uuid = writer,
                      .machine = "m",
                      .rank = 0},
                     agent);
    CaptureWish wish = Wish({});
    wish.trial.external_id = name;
    ends.push_back(Run(wish));
  };
  capture(1);
  ASSERT_EQ(ends.size(), 9U);
  EXPECT_EQ(ends[0].code(), absl::StatusCode::kResourceExhausted) << ends[0];
  const ErrorDetails details = DetailsOf(ends[0]);
  EXPECT_EQ(details.reason, "CAPTURES_UNDER_WAY");
  EXPECT_EQ(details.retry_delay, absl::Seconds(10));
  for (std::size_t i = 1; i < ends.size(); ++i) EXPECT_EQ(ends[i], absl::OkStatus()) << i;
}

TEST_F(TraceCapturingTest, ARankWhoseStreamEndsAndOneThatNeverRecordsDoNotHoldTheCall) {
  // Ready, and then nothing.
  const auto ready = std::make_shared<Agent>([this](const Uuid& writer, const v1::Capture& asked) {
    const WriterNo writer_no = writer_nos_.at(writer);
    if (asked.step_count() == 0) {
      capturing_.Reported(kTrial, writer_no, 1, ReportOf(asked, v1::CAPTURE_PROGRESS_READY));
    } else if (writer_no == WriterNo{1}) {
      director_.Lost(kTrial, writer_no, 1);
    }
  });
  OpenRank(0, ready);
  OpenRank(1, ready);
  ASSERT_EQ(Run(Wish({}, absl::Milliseconds(300))), absl::OkStatus());
  EXPECT_EQ(last_.ranks(0).reason(), "STREAM_ENDED");
  EXPECT_EQ(last_.ranks(1).reason(), "NO_STEPS");
}

// As a process that is killed between its own trace and its native one, which is written for seconds.
TEST_F(TraceCapturingTest, ARankThatEndsBetweenItsTraceAndItsProfileDoesNotHoldTheCall) {
  const auto agent = std::make_shared<Agent>([this](const Uuid& writer, const v1::Capture& asked) {
    const WriterNo writer_no = writer_nos_.at(writer);
    if (asked.step_count() == 0) {
      return capturing_.Reported(kTrial, writer_no, 1, ReportOf(asked, v1::CAPTURE_PROGRESS_READY));
    }
    auto recorded = ReportOf(asked, v1::CAPTURE_PROGRESS_RECORDED);
    recorded.set_name(absl::StrCat("of-", Value(writer_no)));
    capturing_.Reported(kTrial, writer_no, 1, recorded);
    capturing_.Uploaded(kTrial, recorded.name(), Value(writer_no));
    if (writer_no == WriterNo{1}) return director_.Lost(kTrial, writer_no, 1);
    recorded.set_native(true);
    recorded.set_name("profile");
    capturing_.Reported(kTrial, writer_no, 1, recorded);
    director_.Lost(kTrial, writer_no, 1);
    capturing_.Uploaded(kTrial, recorded.name(), 7);
  });
  OpenRank(0, agent);
  OpenRank(1, agent);
  CaptureWish wish = Wish({}, absl::Seconds(30));
  wish.native = true;
  const SteadyTime began = SteadyTime::Now();
  ASSERT_EQ(Run(wish), absl::OkStatus());
  EXPECT_LT(SteadyTime::Now() - began, absl::Seconds(15));
  EXPECT_EQ(last_.ranks(0).trace_no(), 1);
  EXPECT_EQ(last_.ranks(0).native().reason(), "STREAM_ENDED");
  EXPECT_EQ(last_.ranks(1).trace_no(), 2);
  EXPECT_EQ(last_.ranks(1).native().trace_no(), 7) << "it was handed over, whoever is gone";
}

TEST_F(TraceCapturingTest, AnUploadThatIsRefusedOrNeverComesIsTold) {
  const auto recording = std::make_shared<Agent>([this](const Uuid& writer,
                                                        const v1::Capture& asked) {
    const WriterNo writer_no = writer_nos_.at(writer);
    if (asked.step_count() == 0) {
      return capturing_.Reported(kTrial, writer_no, 1, ReportOf(asked, v1::CAPTURE_PROGRESS_READY));
    }
    auto recorded = ReportOf(asked, v1::CAPTURE_PROGRESS_RECORDED);
    recorded.set_name(absl::StrCat("of-", Value(writer_no)));
    capturing_.Reported(kTrial, writer_no, 1, recorded);
    if (writer_no != WriterNo{1}) return;
    capturing_.NotUploaded({.external_id = "other"}, "of-2", absl::OkStatus());
    capturing_.NotUploaded({.external_id = "t"}, "of-1", absl::ResourceExhaustedError("too large"));
  });
  OpenRank(0, recording);
  OpenRank(1, recording);
  ASSERT_EQ(Run(Wish({}, absl::Milliseconds(300))), absl::OkStatus());
  EXPECT_EQ(last_.ranks(0).reason(), "UPLOAD_REFUSED");
  EXPECT_EQ(last_.ranks(1).reason(), "UPLOAD_MISSING");
}

TEST_F(TraceCapturingTest, WhereNobodyWaitsWhatHasNotBegunIsTakenBack) {
  const auto silent =
      std::make_shared<Agent>([this](const Uuid&, const v1::Capture&) { is_asked_ = false; });
  OpenRank(0, silent);
  EXPECT_TRUE(absl::IsCancelled(Run(Wish({}))));
  EXPECT_EQ(silent->cancelled(), 1);
}

TEST(CheckCaptureTest, NamesTheFieldAndWhatIsAllowed) {
  const struct {
    const char* name;
    std::function<void(v1::CaptureTraceRequest&)> spoil;
    const char* reason;
  } rows[] = {
      {"trial", [](auto& request) { request.mutable_trial()->Clear(); }, "TRIAL_REF"},
      {"many ranks",
       [](auto& request) {
         for (int i = 0; i < 257; ++i) request.add_ranks(i);
       },
       "RANK_COUNT"},
      {"negative", [](auto& request) { request.add_ranks(-1); }, "RANK_RANGE"},
      {"twice",
       [](auto& request) {
         for (const int rank : {3, 0, 3}) request.add_ranks(rank);
       },
       "RANK_TWICE"},
      {"no steps", [](auto& request) { request.set_step_count(-1); }, "STEP_COUNT"},
      {"many steps", [](auto& request) { request.set_step_count(1001); }, "STEP_COUNT"},
      {"long", [](auto& request) { request.set_timeout_seconds(601); }, "TIMEOUT_RANGE"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    v1::CaptureTraceRequest request;
    request.mutable_trial()->set_external_id("t");
    CaptureWish wish{.projects = kAllProjects};
    ASSERT_FALSE(CheckCapture(request, wish).has_value());
    EXPECT_EQ(wish.step_count, 5);
    EXPECT_EQ(wish.timeout, absl::Seconds(60));
    row.spoil(request);
    const MaybeComplaint complaint = CheckCapture(request, wish);
    ASSERT_TRUE(complaint.has_value());
    EXPECT_EQ(complaint->reason, row.reason);
  }
}

}  // namespace
}  // namespace stepwell
