// Writers of a trial that takes nothing any more, through streams of one master.
#include <gtest/gtest.h>

#include "tests/unit/server/ingest_stream_fixture.h"

namespace stepwell {
namespace {

const Complaint kArchived{absl::StatusCode::kFailedPrecondition, "TRIAL_ARCHIVED", "on the shelf"};

class IngestStreamRefusedTest : public IngestStreamTest {
 protected:
  // The one answer that waits.
  pb::Refused OneRefused(IngestStream& stream) {
    const auto answers = Answers(stream);
    EXPECT_EQ(answers.size(), 1U);
    return answers.size() == 1 ? answers[0].refused() : pb::Refused();
  }
};

TEST_F(IngestStreamRefusedTest, ItsWritersAreToldOnceAndLetGoOfAndOthersGoOn) {
  const auto stream = NewStream();
  const Uuid other = Uuid::Random();
  const TrialId trial_id{Begin(*stream, writer_).trial_id()};
  stream->Handle(Open(other, "another"));
  stream->Handle(Define(other));
  Answers(*stream);
  EXPECT_EQ(registry_.open_count(), 2U);

  stream->RefuseTrial(trial_id, kArchived);
  const pb::Refused told = OneRefused(*stream);
  EXPECT_EQ(told.writer(), writer_.ToBytes());
  EXPECT_EQ(told.reason(), "TRIAL_ARCHIVED");
  EXPECT_EQ(told.message(), "on the shelf");
  EXPECT_TRUE(told.terminal());
  EXPECT_EQ(registry_.open_count(), 1U);
  stream->RefuseTrial(trial_id, kArchived);
  EXPECT_TRUE(Answers(*stream).empty()) << "it was told";

  stream->Handle(Send(writer_, 1));
  EXPECT_EQ(OneRefused(*stream).reason(), "TRIAL_ARCHIVED") << "and not NOT_OPEN or FENCED";
  stream->Handle(Send(other, 1));
  const auto answers = Answers(*stream);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].ack().committed_sequence(), 1U);

  // Taken back: the same stream may open it again.
  EXPECT_EQ(Begin(*stream, writer_).committed_sequence(), 0U);
  stream->Handle(Send(writer_, 1));
  EXPECT_EQ(Answers(*stream).size(), 1U);
  stream->Finish();
}

TEST_F(IngestStreamRefusedTest, OneThatACommitFoundFencedIsToldWhy) {
  const auto stream = NewStream();
  const pb::Opened opened = Begin(*stream, writer_);
  stream->Fence(writer_, opened.generation());
  EXPECT_EQ(OneRefused(*stream).reason(), "FENCED");
  stream->RefuseTrial(TrialId{opened.trial_id()}, kArchived);
  EXPECT_EQ(OneRefused(*stream).reason(), "TRIAL_ARCHIVED");
  stream->Finish();
}

TEST_F(IngestStreamRefusedTest, ATokenThatEndsWhileItsWriterOpensEndsWithIt) {
  const auto caller = std::make_shared<TokenHolder>();
  caller->grants = Grants::Admin();
  IngestContext context = context_;
  // What looks for its writers meanwhile has not found this one.
  context.window_over = [&](TrialId) { return caller->has_ended = true; };
  const auto stream = *IngestStream::Create(
      context, [] {}, caller);
  stream->Handle(Open(writer_));
  EXPECT_EQ(stream->end_status().code(), absl::StatusCode::kUnauthenticated);
  stream->Finish();
}

// Between its session and its claim.
TEST_F(IngestStreamRefusedTest, OneThatIsRefusedWhileItOpensIsInNoRegistry) {
  IngestContext context = context_;
  std::shared_ptr<IngestStream> stream;
  bool is_taken_back = false;
  context.window_over = [&](TrialId trial_id) {
    if (!is_taken_back) stream->RefuseTrial(trial_id, kArchived);
    return false;
  };
  stream = *IngestStream::Create(context, [] {});
  stream->Handle(Open(writer_));
  EXPECT_EQ(registry_.open_count(), 0U);
  const auto answers = Answers(*stream);
  ASSERT_GE(answers.size(), 2U);
  EXPECT_EQ(answers.back().refused().reason(), "TRIAL_ARCHIVED") << "behind what opened it";
  is_taken_back = true;
  Begin(*stream, writer_);
  EXPECT_EQ(registry_.open_count(), 1U);
  stream->Finish();
}

// No access control stands before the store here: it finds by itself that the trial is none of the token's.
TEST_F(IngestStreamRefusedTest, TheStoreIsToldToWhichTrialsTheTokenMayAdd) {
  const auto caller = std::make_shared<TokenHolder>();
  caller->grants = *Grants::Parse({"write:another", "ingest:id:77"});
  const auto stream = *IngestStream::Create(
      context_, [] {}, caller);
  stream->Handle(Open(writer_));
  EXPECT_EQ(OneRefused(*stream).reason(), "GRANT_MISSING");
  stream->Finish();
}

}  // namespace
}  // namespace stepwell
