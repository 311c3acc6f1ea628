// RandomTrialTest: trials of random histories: chunks of three writers in two attempts, with
// holes, NaN and samples without batch, received on two days. Wild ones have negative values and
// infinities, series that share a name, each in several tick groups, chunks whose samples are
// months old, and tables whose ticks are in no order. Header only.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <utility>

#include "tests/contract/query/query_reads_fixture.h"

namespace stepwell {

class RandomTrialTest : public QueryReadsTest {
 protected:
  // What CommitRandom knows of the trial that is fed.
  struct RandomTrial {
    std::vector<Feed> writers;
    std::int32_t step = 0, scope = 0, loss = 0, cpu = 0;
    std::int64_t time_us = kStartUs;
    std::int32_t batch[3] = {-1, -1, 30};
    bool is_wild = false;
    std::int32_t loss_of_other = 0, cpu_of_other = 0;  // of wild ones only
  };
  static constexpr std::int64_t kLateDaysMax = 200;

  RandomTrial BeginWild() {
    RandomTrial trial = BeginRandom();
    trial.is_wild = true;
    trial.loss_of_other =
        AddSeries("training", "loss", SeriesKind::kGauge, {{"agent", "node"}, {"rank", "1"}});
    trial.cpu_of_other = AddSeries("cpu", "util", SeriesKind::kGauge, {{"agent", "other"}});
    return trial;
  }

  RandomTrial BeginRandom() {
    RandomTrial trial;
    trial.writers = {OpenWriter("first"), OpenWriter("first", true), OpenWriter("second")};
    trial.step = AddSeries("timing", "step", SeriesKind::kDuration);
    trial.scope = AddSeries("timing", "load", SeriesKind::kDuration);
    trial.loss = AddSeries("training", "loss");
    trial.cpu = AddSeries("cpu", "util", SeriesKind::kGauge, {{"agent", "node"}});
    return trial;
  }

  // A chunk of one writer; attempt 2 does some batches over.
  void CommitRandom(std::mt19937_64& random, RandomTrial& trial) {
    const std::size_t which = random() % 3;
    trial.time_us += static_cast<std::int64_t>(random() % 60'000'000);
    TickTable table;
    table.tick_group = 1;
    const std::size_t tick_count = 1 + random() % 40;
    std::int32_t& batch = trial.batch[which == 1 ? 0 : which];
    for (std::size_t i = 0; i < tick_count; ++i) {
      table.times_us.push_back(trial.time_us += 1 + static_cast<std::int64_t>(random() % 500'000));
      if (which != 1) ++batch;
      table.batches.push_back(random() % 8 == 0 ? -1 : batch);
    }
    std::vector<std::int32_t> columns =
        which == 1 ? std::vector<std::int32_t>{trial.cpu}
                   : std::vector<std::int32_t>{trial.step, trial.scope, trial.loss};
    if (trial.is_wild) {
      columns.push_back(which == 1 ? trial.cpu_of_other : trial.loss_of_other);
      MakeWild(random, table);
    }
    for (const std::int32_t series_no : columns) {
      TickColumn column;
      column.series_no = SeriesNo{series_no};
      const bool holes = random() % 3 == 0;
      for (std::size_t i = 0; i < tick_count; ++i) {
        const bool present = !holes || random() % 3 != 0;
        if (holes) column.presence.push_back(present);
        if (!present) continue;
        column.values.push_back(random() % 25 == 0 ? std::nan("")
                                                   : static_cast<double>(random() % 4096) / 64);
        const bool is_duration = series_no == trial.step || series_no == trial.scope;
        if (trial.is_wild && !is_duration) MakeWild(random, column.values.back());
      }
      if (!column.values.empty()) table.columns.push_back(std::move(column));
    }
    if (table.columns.empty()) return;
    for (const std::int32_t each : table.batches) {
      if (each < 0) continue;
      auto [span, added] =
          spans_[external_id_].try_emplace(trial.writers[which].opened.attempt, each, each);
      span->second.first = std::min(span->second.first, each);
      span->second.second = std::max(span->second.second, each);
    }
    // Some are received after midnight, in another leaf.
    Commit(trial.writers[which], {std::move(table)},
           random() % 4 == 0 ? kStartUs + kDayUs : kStartUs);
  }

  // In one of three tick groups; now and then in no order of time, or of days to months ago. The
  // columns, whose samples go with their ticks, are not there yet.
  static void MakeWild(std::mt19937_64& random, TickTable& table) {
    table.tick_group += static_cast<std::uint32_t>(random() % 3);
    if (random() % 4 == 0) Shuffle(random, table);
    if (random() % 4 != 0) return;
    const std::int64_t days = 1 + static_cast<std::int64_t>(random() % kLateDaysMax);
    for (std::int64_t& time_us : table.times_us) time_us -= days * kDayUs;
  }
  static void Shuffle(std::mt19937_64& random, TickTable& table) {
    for (std::size_t i = table.times_us.size(); i > 1; --i) {
      const std::size_t other = random() % i;
      std::swap(table.times_us[i - 1], table.times_us[other]);
      std::swap(table.batches[i - 1], table.batches[other]);
    }
  }
  static void MakeWild(std::mt19937_64& random, double& value) {
    if (random() % 2 == 0) value = -value;
    if (random() % 100 == 0) value = std::copysign(INFINITY, value);
  }

  // Batch b counts for the newest attempt whose first and last batch enclose it.
  bool Counts(const Point& point) const {
    const auto spans = spans_.find(external_id_);
    if (spans == spans_.end()) return true;
    for (const auto& [attempt, span] : spans->second) {
      if (attempt > point.attempt && point.batch >= span.first && point.batch <= span.second) {
        return false;
      }
    }
    return true;
  }

  // By trial: first and last batch of each attempt's ticks, those without a sample among them.
  std::map<std::string, std::map<std::int32_t, std::pair<std::int32_t, std::int32_t>>> spans_;
};

}  // namespace stepwell
