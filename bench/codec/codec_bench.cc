// codec_bench: how many bytes does a sample of each kind of metric take, beside an estimate of its
// entropy, and what do encoding and decoding cost a fold, a merge and a reader, beside copying the
// doubles and beside the plainest decoder that there is: integers of 4 bytes, summed and divided?
//   codec.<kind>.bytes     without the scalar columns, which are the same for every form
//   codec.<kind>.entropy   bytes over the estimate (code_length.h), where that is at least 0.1
//   codec.<kind>.excess    bytes beyond it, where it is smaller
//   codec.<kind>.encode, .decode   ns of processor time per sample
//   codec.<kind>.scale             of which finding integers under a divisor
//   codec.<kind>.encode_minute     of columns of 60 samples, scaled and encoded one after the other
//   codec.day.entropy, .decode     of all series of the load `day` together
//   codec.decode_<form>    decoding over the plain loop, of the slowest kind of that form
#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "bench/codec/code_length.h"
#include "bench/load/asked_options.h"
#include "bench/load/bar.h"
#include "bench/load/measured_commit.h"
#include "bench/store/day_tables.h"
#include "storage/scaled_column.h"
#include "storage/value_scale.h"
#include "storage/vector_codec.h"
#include "tests/support/further_kinds.h"
#include "tests/support/metric_kinds.h"

