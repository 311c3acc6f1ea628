#include "tests/faults/checker/ledger.h"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

namespace stepwell::faults {
namespace {

bool ParseSample(std::istringstream& fields, LoggedSample& sample) {
  std::string exactness;
  std::string bits;
  fields >> sample.series >> sample.rank >> sample.number >> sample.batch >> exactness >>
      sample.time_us >> bits;
  if (!fields) return false;
  sample.time_is_exact = exactness == "e";
  if (bits != "-") sample.value_bits = std::stoull(bits, nullptr, 16);
  return true;
}

}  // namespace

std::uint64_t Ledger::acked_count() const {
  return static_cast<std::uint64_t>(
      std::count_if(samples.begin(), samples.end(), [](const auto& s) { return s.acked; }));
}

std::uint64_t Ledger::unsure_count() const {
  return static_cast<std::uint64_t>(
      std::count_if(samples.begin(), samples.end(), [](const auto& s) { return s.is_unsure; }));
}

double ValueOf(std::uint64_t seed, int rank, std::int64_t number) {
  // splitmix64, so that neighbours have nothing in common.
  std::uint64_t z = seed + static_cast<std::uint64_t>(rank) * 0x9e3779b97f4a7c15U +
                    static_cast<std::uint64_t>(number) * 0xd1b54a32d192ed03U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  z ^= z >> 31;
  // Any sign and mantissa, an exponent of 2^-8 ... 2^7.
  const std::uint64_t exponent = 1023 - 8 + (z >> 60);
  return std::bit_cast<double>((z & 0x800fffffffffffffU) | exponent << 52);
}

std::string SampleLine(const LoggedSample& sample) {
  char bits[24] = "-";
  if (sample.value_bits) std::snprintf(bits, sizeof(bits), "%016" PRIx64, *sample.value_bits);
  char rest[128];
  std::snprintf(rest, sizeof(rest), " %d %" PRId64 " %d %c %" PRId64 " %s\n", sample.rank,
                sample.number, sample.batch, sample.time_is_exact ? 'e' : 'a', sample.time_us,
                bits);
  return "r " + sample.series + rest;
}

std::string ReadLedger(const std::string& path, Ledger& ledger) {
  std::ifstream file(path);
  if (!file) return path + ": cannot be read";
  std::string text{std::istreambuf_iterator<char>(file), {}};
  text.resize(text.rfind('\n') + 1);  // npos + 1 = 0
  const std::size_t first = ledger.samples.size();
  std::istringstream lines(text);
  std::optional<std::uint64_t> done;
  int line_no = 0;
  for (std::string line; std::getline(lines, line);) {
    ++line_no;
    std::istringstream fields(line);
    std::string kind;
    fields >> kind;
    std::uint64_t count = 0;
    bool good = true;
    if (kind == "r") {
      good = ParseSample(fields, ledger.samples.emplace_back());
    } else if (kind == "ack" && fields >> count && count <= ledger.samples.size() - first) {
      for (std::size_t i = 0; i < count; ++i) ledger.samples[first + i].acked = true;
    } else if (kind == "done" && fields >> count && count <= ledger.samples.size() - first) {
      done = count;
    } else if (kind == "dropped" && fields >> count) {
      ledger.dropped_count += count;
    } else {
      good = false;
    }
    if (!good) return path + ":" + std::to_string(line_no) + ": cannot be understood: " + line;
  }
  for (std::size_t i = first + done.value_or(ledger.samples.size() - first);
       i < ledger.samples.size(); ++i) {
    ledger.samples[i].is_unsure = true;
  }
  return "";
}

}  // namespace stepwell::faults
