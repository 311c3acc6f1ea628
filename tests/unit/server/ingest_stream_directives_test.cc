// What writers are asked to do, through streams of one master.
#include <gtest/gtest.h>

#include "base/steady_time.h"
#include "tests/unit/server/ingest_stream_fixture.h"

namespace stepwell {
namespace {

class IngestStreamDirectivesTest : public IngestStreamTest {
 protected:
  static pb::StreamChunksRequest OpenSampler(const Uuid& writer) {
    pb::StreamChunksRequest message = Open(writer);
    message.mutable_open()->set_is_sampler(true);
    message.mutable_open()->set_machine("boot-1");
    return message;
  }
  static pb::StreamChunksRequest DefineGpus(const Uuid& writer,
                                            const std::vector<std::string>& gpus) {
    pb::StreamChunksRequest message;
    message.mutable_definitions()->set_writer(writer.ToBytes());
    for (const std::string& gpu : gpus) {
      pb::Definition& definition = *message.mutable_definitions()->add_definitions();
      definition.set_ref(static_cast<std::uint32_t>(message.definitions().definitions_size()));
      definition.set_tick_group(1);
      definition.set_metric_group("gpu");
      definition.set_name("gpu_util");
      (*definition.mutable_labels())["device"] = gpu;
    }
    return message;
  }
  // The GPUs of the one directive that the stream has to send.
  std::vector<std::string> GpusTold(IngestStream& stream) {
    const auto answers = Answers(stream);
    EXPECT_EQ(answers.size(), 1U);
    if (answers.empty() || !answers[0].directive().has_sampling()) return {"none told"};
    const pb::Sampling& sampling = answers[0].directive().sampling();
    EXPECT_FALSE(sampling.on());
    return {sampling.gpus().begin(), sampling.gpus().end()};
  }
  // The directives of the one Opened that the stream has to send.
  std::vector<pb::Directive> DirectivesOfOpened(IngestStream& stream) {
    const auto answers = Answers(stream);
    EXPECT_EQ(answers.size(), 1U);
    if (answers.empty() || !answers[0].has_opened()) return {};
    return {answers[0].opened().directives().begin(), answers[0].opened().directives().end()};
  }
};

TEST_F(IngestStreamDirectivesTest, OneOfTwoSamplersSamplesAndTheOtherFollows) {
  const auto first = NewStream();
  const auto second = NewStream();
  const Uuid other = Uuid::Random();
  first->Handle(OpenSampler(writer_));
  auto directives = DirectivesOfOpened(*first);
  ASSERT_EQ(directives.size(), 1U);
  EXPECT_EQ(directives[0].writer(), writer_.ToBytes());
  EXPECT_TRUE(directives[0].sampling().on());
  EXPECT_EQ(directives[0].sampling().shared_with(), 1);
  second->Handle(OpenSampler(other));
  directives = DirectivesOfOpened(*second);
  ASSERT_EQ(directives.size(), 1U);
  EXPECT_FALSE(directives[0].sampling().on());
  EXPECT_TRUE(Answers(*first).empty()) << "nothing changed for it";

  first->Finish();
  const auto answers = Answers(*second);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].directive().writer(), other.ToBytes());
  EXPECT_TRUE(answers[0].directive().sampling().on());
  second->Finish();
}

TEST_F(IngestStreamDirectivesTest, AClosedSamplerMakesRoomOnceItsCloseIsCommitted) {
  const auto stream = NewStream();
  const auto second = NewStream();
  const Uuid other = Uuid::Random();
  stream->Handle(OpenSampler(writer_));
  second->Handle(OpenSampler(other));
  Answers(*second);
  stream->Handle(Close(writer_, 0));
  Answers(*stream);
  const auto answers = Answers(*second);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].directive().writer(), other.ToBytes());
  EXPECT_TRUE(answers[0].directive().sampling().on());
  second->Finish();
  stream->Finish();
}

// A trial's next attempt: the sampler of the one before is open until its backlog is stored.
TEST_F(IngestStreamDirectivesTest, AgentRule07_AnAgentIsNotToldOffByItsOwnSamplerBefore) {
  const auto stream = NewStream();
  const auto of_another_agent = NewStream();
  const Uuid next = Uuid::Random();
  const Uuid other = Uuid::Random();
  stream->Handle(OpenSampler(writer_));
  stream->Handle(DefineGpus(writer_, {"GPU-a"}));
  Answers(*stream);
  stream->Handle(OpenSampler(next));
  const auto directives = DirectivesOfOpened(*stream);
  ASSERT_EQ(directives.size(), 1U);
  EXPECT_TRUE(directives[0].sampling().on());
  of_another_agent->Handle(OpenSampler(other));
  EXPECT_FALSE(DirectivesOfOpened(*of_another_agent).at(0).sampling().on());
  stream->Handle(Close(writer_, 0));
  EXPECT_TRUE(stream->WaitSettled(SteadyTime::Now() + absl::Seconds(20)));
  for (const auto& answer : Answers(*stream)) EXPECT_FALSE(answer.has_directive()) << "it goes on";
  stream->Finish();
  EXPECT_TRUE(Answers(*of_another_agent).back().directive().sampling().on());
  of_another_agent->Finish();
}

