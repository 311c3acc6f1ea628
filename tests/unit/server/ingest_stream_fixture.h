// IngestStreamTest: a stream, the committer and the registry together, on a store in memory.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/steady_time.h"
#include "server/ingest_stream.h"
#include "server/recovery.h"
#include "tests/fakes/fake_ingest_store.h"
#include "tests/unit/server/chunk_maker.h"
#include "tests/unit/server/no_folds.h"

namespace stepwell {

class IngestStreamTest : public ::testing::Test {
 protected:
  IngestStreamTest()
      : registry_(RealClock::Get()),
        queue_({}),
        committer_({.backoff = {.first = absl::Milliseconds(1), .longest = absl::Milliseconds(5)}},
                   {store_, queue_, heads_, state_, stats_, RealClock::Get()}),
        context_{store_, queue_, heads_, state_, stats_, registry_, director_, RealClock::Get()} {
    Own();
    committer_.Start();
  }
  ~IngestStreamTest() override { committer_.Stop(SteadyTime::InfinitePast()); }

  RecoveryParts Recovery() { return {store_, folds_, heads_, registry_, state_, stats_}; }

  void Own() {
    const auto owner = store_.AcquireOwnership({.master_id = "master-a", .address = "here"});
    ASSERT_TRUE(owner.ok());
    ASSERT_TRUE(TakeOver(Recovery(), owner->epoch).ok());
    state_.SetDatabase(absl::OkStatus());
    state_.BecomeOwner(owner->epoch, false);
  }

  std::shared_ptr<IngestStream> NewStream() {
    auto stream = IngestStream::Create(context_, [] {});
    EXPECT_TRUE(stream.ok()) << stream.status();
    return *stream;
  }

  static pb::StreamChunksRequest Open(const Uuid& writer, const std::string& trial = "trial") {
    pb::StreamChunksRequest message;
    message.mutable_open()->set_writer(writer.ToBytes());
    message.mutable_open()->set_external_id(trial);
    return message;
  }
  static pb::StreamChunksRequest Close(const Uuid& writer, std::uint64_t final_sequence) {
    pb::StreamChunksRequest message;
    message.mutable_close()->set_writer(writer.ToBytes());
    message.mutable_close()->set_final_sequence(final_sequence);
    return message;
  }
  static pb::StreamChunksRequest Define(const Uuid& writer) {
    pb::StreamChunksRequest message;
    message.mutable_definitions()->set_writer(writer.ToBytes());
    pb::Definition& definition = *message.mutable_definitions()->add_definitions();
    definition.set_ref(1);
    definition.set_tick_group(1);
    definition.set_metric_group("gpu");
    definition.set_name("gpu_util");
    definition.set_kind(pb::SERIES_KIND_GAUGE);
    return message;
  }
  static pb::StreamChunksRequest Send(const Uuid& writer, std::uint64_t sequence,
                                      std::uint32_t ref = 1) {
    pb::StreamChunksRequest message;
    *message.mutable_chunk() = MakeChunk(sequence, MakeBody(ref, {1, 2}));
    message.mutable_chunk()->set_writer(writer.ToBytes());
    return message;
  }

  std::vector<pb::StreamChunksResponse> Answers(IngestStream& stream) {
    EXPECT_TRUE(stream.WaitSettled(SteadyTime::Now() + absl::Seconds(10)));
    std::vector<pb::StreamChunksResponse> answers;
    pb::StreamChunksResponse answer;
    while (stream.board().TakeNext(answer)) answers.push_back(answer);
    return answers;
  }

  // Opened and defined; the answers are taken.
  pb::Opened Begin(IngestStream& stream, const Uuid& writer) {
    stream.Handle(Open(writer));
    stream.Handle(Define(writer));
    const auto answers = Answers(stream);
    EXPECT_EQ(answers.size(), 1U);
    return answers.empty() ? pb::Opened() : answers[0].opened();
  }

  testing::FakeIngestStore store_;
  testing::NoFolds folds_;
  Heads heads_;
  MasterState state_;
  IngestStats stats_;
  WriterRegistry registry_;
  WriterDirector director_{RealClock::Get()};
  CommitQueue queue_;
  GroupCommitter committer_;
  const IngestContext context_;
  const Uuid writer_ = Uuid::Random();
};

}  // namespace stepwell
