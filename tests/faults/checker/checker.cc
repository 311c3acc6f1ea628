#include "tests/faults/checker/checker.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace stepwell::faults {
namespace {

constexpr std::size_t kExamplesMax = 20;
// Between a producer's look at its clock and the recorder's.
constexpr std::int64_t kAboutUs = 1'000'000;
// A dropped sample is declared under the time of its drop, which is a little later than its own.
constexpr std::int64_t kDropUs = 20'000;

using Key = std::tuple<std::string, int, std::int64_t>;  // series, rank, number

std::int64_t NumberOf(const StoredSample& sample) {
  if (sample.series != kNumberedSeries) return sample.batch;
  return static_cast<std::int64_t>(std::bit_cast<double>(sample.value_bits));
}

struct Entry {
  std::vector<const LoggedSample*> logged;
  std::vector<const StoredSample*> stored;
};

std::string Text(const Key& key) {
  return std::get<0>(key) + " rank " + std::to_string(std::get<1>(key)) + " number " +
         std::to_string(std::get<2>(key));
}

class Comparison {
 public:
  Comparison(std::vector<StoredGap> gaps, Demand demand) : gaps_(std::move(gaps)), demand_(demand) {
    used_.resize(gaps_.size());
  }

  void Compare(const Key& key, const Entry& entry) {
    if (entry.logged.empty()) {
      Note(verdict_.unknown_count, entry.stored.size(), "never recorded: " + Text(key));
      return;
    }
    if (entry.stored.size() > entry.logged.size()) {
      Note(verdict_.doubled_count, entry.stored.size() - entry.logged.size(),
           "doubled: " + Text(key) + ", stored " + std::to_string(entry.stored.size()) +
               " times, recorded " + std::to_string(entry.logged.size()));
    }
    const std::size_t held = std::min(entry.stored.size(), entry.logged.size());
    verdict_.held_count += held;
    for (std::size_t i = 0; i < held; ++i) CompareContent(key, *entry.logged[i], *entry.stored[i]);
    for (std::size_t i = held; i < entry.logged.size(); ++i) Missing(key, *entry.logged[i]);
  }

  // REQUIRES: keys came in order.
  Verdict Take() {
    for (const auto& [series, stretches] : untimed_) JudgeUntimed(series, stretches);
    return std::move(verdict_);
  }

 private:
  void CompareContent(const Key& key, const LoggedSample& logged, const StoredSample& stored) {
    const bool same = (!logged.value_bits || *logged.value_bits == stored.value_bits) &&
                      logged.batch == stored.batch &&
                      (!logged.time_is_exact || logged.time_us == stored.time_us);
    if (same) return;
    char text[160];
    std::snprintf(
        text, sizeof(text), ": value %016llx time %lld batch %d, recorded %016llx %lld %d",
        static_cast<unsigned long long>(stored.value_bits), static_cast<long long>(stored.time_us),
        stored.batch, static_cast<unsigned long long>(logged.value_bits.value_or(0)),
        static_cast<long long>(logged.time_us), logged.batch);
    Note(verdict_.changed_count, 1, "changed: " + Text(key) + text);
  }

  void Missing(const Key& key, const LoggedSample& logged) {
    if (demand_ == Demand::kAcked && !logged.acked) return;
    if (Declared(logged)) {
      ++verdict_.declared_count;
    } else {
      Note(verdict_.missing_count, 1,
           std::string(logged.acked ? "acked" : "recorded") + " and missing: " + Text(key) +
               " time " + std::to_string(logged.time_us));
    }
  }

  // Samples absent with numbers that follow each other.
  struct Stretch {
    std::int64_t last = 0;
    std::uint64_t count = 0;
  };
  struct Untimed {
    std::size_t gap_count = 0;
    std::vector<Stretch> stretches;
  };

  // A gap that says no times hides one stretch of each series, not holes here and there.
  void JudgeUntimed(const std::pair<std::string, int>& series, const Untimed& untimed) {
    if (untimed.stretches.size() <= untimed.gap_count) return;
    for (const Stretch& stretch : untimed.stretches) {
      verdict_.declared_count -= stretch.count;
      Note(verdict_.missing_count, stretch.count,
           "not one stretch: " + series.first + " rank " + std::to_string(series.second) + ", " +
               std::to_string(stretch.count) + " up to number " + std::to_string(stretch.last));
    }
  }

  void AddUntimed(const LoggedSample& logged) {
    Untimed& untimed = untimed_[{logged.series, logged.rank}];
    if (untimed.stretches.empty()) {
      untimed.gap_count = static_cast<std::size_t>(
          std::count_if(gaps_.begin(), gaps_.end(), [&](const StoredGap& gap) {
            return gap.first_time_us == 0 && (!gap.rank || *gap.rank == logged.rank);
          }));
    }
    if (untimed.stretches.empty() || untimed.stretches.back().last + 1 != logged.number) {
      untimed.stretches.emplace_back();
    }
    untimed.stretches.back().last = logged.number;
    ++untimed.stretches.back().count;
  }