TEST_F(IngestStreamDirectivesTest, ASamplerThatOpensOnANewStreamGoesOn) {
  const auto first = NewStream();
  const auto second = NewStream();
  const auto third = NewStream();
  const Uuid other = Uuid::Random();
  first->Handle(OpenSampler(writer_));
  third->Handle(OpenSampler(other));
  Answers(*first);
  Answers(*third);
  second->Handle(OpenSampler(writer_));
  const auto directives = DirectivesOfOpened(*second);
  ASSERT_EQ(directives.size(), 2U);
  EXPECT_TRUE(directives[0].profiling().on()) << "it may have been told otherwise before";
  EXPECT_TRUE(directives[1].sampling().on()) << "it is the same one";
  const auto answers = Answers(*first);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].refused().reason(), "FENCED");
  EXPECT_TRUE(Answers(*third).empty()) << "the other one heard nothing";
  second->Finish();
  EXPECT_TRUE(Answers(*third).at(0).directive().sampling().on());
  third->Finish();
  first->Finish();
}

TEST_F(IngestStreamDirectivesTest, WhoIsOffHearsWhichGpusTheOthersDefine) {
  using Gpus = std::vector<std::string>;
  const auto stream = NewStream();
  const auto second = NewStream();
  const auto third = NewStream();
  stream->Handle(OpenSampler(writer_));
  // A label that is refused names no GPU, and a series of another group none either.
  pb::StreamChunksRequest first_defines = DefineGpus(writer_, {"GPU-b", "GPU-a", "x", "y"});
  first_defines.mutable_definitions()->mutable_definitions(2)->set_metric_group("disk");
  (*first_defines.mutable_definitions()->mutable_definitions(3)->mutable_labels())["rank"] = "1";
  stream->Handle(first_defines);
  Answers(*stream);
  const Uuid other = Uuid::Random();
  second->Handle(OpenSampler(other));
  const auto directives = DirectivesOfOpened(*second);
  ASSERT_EQ(directives.size(), 1U);
  EXPECT_EQ(Gpus(directives[0].sampling().gpus().begin(), directives[0].sampling().gpus().end()),
            (Gpus{"GPU-a", "GPU-b"}));
  const Uuid last = Uuid::Random();
  third->Handle(OpenSampler(last));
  Answers(*third);
  second->Handle(DefineGpus(other, {"GPU-b", "GPU-c"}));
  EXPECT_EQ(GpusTold(*third), (Gpus{"GPU-a", "GPU-b", "GPU-c"}));
  EXPECT_TRUE(Answers(*second).empty());
  // The elected one leaves, and its GPU is the last one's to sample.
  stream->Handle(Close(writer_, 0));
  Answers(*stream);
  EXPECT_EQ(GpusTold(*third), (Gpus{"GPU-b", "GPU-c"}));
  EXPECT_TRUE(Answers(*second).at(0).directive().sampling().on());
  for (const auto& each : {stream, second, third}) each->Finish();
}

TEST_F(IngestStreamDirectivesTest, WhatIsStoredIsToldAtOpenAndWhatIsSetAtOnce) {
  const auto stream = NewStream();
  const pb::Opened opened = Begin(*stream, writer_);
  EXPECT_EQ(opened.directives_size(), 0) << "nobody asked, and a rank does not sample";
  const auto trial_id = TrialId{opened.trial_id()};
  const auto stored = store_.SetProfiling(trial_id, {.on = false}, state_.epoch());
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(director_.SetProfiling(trial_id, *stored), 1);
  auto answers = Answers(*stream);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_TRUE(answers[0].directive().has_profiling());
  EXPECT_FALSE(answers[0].directive().profiling().on());
  // As a master that was started again does.
  director_.Clear();
  stream->Handle(Open(Uuid::Random()));
  const auto directives = DirectivesOfOpened(*stream);
  ASSERT_EQ(directives.size(), 1U);
  EXPECT_TRUE(directives[0].has_profiling());
  EXPECT_FALSE(directives[0].profiling().on());
  stream->Finish();
}

TEST_F(IngestStreamDirectivesTest, AStreamThatNobodyReadsHoldsUpNobody) {
  const auto stream = NewStream();
  const pb::Opened opened = Begin(*stream, writer_);
  const auto trial_id = TrialId{opened.trial_id()};
  for (std::int64_t revision = 1; revision <= 50'000; ++revision) {
    director_.SetProfiling(trial_id, {.revision = revision, .on = revision % 2 == 0});
  }
  stream->Handle(Send(writer_, 1));
  const auto answers = Answers(*stream);
  ASSERT_EQ(answers.size(), 2U) << "one directive, one ack";
  EXPECT_TRUE(answers[0].directive().profiling().on());
  EXPECT_EQ(answers[1].ack().committed_sequence(), 1U);
  stream->Finish();
}

}  // namespace
}  // namespace stepwell
