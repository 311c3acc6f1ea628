// codec_bench: how many bytes does a sample of each metric kind take, and what do encoding and
// decoding cost a fold, a merge and a reader, against copying the doubles?
#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "storage/vector_codec.h"
#include "tests/support/metric_kinds.h"

namespace stepwell {
namespace {

constexpr std::uint64_t kSeed = 4711;  // bytes are then the same on every machine

// Of this thread: the codec never waits, and what else the machine does is not its cost.
double ProcessorNs() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

template <typename Body>
double NsPerSample(int rounds, std::size_t sample_count, Body body) {
  const double start = ProcessorNs();
  for (int round = 0; round < rounds; ++round) body();
  return (ProcessorNs() - start) / static_cast<double>(rounds) / static_cast<double>(sample_count);
}

// Keeps the compiler from dropping work whose result nobody reads.
void Use(const void* data) { asm volatile("" : : "g"(data) : "memory"); }

struct Cost {
  std::vector<double> encode, decode, copy;
};

std::string Id(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

void Print(const std::string& name, std::vector<double> runs, const char* unit, const char* against,
           const char* bar) {
  std::sort(runs.begin(), runs.end());
  const std::string quoted = bar == nullptr ? "null" : std::string("\"") + bar + "\"";
  std::printf(
      "{\"name\": \"codec.%s\", \"value\": %.4g, \"unit\": \"%s\", \"against\": \"%s\", "
      "\"bar\": %s, \"n\": %zu, \"spread\": [%.4g, %.4g]}\n",
      name.c_str(), runs[runs.size() / 2], unit, against, quoted.c_str(), runs.size(), runs.front(),
      runs.back());
}

void Report(const std::string& name, const EncodedVector& encoded, std::size_t sample_count,
            const Cost& cost) {
  // Without the scalar columns: they are the same for every form and part of the row.
  const double bytes = static_cast<double>(EncodedBytes(encoded) - kVectorHeaderBytes) /
                       static_cast<double>(sample_count);
  const std::string id = Id(name);
  Print(id + ".bytes", {bytes, bytes, bytes}, "bytes/sample", "8 bytes of a double", "<= 8.01");
  Print(id + ".encode", cost.encode, "ns/sample", "the bar of a fold", "<= 30");
  Print(id + ".decode", cost.decode, "ns/sample", "the bar of a reader", "<= 3");
  std::fprintf(stderr, "%-22s form %d width %2d  %6.3f B  encode %5.1f  decode %4.2f  copy %4.2f\n",
               name.c_str(), static_cast<int>(encoded.form), encoded.width, bytes,
               cost.encode[cost.encode.size() / 2], cost.decode[cost.decode.size() / 2],
               cost.copy[cost.copy.size() / 2]);
}

// Encoding, decoding and copying take turns, so that a slow moment hits all of them.
template <typename Encode, typename Decode, typename Copy>
Cost Measure(bool quick, std::size_t sample_count, Encode encode, Decode decode, Copy copy) {
  Cost cost;
  const int rounds = quick ? 10 : 50;
  for (int run = 0; run < 15; ++run) {
    cost.encode.push_back(NsPerSample(rounds, sample_count, encode));
    cost.decode.push_back(NsPerSample(rounds, sample_count, decode));
    cost.copy.push_back(NsPerSample(rounds, sample_count, copy));
  }
  for (std::vector<double>* runs : {&cost.encode, &cost.decode, &cost.copy}) {
    std::sort(runs->begin(), runs->end());
  }
  return cost;
}

void BenchValues(bool quick, const testing::MetricKind& kind) {
  const EncodedVector encoded = EncodeValues(kind.values);
  std::vector<double> decoded(kind.values.size());
  const Cost cost = Measure(
      quick, kind.values.size(),
      [&] {
        const EncodedVector again = EncodeValues(kind.values);
        Use(&again);
      },
      [&] {
        STEPWELL_CHECK(DecodeValuesInto(encoded, decoded).ok());
        Use(decoded.data());
      },
      [&] {
        std::memcpy(decoded.data(), kind.values.data(), decoded.size() * sizeof(double));
        Use(decoded.data());
      });
  Report(kind.name, encoded, kind.values.size(), cost);
}

void BenchTicks(bool quick, const testing::TickKind& kind) {
  const EncodedVector encoded = EncodeIntegers(kind.integers);
  std::vector<std::int64_t> decoded(kind.integers.size());
  const Cost cost = Measure(
      quick, kind.integers.size(),
      [&] {
        const EncodedVector again = EncodeIntegers(kind.integers);
        Use(&again);
      },
      [&] {
        STEPWELL_CHECK(DecodeIntegersInto(encoded, decoded).ok());
        Use(decoded.data());
      },
      [&] {
        std::memcpy(decoded.data(), kind.integers.data(), decoded.size() * sizeof(std::int64_t));
        Use(decoded.data());
      });
  Report(kind.name, encoded, kind.integers.size(), cost);
}

}  // namespace
}  // namespace stepwell

int main(int argc, char** argv) {
  const bool quick = argc == 2 && std::string_view(argv[1]) == "--quick";
  if (argc > 2 || (argc == 2 && !quick)) {
    std::fprintf(stderr, "usage: codec_bench [--quick]\n");
    return 64;
  }
  for (const auto& kind : stepwell::testing::MetricKinds(stepwell::kSeed)) {
    stepwell::BenchValues(quick, kind);
  }
  for (const auto& kind : stepwell::testing::TickKinds(stepwell::kSeed)) {
    stepwell::BenchTicks(quick, kind);
  }
  return 0;
}
