// What ranks and the workers that they fork say they recorded, each in a ledger of its own, and whether
// all of it is stored: for tests that start them in places where a Scene cannot.
//
//   const Ledger ledger = ReadLedgers([&](int rank) { return LedgerPath(rank); }, 8, 4);
//   ExpectEachStoredOnce(master, "hard", ledger);
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "tests/faults/checker/ledger.h"
#include "tests/support/master_process.h"

namespace stepwell::faults {

// A whole file; "" where there is none.
std::string Text(const std::filesystem::path& path);

// Of ranks 0 ... and of workers 0 ... of each. Fails the test where one cannot be read.
Ledger ReadLedgers(const std::function<std::string(int rank)>& path_of, int rank_count,
                   int worker_count);

// Flush, then compares. Fails the test on anything but an exact match: a sample that is declared lost
// is lost all the same. Prints the verdict and the gaps.
void ExpectEachStoredOnce(const testing::MasterProcess& master, const std::string& trial,
                          const Ledger& ledger);

}  // namespace stepwell::faults
