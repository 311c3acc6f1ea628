// Spine: what tests of the whole line share: a master on a fresh data directory, a client, and SQL.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "storage/pg_connection.h"
#include "tests/e2e/ingest_client.h"
#include "tests/support/master_process.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/sql_of.h"

namespace stepwell::testing {

struct StoredSample {
  std::int64_t time_us = 0;
  std::int64_t batch = -1;
  double value = 0;
};

class SpineTest : public ::testing::Test {
 protected:
  void StartMaster(std::vector<std::string> flags = {}, const std::string& failpoints = {}) {
    MasterProcess::Options options;
    options.scratch = scratch_.path();
    options.flags = std::move(flags);
    master_ = std::make_unique<MasterProcess>(std::move(options));
    ASSERT_TRUE(master_->StartAndWait({.failpoints = failpoints})) << master_->LogTail();
    client_ = std::make_unique<IngestClient>(master_->grpc_address());
  }

  // Through SQL, in order of time; of one metric name.
  std::vector<StoredSample> Samples(std::int64_t trial_id, const std::string& name) {
    auto connection = PgConnection::Open({.url = master_->database_url()});
    EXPECT_TRUE(connection.ok()) << connection.status();
    if (!connection.ok()) return {};
    const auto rows =
        (*connection)
            ->Exec(
                "select \"timestamp\", batch, value from stepwell.samples($1, null, $2, null, null)"
                " order by \"timestamp\", value",
                {trial_id, name});
    EXPECT_TRUE(rows.ok()) << rows.status();
    std::vector<StoredSample> samples;
    for (int row = 0; rows.ok() && row < rows->row_count(); ++row) {
      samples.push_back({rows->TimestampUs(row, 0), rows->IsNull(row, 1) ? -1 : rows->Int64(row, 1),
                         rows->Float64(row, 2)});
    }
    return samples;
  }

  std::int64_t QueryNumber(const char* sql, std::int64_t argument) {
    auto connection = PgConnection::Open({.url = master_->database_url()});
    EXPECT_TRUE(connection.ok()) << connection.status();
    const auto rows = (*connection)->Exec(SqlOf(sql), {argument});
    EXPECT_TRUE(rows.ok()) << rows.status();
    return rows.ok() && rows->row_count() == 1 ? rows->Int64(0, 0) : -1;
  }

  // Opens a writer of the trial and defines ref 1.
  v1::Opened Open(RawStream& stream, const Uuid& writer, const std::string& trial, int rank = 0) {
    EXPECT_TRUE(stream.Send(OpenMessage({.writer = writer, .external_id = trial, .rank = rank})));
    const auto opened = stream.WaitFor([&](const auto& answer) {
      return answer.has_opened() && answer.opened().writer() == writer.ToBytes();
    });
    EXPECT_TRUE(opened.has_value()) << master_->LogTail();
    EXPECT_TRUE(stream.Send(DefinitionMessage(writer, {{}})));
    return opened ? opened->opened() : v1::Opened();
  }

  ScratchDirectory scratch_;
  std::unique_ptr<MasterProcess> master_;
  std::unique_ptr<IngestClient> client_;
};

}  // namespace stepwell::testing
