#include "tests/contract/ingest_store_contract.h"

#include <optional>

#include "storage/pg_ingest_store.h"
#include "tests/fakes/fake_ingest_store.h"
#include "tests/support/postgres.h"
#include "tests/support/sql_of.h"

namespace stepwell {
namespace {

using testing::Connect;
using testing::FakeIngestStore;
using testing::TestPostgres;

class FakeUnderTest final : public StoreUnderTest {
 public:
  IngestStore& store() override { return store_; }
  void Restart() override {}
  void SetFolded(TrialId trial_id, WriterNo writer_no, std::uint64_t folded) override {
    store_.SetFolded(trial_id, writer_no, folded);
  }
  std::vector<Gap> Gaps(TrialId trial_id) override { return store_.gaps(trial_id); }

 private:
  FakeIngestStore store_;
};

class PgUnderTest final : public StoreUnderTest {
 public:
  PgUnderTest() { Restart(); }
  IngestStore& store() override { return *store_; }
  void Restart() override {
    auto opened = PgIngestStore::Open({.url = url_}, std::make_shared<JournalRing>());
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }
  void SetFolded(TrialId trial_id, WriterNo writer_no, std::uint64_t folded) override {
    Run(absl::StrCat("update stepwell.writers set folded_sequence = ", folded,
                     " where trial_id = ", Value(trial_id), " and writer_no = ", Value(writer_no)));
  }
  std::vector<Gap> Gaps(TrialId trial_id) override {
    const auto rows = sql_->Exec(
        "select writer_no, cause, metric_group, sample_count, first_time_us, last_time_us, "
        "first_sequence, last_sequence, reason from stepwell.gaps where trial_id = $1 "
        "order by gap_no",
        {Value(trial_id)});
    EXPECT_TRUE(rows.ok()) << rows.status();
    std::vector<Gap> gaps;
    for (int row = 0; row < rows->row_count(); ++row) {
      gaps.push_back({.writer_no = WriterNo{rows->Int32(row, 0)},
                      .cause = static_cast<GapCause>(rows->Int32(row, 1)),
                      .metric_group = std::string(rows->Text(row, 2)),
                      .sample_count = rows->Int64(row, 3),
                      .first_time_us = rows->Int64(row, 4),
                      .last_time_us = rows->Int64(row, 5),
                      .first_sequence = static_cast<std::uint64_t>(rows->Int64(row, 6)),
                      .last_sequence = static_cast<std::uint64_t>(rows->Int64(row, 7)),
                      .reason = std::string(rows->Text(row, 8))});
    }
    return gaps;
  }

 private:
  void Run(const std::string& sql) {
    const absl::Status status = sql_->ExecScript(SqlOf(sql));
    EXPECT_TRUE(status.ok()) << status;
  }
  const std::string url_ = TestPostgres::Get().FreshMigratedDatabase();
  const std::unique_ptr<PgConnection> sql_ = Connect(url_);
  std::unique_ptr<PgIngestStore> store_;
};

INSTANTIATE_TEST_SUITE_P(
    Stores, IngestStoreContract,
    ::testing::Values(StoreKind{"Fake", [] { return std::make_unique<FakeUnderTest>(); }},
                      StoreKind{"Postgres", [] { return std::make_unique<PgUnderTest>(); }}),
    [](const ::testing::TestParamInfo<StoreKind>& kind) { return kind.param.name; });

}  // namespace
}  // namespace stepwell
