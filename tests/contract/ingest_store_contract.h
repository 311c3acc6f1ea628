// The suite of what every IngestStore keeps: its fixture, shared by the files that hold its tests. It
// runs on the fake, which the tests of the server use, and on PostgreSQL.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "storage/gap_ledger.h"
#include "storage/ingest_store.h"

namespace stepwell {

// A store, and what the suite does behind its back.
class StoreUnderTest {
 public:
  virtual ~StoreUnderTest() = default;
  virtual IngestStore& store() = 0;
  // As after a restart of the master.
  virtual void Restart() = 0;
  virtual void SetFolded(TrialId trial_id, WriterNo writer_no, std::uint64_t folded_sequence) = 0;
  virtual std::vector<Gap> Gaps(TrialId trial_id) = 0;
};

struct StoreKind {
  std::string name;
  std::function<std::unique_ptr<StoreUnderTest>()> make;
};

class IngestStoreContract : public ::testing::TestWithParam<StoreKind> {
 protected:
  static constexpr std::int64_t kEpoch = 1;

  IngestStore& store() { return under_test_->store(); }

  static OpenWriterRequest Request(const std::string& trial, Uuid writer = Uuid::Random()) {
    OpenWriterRequest request;
    request.trials = kAllProjects;
    request.trial.external_id = trial;
    request.writer = writer;
    request.attempt_key = "job";
    request.agent_id = "agent";
    request.machine = "machine";
    request.owner_epoch = kEpoch;
    return request;
  }
  OpenedWriter Open(const OpenWriterRequest& request) {
    auto opened = store().OpenWriter(request);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.ok() ? *opened : OpenedWriter{};
  }
  static WriterAdvance Advance(const OpenedWriter& writer, std::uint64_t first,
                               std::uint64_t last) {
    WriterAdvance advance;
    advance.trial_id = writer.trial_id;
    advance.writer_no = writer.writer_no;
    advance.generation = writer.generation;
    advance.first_sequence = first;
    advance.last_sequence = last;
    advance.last_crc32c = static_cast<std::uint32_t>(last * 7);
    advance.payload = absl::StrCat("payload ", first, "-", last);
    return advance;
  }
  absl::StatusOr<std::vector<AdvanceResult>> Commit(std::vector<WriterAdvance> advances,
                                                    std::int64_t epoch = kEpoch) {
    CommitGroupRequest request;
    request.owner_epoch = epoch;
    request.received_time_us = ++now_us_;
    request.advances = std::move(advances);
    return store().Commit(request);
  }
  // By one who has seen the owner's renewal stand still for as long as an ownership lasts.
  absl::StatusOr<Ownership> TakeFromSilent(const std::string& master_id) {
    OwnerClaim claim{.master_id = master_id, .address = "b:2"};
    const auto seen = store().AcquireOwnership(claim);
    EXPECT_TRUE(seen.ok() && !seen->is_owner) << seen.status();
    if (seen.ok()) claim.lapsed_renewal_us = seen->renewal_us;
    return store().AcquireOwnership(claim);
  }
  AdvanceResult CommitOne(const WriterAdvance& advance) {
    auto results = Commit({advance});
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? results->at(0) : AdvanceResult{AdvanceOutcome::kFenced, 999};
  }
  void ExpectOutcome(const WriterAdvance& advance, AdvanceOutcome outcome,
                     std::uint64_t committed_sequence) {
    const AdvanceResult result = CommitOne(advance);
    EXPECT_EQ(result.outcome, outcome);
    EXPECT_EQ(result.committed_sequence, committed_sequence);
  }
  std::vector<JournalRow> Journal() {
    std::vector<JournalRow> rows;
    const absl::Status status = store().ReadUnfoldedJournal([&](JournalRow row) {
      rows.push_back(std::move(row));
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
    return rows;
  }
  static Gap GapOf(GapCause cause, std::uint64_t first, std::uint64_t last) {
    Gap gap;
    gap.cause = cause;
    gap.sample_count = static_cast<std::int64_t>(last - first) + 1;
    gap.first_sequence = first;
    gap.last_sequence = last;
    return gap;
  }

  std::int64_t now_us_ = 1'700'000'000'000'000;
  const std::unique_ptr<StoreUnderTest> under_test_ = GetParam().make();
};

}  // namespace stepwell
