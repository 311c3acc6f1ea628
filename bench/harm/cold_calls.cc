#include "bench/harm/cold_calls.h"

#include <algorithm>
#include <array>
#include <random>

#include "bench/harm/processor.h"

namespace stepwell::bench {
namespace {

constexpr std::size_t kLineWords = 64 / sizeof(std::uint64_t);

stepwell_scope scope{};
stepwell_scope_id part = 0;
stepwell_series_id loss = 0;

// All of one shape, so that what leads to a call costs each the same.
using Call = void (*)();
// What a call is given lies on a stack that is in use, and in an instruction: it is warm.
[[gnu::noinline, gnu::aligned(64)]] void Nothing() {
  asm volatile("" : : "r"(scope.path), "r"(part), "r"(loss) : "memory");
}
[[gnu::noinline, gnu::aligned(64)]] void ReadClock() { (void)ClockNs(CLOCK_MONOTONIC); }
[[gnu::noinline, gnu::aligned(64)]] void BeginScope() { stepwell_scope_begin(&scope, part); }
[[gnu::noinline, gnu::aligned(64)]] void EndScope() { stepwell_scope_end(&scope); }
[[gnu::noinline, gnu::aligned(64)]] void Record() { stepwell_record(loss, 1.5); }
[[gnu::noinline, gnu::aligned(64)]] void EndStep() { stepwell_step_end(STEPWELL_NEXT_BATCH); }

constexpr std::array<Call, ColdCalls::kKindCount> kCalls = {Nothing,  ReadClock, BeginScope,
                                                            EndScope, Record,    EndStep};

[[gnu::noinline]] double Timed(Call call) {
  // The way there is warm: what is cold is the call's own.
  asm volatile("" : "+r"(call) : : "memory");
  const std::uint64_t begin = ReadCounter();
  call();
  return static_cast<double>(ReadCounter() - begin);
}

double At(std::vector<double>& values, double share) {
  const auto rank = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size()));
  std::nth_element(values.begin(), values.begin() + rank, values.end());
  return values[static_cast<std::size_t>(rank)];
}

}  // namespace

const char* ColdCalls::NameOf(Kind kind) {
  switch (kind) {
    case kNothing:
      return "nothing";
    case kClock:
      return "clock";
    case kScopeBegin:
      return "scope_begin";
    case kScopeEnd:
      return "scope_end";
    case kRecord:
      return "record";
    case kStepEnd:
      return "step_end";
    case kKindCount:
      break;
  }
  return "";
}

ColdCalls::ColdCalls(Recorder& recorder, std::size_t walked_bytes)
    : recorder_(recorder), walked_(walked_bytes / sizeof(std::uint64_t), 1) {
  part = ScopeName("cold").id();
  loss = Series("training", "cold").id();
}

[[gnu::noinline]] void ColdCalls::Walk() {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < walked_.size(); at += kLineWords) sum += ++walked_[at];
  asm volatile("" : : "r"(sum) : "memory");
}

std::vector<ColdCalls::Cost> ColdCalls::Measure(int count, std::uint32_t seed) {
  std::minstd_rand random(seed);
  std::array<std::vector<double>, kKindCount> spent;
  for (auto& of : spent) of.reserve(static_cast<std::size_t>(count));
  recorder_.StepBegin();
  const auto cold = [&](Kind kind) {
    Walk();
    (void)Timed(Nothing);
    spent[kind].push_back(Timed(kCalls[kind]));
  };
  // A scope's begin and its end belong together; all else in any order.
  std::array<Kind, 5> turns = {kNothing, kClock, kScopeBegin, kRecord, kStepEnd};
  for (int i = 0; i < count; ++i) {
    std::shuffle(turns.begin(), turns.end(), random);
    for (const Kind kind : turns) {
      cold(kind);
      if (kind == kScopeBegin) cold(kScopeEnd);
    }
  }
  const double ns = NsPerCount();
  std::vector<Cost> costs;
  const Cost nothing{At(spent[kNothing], 0.1), At(spent[kNothing], 0.5)};
  for (auto& of : spent) {
    costs.push_back({ns * (At(of, 0.1) - nothing.tenth), ns * (At(of, 0.5) - nothing.median)});
  }
  return costs;
}

}  // namespace stepwell::bench
