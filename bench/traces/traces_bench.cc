// What does it cost to read and merge traces? Generated in memory as they are read, so that no disk is measured:
// 10^6 spans of 8 ranks as one, in JSON and in Perfetto's form, and a large trace of Kineto's form through both passes of a merge.
// With a real master: such a file by command to the master and merged there, and what a span costs while the agent writes it as a trace.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/trace/trace_reading.h"
#include "bench/load/asked_options.h"
#include "bench/load/bar.h"
#include "bench/load/bench_run.h"
#include "bench/load/pairs.h"
#include "bench/traces/generated_trace.h"
#include "bench/traces/imported_trace.h"
#include "bench/traces/traced_spans.h"

namespace stepwell::bench {
namespace {

constexpr int kRuns = 3;
constexpr int kRanks = 8;

double Seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void Fail(const absl::Status& status) {
  std::fprintf(stderr, "traces: %s\n", status.ToString().c_str());
  std::exit(1);
}

struct Taken {
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t events = 0;
};

using SourceOfRank = std::function<TraceSource(int rank)>;

// Both passes.
Taken MergeAll(int ranks, const SourceOfRank& source_of, MergeForm form = MergeForm::kChrome) {
  Taken taken;
  std::vector<MergeInput> inputs;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto scanned = ScanTrace(source_of(rank));
    if (!scanned.ok()) Fail(scanned.status());
    taken.in += scanned->form.byte_count;
    MergeInput& input = inputs.emplace_back();
    input.label = absl::StrCat(rank);
    input.origin = scanned->origin;
    input.machine = "one";
  }
  const auto plan = PlanMerge(inputs, MergeAlignment::kClock);
  if (!plan.ok()) Fail(plan.status());
  const auto counts = MergeTraces(
      *plan, [&](const PlacedInput& input) { return source_of(input.rank); }, form,
      [&](std::string_view bytes) {
        taken.out += static_cast<std::int64_t>(bytes.size());
        return absl::OkStatus();
      });
  if (!counts.ok()) Fail(counts.status());
  taken.events = counts->written;
  return taken;
}

double PeakMegabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024 * 1e-6;
}

// MB a second of one trace, made meanwhile; of each run the part of its bytes that comes out.
std::vector<double> Rates(const SourceOfRank& source_of, MergeForm form, std::vector<double>& sizes,
                          std::vector<double>* parts) {
  std::vector<double> rates;
  for (int run = 0; run < kRuns; ++run) {
    Taken taken;
    const double seconds = Seconds([&] { taken = MergeAll(1, source_of, form); });
    rates.push_back(static_cast<double>(taken.in) * 1e-6 / seconds);
    if (parts != nullptr) {
      parts->push_back(static_cast<double>(taken.out) / static_cast<double>(taken.in));
    }
    sizes.push_back(PeakMegabytes());
    std::fprintf(stderr, "traces: %.0f MB in, %.0f MB out, %.2f s\n",
                 static_cast<double>(taken.in) * 1e-6, static_cast<double>(taken.out) * 1e-6,
                 seconds);
  }
  return rates;
}

void MeasureMerges(bool is_quick) {
  std::vector<double> spans, sizes;
  const SourceOfRank source_of = [&](int rank) {
    return Generated(rank, (is_quick ? 200'000 : 1'000'000) / kRanks);
  };
  for (int run = 0; run < kRuns; ++run) {
    Taken taken;
    const double seconds = Seconds([&] { taken = MergeAll(kRanks, source_of); });
    // As if they were a million.
    spans.push_back(seconds * 1e6 / static_cast<double>(taken.events));
    sizes.push_back(PeakMegabytes());
  }
  PrintOurs("traces.merge_million", "s", "10^6 spans of 8 ranks, both passes", Promised("<= 5"),
            spans);
  std::vector<double> perfetto, parts;
  for (int run = 0; run < kRuns; ++run) {
    const std::int64_t json = MergeAll(kRanks, source_of).out;
    Taken taken;
    const double seconds =
        Seconds([&] { taken = MergeAll(kRanks, source_of, MergeForm::kPerfetto); });
    perfetto.push_back(seconds * 1e6 / static_cast<double>(taken.events));
    parts.push_back(static_cast<double>(taken.out) / static_cast<double>(json));
    sizes.push_back(PeakMegabytes());
  }
  PrintOurs("traces.perfetto_million", "s", "the same in Perfetto's form", Promised("<= 5"),
            perfetto);
  PrintOurs("traces.perfetto_bytes", "of JSON's", "bytes of the same merge in JSON",
            Promised("<= 0.2"), parts);
  PrintOurs("traces.import_rate", "MB/s",
            "a trace of Kineto's form of 1 GB, both passes of a merge", Promised(">= 100"),
            Rates([&](int) { return Generated(0, is_quick ? 400'000 : 4'000'000); },
                  MergeForm::kChrome, sizes, nullptr));
  const SourceOfRank profile = [&](int) {
    return GeneratedProfile(0, is_quick ? 80'000 : 800'000);
  };
  PrintOurs("traces.profile_rate", "MB/s",
            "a GPU's profile of 1 GB as Kineto orders it, both passes of a merge",
            Promised(">= 100"), Rates(profile, MergeForm::kChrome, sizes, nullptr));
  std::vector<double> profile_parts;
  PrintOurs("traces.profile_perfetto", "MB/s", "the same to Perfetto's form", Promised(">= 100"),
            Rates(profile, MergeForm::kPerfetto, sizes, &profile_parts));
  PrintOurs("traces.profile_bytes", "of JSON's", "bytes of that", Promised("<= 0.2"),
            profile_parts);
  PrintOurs("traces.resident", "MB", "the largest resident size meanwhile", Promised("<= 300"),
            sizes);
}

std::string ProgramsFolder() {
  const char* folder = std::getenv("STEPWELL_BIN");
  if (folder != nullptr) return folder;
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

}  // namespace
}  // namespace stepwell::bench

int main(int argc, char** argv) {
  const stepwell::bench::AskedOptions asked("traces_bench", {stepwell::bench::AskedOptions::kQuick},
                                            argc, argv);
  const bool is_quick = asked.Has("--quick");
  const std::string bin = stepwell::bench::ProgramsFolder();
  stepwell::bench::StayOnTwoCores();
  // Before this process grows: its children's largest size would begin with its own.
  stepwell::bench::MeasureImport(bin + "/stepwell", is_quick);
  stepwell::bench::MeasureMerges(is_quick);
  stepwell::bench::MeasureTracedSpans(bin, is_quick);  // what it starts stays on one of them
  return 0;
}
