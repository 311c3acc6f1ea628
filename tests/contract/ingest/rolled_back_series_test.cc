// Series whose first transaction fails at its COMMIT, with the stream, the committer and PostgreSQL
// together: no sample goes by a number that was rolled back, which another series may have since.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "server/group_committer.h"
#include "server/ingest_stream.h"
#include "server/recovery.h"
#include "tests/contract/store_test.h"
#include "tests/support/child_process.h"
#include "tests/unit/server/chunk_maker.h"

namespace stepwell {
namespace {

using testing::Eventually;
using testing::StoreTest;

class RolledBackSeriesTest : public StoreTest {
 protected:
  RolledBackSeriesTest() { Own(); }

  void Own() {
    const auto owner = ingest_->AcquireOwnership({.master_id = "master", .address = "here"});
    ASSERT_TRUE(owner.ok()) << owner.status();
    const auto taken =
        TakeOver({*ingest_, *folds_, heads_, registry_, state_, stats_}, owner->epoch);
    ASSERT_TRUE(taken.ok()) << taken.status();
    epoch_ = owner->epoch;
    state_.SetDatabase(absl::OkStatus());
    state_.BecomeOwner(epoch_, /*recovering=*/false);
  }

  // From now on COMMIT fails where series of this name were created, as in a deadlock.
  void RefuseAtCommit(const std::string& name) {
    Run("create table public.refused (name text);"
        "create sequence public.refusals;"  // which no rollback takes back
        "create function public.refuse() returns trigger language plpgsql as $$ begin "
        "  if exists (select from public.refused r where r.name = new.name) then "
        "    perform nextval('public.refusals'); "
        "    raise exception 'not now' using errcode = '40P01'; "
        "  end if; "
        "  return null; end $$;"
        "create constraint trigger refuse after insert on stepwell.series "
        "deferrable initially deferred for each row execute function public.refuse()");
    Run(absl::StrCat("insert into public.refused values ('", name, "')"));
  }
  bool AwaitRefusal() {
    return Eventually(
        [&] { return Number("select count(*) from public.refusals where is_called") == 1; },
        absl::Seconds(20));
  }
  void RefuseNoMore() { Run("delete from public.refused"); }

  // By another master of the same database, say: nobody's call is joined with it.
  void AddSeriesBeside(TrialId trial_id, const std::string& name) {
    auto other = PgIngestStore::Open({.url = url_}, journal_);
    ASSERT_TRUE(other.ok()) << other.status();
    const std::vector<SeriesDefinition> definitions = {{{"gpu", name, {}}, "", SeriesKind::kGauge}};
    const auto numbers = (*other)->FindOrCreateSeries(trial_id, definitions, 10'000);
    ASSERT_TRUE(numbers.ok()) << numbers.status();
  }

  pb::StreamChunksRequest OpenMessage() const {
    pb::StreamChunksRequest message;
    message.mutable_open()->set_writer(writer_.ToBytes());
    message.mutable_open()->set_external_id("trial");
    return message;
  }
  pb::StreamChunksRequest DefinitionOf(const std::string& name) const {
    pb::StreamChunksRequest message;
    message.mutable_definitions()->set_writer(writer_.ToBytes());
    pb::Definition& definition = *message.mutable_definitions()->add_definitions();
    definition.set_ref(1);
    definition.set_tick_group(1);
    definition.set_metric_group("gpu");
    definition.set_name(name);
    definition.set_kind(pb::SERIES_KIND_GAUGE);
    return message;
  }
  pb::StreamChunksRequest ChunkOf(std::uint64_t sequence) const {
    pb::StreamChunksRequest message;
    *message.mutable_chunk() = MakeChunk(sequence, MakeBody(1, {1, 2}));
    message.mutable_chunk()->set_writer(writer_.ToBytes());
    return message;
  }

  // All that is committed goes from heads into rows.
  void FoldHeads() {
    const Heads::FoldPlan plan = heads_.PlanFold(std::nullopt, INT64_MAX);
    ASSERT_FALSE(plan.folds.empty());
    const auto folded = folds_->Fold(epoch_, plan.folds);
    ASSERT_TRUE(folded.ok()) << folded.status();
    heads_.Folded(plan.folds, folded->fold_no);
  }
  std::int64_t SampleCount(TrialId trial_id, const std::string& name) {
    return Number(absl::StrCat("select count(*) from stepwell.samples(", Value(trial_id),
                               ", 'gpu', '", name, "')"));
  }

  std::int64_t epoch_ = 0;
  const Uuid writer_ = Uuid::Random();
  Heads heads_;
  MasterState state_;
  IngestStats stats_;
  WriterRegistry registry_{RealClock::Get()};
  WriterDirector director_{RealClock::Get()};
  CommitQueue queue_{{}};
  GroupCommitter committer_{{}, {*ingest_, queue_, heads_, state_, stats_, RealClock::Get()}};
  const IngestContext context_{*ingest_, queue_,    heads_,    state_,
                               stats_,   registry_, director_, RealClock::Get()};
};

TEST_F(RolledBackSeriesTest, SamplesBehindThemGoByNumbersThatExist) {
  committer_.Start();
  auto created = IngestStream::Create(context_, [] {});
  ASSERT_TRUE(created.ok()) << created.status();
  IngestStream& stream = **created;
  stream.Handle(OpenMessage());
  pb::StreamChunksResponse answer;
  ASSERT_TRUE(stream.WaitSettled(SteadyTime::Now() + absl::Seconds(20)));
  ASSERT_TRUE(stream.board().TakeNext(answer));
  ASSERT_TRUE(answer.has_opened()) << answer.ShortDebugString();
  const TrialId trial_id{answer.opened().trial_id()};

  RefuseAtCommit("wanted");
  // It waits for the database, and what comes behind it with it.
  std::thread reader([&] {
    stream.Handle(DefinitionOf("wanted"));
    stream.Handle(ChunkOf(1));
  });
  EXPECT_TRUE(AwaitRefusal());
  AddSeriesBeside(trial_id, "beside");
  RefuseNoMore();
  reader.join();
  EXPECT_TRUE(stream.WaitSettled(SteadyTime::Now() + absl::Seconds(20)));
  ASSERT_TRUE(stream.board().TakeNext(answer));
  EXPECT_EQ(answer.ack().committed_sequence(), 1u) << answer.ShortDebugString();
  EXPECT_EQ(answer.ack().rejections_size(), 0);
  // The next chunk goes by what the stream remembers.
  stream.Handle(ChunkOf(2));
  EXPECT_TRUE(stream.WaitSettled(SteadyTime::Now() + absl::Seconds(20)));
  committer_.Stop(SteadyTime::Now() + absl::Seconds(20));
  stream.Finish();

  ASSERT_NO_FATAL_FAILURE(FoldHeads());
  EXPECT_EQ(Text("select string_agg(name || ' ' || series_no, ', ' order by series_no) "
                 "from stepwell.series"),
            "beside 1, wanted 2")
      << "the number that was rolled back is another's";
  EXPECT_EQ(SampleCount(trial_id, "wanted"), 4);
  EXPECT_EQ(SampleCount(trial_id, "beside"), 0);
  EXPECT_EQ(Number("select count(*) from stepwell.recent r where not exists (select from "
                   "stepwell.series s where s.trial_id = r.trial_id and "
                   "s.series_no = r.series_no)"),
            0);
}

}  // namespace
}  // namespace stepwell