namespace stepwell {
namespace {

using bench::Bar;
using bench::OwnBar;
using bench::Promised;

constexpr std::uint64_t kSeed = 4711;  // bytes are then the same on every machine
constexpr std::size_t kRuns = 15;

// Of this thread: the codec never waits, and what else the machine does is not its cost.
double ProcessorNs() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

template <typename Body>
double NsPerSample(int rounds, std::size_t sample_count, Body&& body) {
  body();  // whoever was measured before has had the caches
  const double start = ProcessorNs();
  for (int round = 0; round < rounds; ++round) body();
  return (ProcessorNs() - start) / static_cast<double>(rounds) / static_cast<double>(sample_count);
}

// Keeps the compiler from dropping work whose result nobody reads.
void Use(const void* data) { asm volatile("" : : "g"(data) : "memory"); }

struct Cost {
  std::vector<double> encode, decode, copy, plain;
  // Of doubles only.
  std::vector<double> scale, minute;
};

struct Pair {
  double ours = 0;
  double theirs = 0;
};

std::string Id(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

double MedianOf(const std::vector<double>& sorted) { return sorted[sorted.size() / 2]; }

// `raw`: what a ratio was made of.
void Print(const std::string& name, std::vector<double> runs, const char* unit, const char* against,
           const Bar& bar, const Pair* raw = nullptr) {
  std::sort(runs.begin(), runs.end());
  std::printf(
      "{\"name\": \"codec.%s\", \"value\": %.4g, \"unit\": \"%s\", \"against\": \"%s\", "
      "\"bar\": \"%s\", \"promised\": %s, ",
      name.c_str(), MedianOf(runs), unit, against, bar.text.c_str(), bar.promised_word());
  if (raw != nullptr) {
    std::printf("\"raw\": {\"ours\": %.4g, \"theirs\": %.4g}, ", raw->ours, raw->theirs);
  }
  // Times have several runs; bytes are the same in each.
  if (runs.size() == 1) std::printf("\"once\": \"the same in every run\", ");
  std::printf("\"n\": %zu, \"spread\": [%.4g, %.4g]}\n", runs.size(), runs.front(), runs.back());
}

const char* NameOf(Form form) {
  switch (form) {
    case Form::kFrame:
      return "frame";
    case Form::kDelta:
      return "delta";
    case Form::kRuns:
      return "runs";
    case Form::kSparse:
      return "sparse";
    case Form::kRaw:
      return "raw";
    case Form::kDictionary:
      return "dictionary";
    case Form::kLinear:
      return "linear";
  }
  return "?";
}

// What no form fits, and why: docs/codec.md.
const char* EntropyBar(const std::string& name) {
  if (name == "learning rate") return "<= 3.2";
  if (name == "pausing times") return "<= 2.4";
  return "<= 1.3";
}

// Gathers what all kinds of a form have in common.
class Report {
 public:
  void Add(const std::string& name, const EncodedVector& encoded, std::size_t sample_count,
           double entropy_bits, const Cost& cost) {
    const auto samples = static_cast<double>(sample_count);
    const double bytes = static_cast<double>(EncodedBytes(encoded) - kVectorHeaderBytes) / samples;
    const double entropy = entropy_bits / 8 / samples;
    const std::string id = Id(name);
    Print(id + ".bytes", {bytes}, "bytes/sample", "8 bytes of a double", OwnBar("<= 8.01"));
    if (entropy >= 0.1) {
      const Pair raw = {bytes, entropy};
      Print(id + ".entropy", {bytes / entropy}, "ratio", "an adaptive arithmetic code",
            OwnBar(EntropyBar(name)), &raw);
    } else {
      Print(id + ".excess", {bytes - entropy}, "bytes/sample", "an adaptive arithmetic code",
            OwnBar("<= 0.2"));
    }
    Print(id + ".encode", cost.encode, "ns/sample", "the bar of a fold", OwnBar("<= 30"));
    Print(id + ".decode", cost.decode, "ns/sample", "the bar of a reader", Promised("<= 1.5"));
    if (!cost.scale.empty()) {
      Print(id + ".scale", cost.scale, "ns/sample", "the bar of a fold", OwnBar("<= 3"));
      Print(id + ".encode_minute", cost.minute, "ns/sample", "the bar of a fold", OwnBar("<= 30"));
    }
    const double decode = MedianOf(cost.decode);
    const double plain = MedianOf(cost.plain);
    if (Slowest& slowest = slowest_[encoded.form]; decode / plain > slowest.ratio) {
      slowest = {decode / plain, {decode, plain}, cost};
    }
    std::fprintf(stderr, "| %s | %s | %d | %.3f | %.3f | %.2f | %.1f | %.2f | %.2f | %.2f |\n",
                 name.c_str(), NameOf(encoded.form), encoded.width, bytes, entropy,
                 entropy > 0 ? bytes / entropy : 0, MedianOf(cost.encode), decode, plain,
                 MedianOf(cost.copy));
    const int series = bench::SeriesOf(name);
    if (is_further_) return;
    day_.ours += bytes * series;
    day_.theirs += entropy * series;
    day_series_ += series;
    for (std::size_t run = 0; run < day_decode_.size(); ++run) {
      day_decode_[run] += cost.decode[run] * series;
    }
  }

  // Kinds from here on are not part of `day`.
  void EndDay() { is_further_ = true; }

  void PrintForms() {
    Print("day.entropy", {day_.ours / day_.theirs}, "ratio", "an adaptive arithmetic code",
          OwnBar("<= 1.15"), &day_);
    for (double& ns : day_decode_) ns /= day_series_;
    Print("day.decode", day_decode_, "ns/sample", "the bar of a reader", Promised("<= 1"));
    for (const auto& [form, slowest] : slowest_) {
      std::vector<double> ratios;
      for (std::size_t i = 0; i < slowest.cost.decode.size(); ++i) {
        ratios.push_back(slowest.cost.decode[i] / slowest.cost.plain[i]);
      }
      Print(std::string("decode_") + NameOf(form), ratios, "ratio",
            "integers of 4 bytes, summed and divided", OwnBar("<= 2"), &slowest.medians);
    }
  }

 private:
  struct Slowest {
    double ratio = 0;
    Pair medians;
    Cost cost;
  };
  std::map<Form, Slowest> slowest_;
  // Sums over the series of `day`: bytes, and per run nanoseconds.
  Pair day_;
  double day_series_ = 0;
  std::vector<double> day_decode_ = std::vector<double>(kRuns);
  bool is_further_ = false;
};

// What there is to decode where nothing is packed. The divisor is not known to the compiler.
void DecodePlainly(const std::vector<std::int32_t>& deltas, double divisor,
                   std::vector<double>& values) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < deltas.size(); ++i) {
    sum += deltas[i];
    values[i] = static_cast<double>(sum) / divisor;
  }
}

// A kind with what measures it. Its vectors outlive it.
struct Subject {
  std::string name = {};
  std::size_t sample_count = 0;
  EncodedVector encoded = {};
  double entropy_bits = 0;
  std::function<void()> encode = {};
  std::function<void()> decode = {};
  std::span<const double> values = {};  // none where it is of ticks
  Cost cost = {};
};

Subject OfValues(const testing::MetricKind& kind) {
  Subject subject = {.name = kind.name,
                     .sample_count = kind.values.size(),
                     .encoded = EncodeValues(kind.values),
                     .values = kind.values};
  const auto scaled = ScaleValues(kind.values);
  subject.entropy_bits =
      scaled ? bench::CodeLength(scaled->integers) : bench::CodeLengthOfBits(kind.values);
  subject.encode = [&kind] {
    const EncodedVector again = EncodeValues(kind.values);
    Use(&again);
  };
  subject.decode = [encoded = subject.encoded,
                    decoded = std::vector<double>(kind.values.size())]() mutable {
    STEPWELL_CHECK(DecodeValuesInto(encoded, decoded).ok());
    Use(decoded.data());
  };
  return subject;
}

Subject OfTicks(const testing::TickKind& kind) {
  Subject subject = {.name = kind.name,
                     .sample_count = kind.integers.size(),
                     .encoded = EncodeIntegers(kind.integers),
                     .entropy_bits = bench::CodeLength(kind.integers)};
  subject.encode = [&kind] {
    const EncodedVector again = EncodeIntegers(kind.integers);
    Use(&again);
  };
  subject.decode = [encoded = subject.encoded,
                    decoded = std::vector<std::int64_t>(kind.integers.size())]() mutable {
    STEPWELL_CHECK(DecodeIntegersInto(encoded, decoded).ok());
    Use(decoded.data());
  };
  return subject;
}

void Measure(int rounds, Subject& subject) {
  const std::size_t sample_count = subject.sample_count;
  const std::vector<std::int32_t> deltas(sample_count, 7);
  std::vector<double> given(sample_count, 0.5);
  std::vector<double> values(sample_count);
  double divisor = 100;
  asm volatile("" : "+x"(divisor));
  Cost& cost = subject.cost;
  cost.encode.push_back(NsPerSample(rounds, sample_count, subject.encode));
  cost.decode.push_back(NsPerSample(rounds, sample_count, subject.decode));
  cost.plain.push_back(NsPerSample(rounds, sample_count, [&] {
    DecodePlainly(deltas, divisor, values);
    Use(values.data());
  }));
  cost.copy.push_back(NsPerSample(rounds, sample_count, [&] {
    std::memcpy(values.data(), given.data(), values.size() * sizeof(double));
    Use(values.data());
  }));
}

void MeasureScaling(int rounds, std::span<const double> values, Cost& cost) {
  constexpr std::size_t kMinuteSamples = 60;
  ScaledValues scaled;
  ScaledColumn column;
  cost.scale.push_back(NsPerSample(rounds, values.size(), [&] {
    const bool exists = ScaleValues(values, scaled);
    Use(&exists);
  }));
  cost.minute.push_back(NsPerSample(rounds, values.size(), [&] {
    for (std::size_t begin = 0; begin < values.size(); begin += kMinuteSamples) {
      const auto minute = values.subspan(begin, std::min(kMinuteSamples, values.size() - begin));
      column.Set(minute);
      const EncodedVector encoded = EncodeValues(minute, column);
      Use(&encoded);
    }
  }));
}

// All kinds take turns, so that a slow moment hits some runs of each instead of all runs of one.
void MeasureAll(bool quick, std::vector<Subject>& subjects) {
  const int rounds = quick ? 10 : 50;
  for (std::size_t run = 0; run < kRuns; ++run) {
    for (Subject& subject : subjects) {
      Measure(rounds, subject);
      if (!subject.values.empty()) MeasureScaling(rounds, subject.values, subject.cost);
    }
  }
  for (Subject& subject : subjects) {
    Cost& cost = subject.cost;
    for (std::vector<double>* runs : {&cost.encode, &cost.decode, &cost.copy, &cost.plain}) {
      std::sort(runs->begin(), runs->end());
    }
  }
}

void Run(bool quick) {
  const auto kinds = testing::MetricKinds(kSeed);
  const auto further_kinds = testing::FurtherMetricKinds(kSeed);
  const auto ticks = testing::TickKinds(kSeed);
  const auto further_ticks = testing::FurtherTickKinds(kSeed);
  std::vector<Subject> subjects;
  for (const auto& kind : kinds) subjects.push_back(OfValues(kind));
  for (const auto& kind : further_kinds) subjects.push_back(OfValues(kind));
  for (const auto& kind : ticks) subjects.push_back(OfTicks(kind));
  for (const auto& kind : further_ticks) subjects.push_back(OfTicks(kind));
  MeasureAll(quick, subjects);

  Report report;
  std::fprintf(stderr, "commit %s\n", bench::MeasuredCommit());
  std::fprintf(stderr,
               "| kind | form | width | bytes | entropy | ratio | encode ns | decode ns | plain ns "
               "| copy ns |\n");
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    if (i == kinds.size()) report.EndDay();
    const Subject& subject = subjects[i];
    report.Add(subject.name, subject.encoded, subject.sample_count, subject.entropy_bits,
               subject.cost);
  }
  report.PrintForms();
}

}  // namespace
}  // namespace stepwell

int main(int argc, char** argv) {
  const stepwell::bench::AskedOptions asked("codec_bench", {stepwell::bench::AskedOptions::kQuick},
                                            argc, argv);
  stepwell::Run(asked.Has("--quick"));
  return 0;
}