  // A gap that counts its samples covers no more than it counts. Where several cover a sample (a gap of all
  // groups, and one of its own), each sample is told by one of them if there is any way to share them out.
  bool Declared(const LoggedSample& logged) {
    const Covering covering = CoveringOf(logged);
    auto teller = std::find_if(covering.begin(), covering.end(),
                               [&](std::size_t gap) { return HasRoom(gap); });
    if (teller == covering.end()) {
      std::set<std::size_t> tried;
      teller = std::find_if(covering.begin(), covering.end(),
                            [&](std::size_t gap) { return MakeRoom(gap, tried); });
    }
    if (teller == covering.end()) return false;
    ++used_[*teller];
    if (IsUntimed(*teller)) {
      AddUntimed(logged);
    } else {
      ++told_[*teller][covering];
    }
    return true;
  }

  // Gaps that a sample may be told by, ascending.
  using Covering = std::vector<std::size_t>;
  Covering CoveringOf(const LoggedSample& logged) const {
    const std::string group = logged.series.substr(0, logged.series.find('/'));
    const std::int64_t slack = logged.time_is_exact ? kDropUs : kAboutUs;
    Covering covering;
    for (std::size_t i = 0; i < gaps_.size(); ++i) {
      const StoredGap& gap = gaps_[i];
      if (gap.rank && *gap.rank != logged.rank) continue;
      if (!gap.metric_group.empty() && gap.metric_group != group) continue;
      if (gap.first_time_us != 0 && logged.time_us < gap.first_time_us - slack) continue;
      if (gap.last_time_us != 0 && logged.time_us > gap.last_time_us + slack) continue;
      covering.push_back(i);
    }
    return covering;
  }
  bool IsUntimed(std::size_t gap) const {
    return gaps_[gap].first_time_us == 0 && gaps_[gap].last_time_us == 0;
  }
  bool HasRoom(std::size_t gap) const {
    return gaps_[gap].sample_count == 0 || used_[gap] < gaps_[gap].sample_count;
  }
  // One of the samples that `gap` tells is told by another one that covers it, which may have to make room in turn.
  bool MakeRoom(std::size_t gap, std::set<std::size_t>& tried) {
    if (!tried.insert(gap).second) return false;
    for (auto& [covering, count] : told_[gap]) {
      if (count == 0) continue;
      for (const std::size_t other : covering) {
        if (other == gap || IsUntimed(other)) continue;
        if (!HasRoom(other) && !MakeRoom(other, tried)) continue;
        --count;
        --used_[gap];
        ++told_[other][covering];
        ++used_[other];
        return true;
      }
    }
    return false;
  }

  void Note(std::uint64_t& counter, std::size_t count, const std::string& example) {
    counter += count;
    if (verdict_.examples.size() < kExamplesMax) verdict_.examples.push_back(example);
  }

  const std::vector<StoredGap> gaps_;
  const Demand demand_;
  std::vector<std::int64_t> used_;
  // How many samples each gap tells, by all that cover them.
  std::map<std::size_t, std::map<Covering, std::int64_t>> told_;
  std::map<std::pair<std::string, int>, Untimed> untimed_;
  Verdict verdict_;
};

}  // namespace

std::string Verdict::ToText() const {
  char counts[256];
  std::snprintf(counts, sizeof(counts),
                "held %llu, missing but declared %llu, missing %llu, doubled %llu, changed %llu, "
                "never recorded %llu",
                static_cast<unsigned long long>(held_count),
                static_cast<unsigned long long>(declared_count),
                static_cast<unsigned long long>(missing_count),
                static_cast<unsigned long long>(doubled_count),
                static_cast<unsigned long long>(changed_count),
                static_cast<unsigned long long>(unknown_count));
  std::string text = counts;
  for (const std::string& example : examples) text += "\n  " + example;
  return text;
}

Verdict Check(const Ledger& ledger, const std::vector<StoredSample>& stored,
              const std::vector<StoredGap>& gaps, Demand demand) {
  std::map<Key, Entry> entries;
  for (const LoggedSample& sample : ledger.samples) {
    entries[{sample.series, sample.rank, sample.number}].logged.push_back(&sample);
  }
  for (const StoredSample& sample : stored) {
    entries[{sample.series, sample.rank, NumberOf(sample)}].stored.push_back(&sample);
  }
  Comparison comparison(gaps, demand);
  for (const auto& [key, entry] : entries) comparison.Compare(key, entry);
  return comparison.Take();
}

}  // namespace stepwell::faults
