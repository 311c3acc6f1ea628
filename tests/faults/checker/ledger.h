// Ledger: what the producers of a fault test say of themselves. Each producer appends to a file of
// its own what it recorded and what it knows to be acked; the checker reads all of them. Plain
// text, one line per sample, written with one write(2) per step, so that SIGKILL of the producer
// loses nothing:
//
//   r faults/checked 0 17 17 e 1790000000000017 4059000000000000
//   r timing/step 0 3 3 a 1790000000000000 -
//   ack 2
//   done 2
//   dropped 0
//
// r: series, rank, number of the sample, batch (-1 = none), time in µs (e exact, a about), bits of
// the value ("-" = not known to the producer). ack N: the first N of this file's samples are acked.
// dropped N: so many events the recorder gave up. done N: of a producer that writes its lines before it
// records, that the first N are recorded: one that is killed may have recorded those behind them or
// not. Knows nothing of how samples travel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepwell::faults {

struct LoggedSample {
  std::string series;  // metric group, '/', name
  int rank = 0;
  // What tells the sample apart in its series: its value in kNumberedSeries, elsewhere its batch.
  std::int64_t number = 0;
  std::int32_t batch = -1;
  bool time_is_exact = false;
  std::int64_t time_us = 0;
  std::optional<std::uint64_t> value_bits;
  bool acked = false;
  // Its producer may have been killed before it recorded this.
  bool is_unsure = false;
};

// The one series whose samples are told apart by their value: its time and batch are the recorder's.
inline constexpr char kNumberedSeries[] = "faults/numbered";

struct Ledger {
  std::vector<LoggedSample> samples;
  std::uint64_t dropped_count = 0;

  std::uint64_t acked_count() const;
  std::uint64_t unsure_count() const;
};

// The value of the sample `number` of `rank`: all bits of a double in use, never NaN.
double ValueOf(std::uint64_t seed, int rank, std::int64_t number);

// One line of a sample, with its newline.
std::string SampleLine(const LoggedSample& sample);

// Adds what the file says to `ledger`. A last line without its newline was torn by a kill and is
// left out. Empty = well read, else what was wrong with which line.
std::string ReadLedger(const std::string& path, Ledger& ledger);

}  // namespace stepwell::faults
