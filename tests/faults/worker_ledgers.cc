#include "tests/faults/worker_ledgers.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/faults/checker/checker.h"
#include "tests/faults/master_client.h"
#include "tests/faults/stored_samples.h"
#include "tests/support/child_process.h"

namespace stepwell::faults {

std::string Text(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

Ledger ReadLedgers(const std::function<std::string(int rank)>& path_of, int rank_count,
                   int worker_count) {
  Ledger ledger;
  for (int rank = 0; rank < rank_count; ++rank) {
    EXPECT_EQ(ReadLedger(path_of(rank), ledger), "");
    for (int worker = 0; worker < worker_count; ++worker) {
      EXPECT_EQ(ReadLedger(absl::StrCat(path_of(rank), "-w", worker), ledger), "");
    }
  }
  EXPECT_EQ(ledger.dropped_count, 0u);
  return ledger;
}

void ExpectEachStoredOnce(const testing::MasterProcess& master, const std::string& trial,
                          const Ledger& ledger) {
  MasterClient client(master.grpc_address());
  ASSERT_TRUE(testing::Eventually([&] { return client.Flush().empty(); }, absl::Seconds(60)));
  std::set<std::string> series;
  for (const LoggedSample& sample : ledger.samples) series.insert(sample.series);
  StoredTrial stored;
  ASSERT_EQ(ReadStoredTrial(master.database_url(), trial, {series.begin(), series.end()}, stored),
            "");
  const Verdict verdict = Check(ledger, stored.samples, stored.gaps, Demand::kRecorded);
  std::cout << "recorded " << ledger.samples.size() << "\nchecker: " << verdict.ToText() << "\n";
  for (const std::string& gap : stored.gap_texts) std::cout << "gap: " << gap << "\n";
  EXPECT_TRUE(verdict.ok()) << verdict.ToText();
  EXPECT_EQ(verdict.declared_count, 0u) << "a declared gap is a lost sample all the same";
}

}  // namespace stepwell::faults
