#include "bench/flat/crowd.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/steady_time.h"
#include "bench/load/bench_run.h"
#include "bench/load/tick_load.h"

namespace stepwell::bench {
namespace {

constexpr int kSeriesCount = 10;
constexpr int kTickCount = 100;
constexpr absl::Duration kBeat = absl::Seconds(10);

std::vector<LoadSeries> SeriesOfOthers() {
  std::vector<LoadSeries> series;
  for (int i = 0; i < kSeriesCount; ++i) {
    series.push_back({"training", absl::StrCat("metric_", i), ""});
  }
  return series;
}

SealedBody BodyFrom(std::int64_t start_us) {
  TickTable table;
  table.tick_group = 1;
  for (int i = 0; i < kTickCount; ++i) {
    table.times_us.push_back(start_us + i * 1'000'000);
    table.batches.push_back(i);
  }
  for (int i = 0; i < kSeriesCount; ++i) table.columns.emplace_back().values.assign(kTickCount, i);
  return BodyOf({table, 0, kTickCount});
}

}  // namespace

Crowd::Crowd(const std::string& address) : next_time_us_(kLoadStartUs) {
  const std::vector<v1::Definition> definitions = DefinitionsOf(SeriesOfOthers());
  const SealedBody body = BodyFrom(kLoadStartUs);
  for (int trial = 0; trial < kEndedCount; ++trial) {
    LoadStream stream(address, absl::StrCat("other-", trial), 0, definitions);
    DieUnless(stream.Open());
    DieUnless(stream.Send(body));
    DieUnless(stream.Finish(LoadStream::Ending::kClose));
  }
  ComeAgain(address);
}

Crowd::~Crowd() { LeaveThem(); }

std::int64_t Crowd::SendOne() {
  const SealedBody body = BodyFrom(next_time_us_);
  next_time_us_ += kTickCount * 1'000'000;
  absl::MutexLock lock(&mu_);
  for (const auto& stream : living_) DieUnless(stream->Send(body));
  for (const auto& stream : living_) DieUnless(stream->AwaitAcks());
  return static_cast<std::int64_t>(living_.size()) * kSeriesCount * kTickCount;
}

void Crowd::LeaveThem() {
  stop_ = true;
  if (beats_.joinable()) beats_.join();
  absl::MutexLock lock(&mu_);
  living_.clear();
}

void Crowd::ComeAgain(const std::string& address) {
  const std::vector<v1::Definition> definitions = DefinitionsOf(SeriesOfOthers());
  {
    absl::MutexLock lock(&mu_);
    for (int trial = 0; trial < kLivingCount; ++trial) {
      living_.push_back(
          std::make_unique<LoadStream>(address, absl::StrCat("living-", trial), 0, definitions));
      DieUnless(living_.back()->Open());
    }
  }
  SendOne();
  stop_ = false;
  beats_ = std::thread([this] { Beat(); });
}

void Crowd::Beat() {
  for (SteadyTime next = SteadyTime::Now() + kBeat; !stop_;) {
    absl::SleepFor(absl::Milliseconds(100));
    if (!next.HasPassed()) continue;
    next = SteadyTime::Now() + kBeat;
    absl::MutexLock lock(&mu_);
    for (const auto& stream : living_) DieUnless(stream->Beat());
  }
}

}  // namespace stepwell::bench
