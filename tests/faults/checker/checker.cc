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

// Frames, rows and copies that nobody can read any more: who tells of them may not know what was in them.
// All others count what they give up.
bool MayLackCount(Cause cause) {
  return cause == Cause::kSpoolCorrupt || cause == Cause::kSpoolLost || cause == Cause::kRestored;
}

// What `gap` leaves open. The more, the less its word says.
int OpenCount(const StoredGap& gap) {
  return (gap.first_time_us == 0 ? 1 : 0) + (gap.last_time_us == 0 ? 1 : 0) +
         (gap.sample_count == 0 ? 1 : 0);
}

// Those that may excuse something, those first that say most.
std::vector<StoredGap> AllowedOf(std::vector<StoredGap> gaps, const Allowance& allowed) {
  std::erase_if(gaps, [&](const StoredGap& gap) {
    if (!allowed.causes.contains(gap.cause)) return true;
    return gap.sample_count == 0 && !(allowed.with_uncounted && MayLackCount(gap.cause));
  });
  std::stable_sort(gaps.begin(), gaps.end(), [](const StoredGap& a, const StoredGap& b) {
    return OpenCount(a) < OpenCount(b);
  });
  return gaps;
}

class Comparison {
 public:
  Comparison(const std::vector<StoredGap>& gaps, Demand demand, const Allowance& allowed)
      : gaps_(AllowedOf(gaps, allowed)),
        demand_(demand),
        declared_max_(allowed.count_max),
        stretches_max_(allowed.stretches_max) {
    used_.resize(gaps_.size());
  }

  // REQUIRES: keys come in order.
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

  Verdict Take() { return std::move(verdict_); }

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
    NoteAbsent(key);
    if (logged.is_unsure) return;
    if (demand_ == Demand::kAcked && !logged.acked) return;
    if (verdict_.declared_count < declared_max_ && Declared(logged)) {
      ++verdict_.declared_count;
    } else {
      Note(verdict_.missing_count, 1,
           std::string(logged.acked ? "acked" : "recorded") + " and missing: " + Text(key) +
               " time " + std::to_string(logged.time_us));
    }
  }

  // Samples of a series that are absent with numbers that follow each other are one stretch.
  void NoteAbsent(const Key& key) {
    const bool goes_on = std::get<0>(key) == std::get<0>(last_absent_) &&
                         std::get<1>(key) == std::get<1>(last_absent_) &&
                         std::get<2>(key) <= std::get<2>(last_absent_) + 1;
    if (!goes_on) ++stretch_;
    last_absent_ = key;
  }

  // A gap that counts its samples covers no more than it counts. Where several cover a sample (a gap of all
  // groups, and one of its own), each sample is told by one of them if there is any way to share them out.
  bool Declared(const LoggedSample& logged) {
    const Covering covering = CoveringOf(logged);
    auto teller = std::find_if(covering.begin(), covering.end(), [&](std::size_t gap) {
      return HasRoom(gap) && IsItsStretch(gap, logged);
    });
    if (teller == covering.end()) {
      std::set<std::size_t> tried;
      teller = std::find_if(covering.begin(), covering.end(),
                            [&](std::size_t gap) { return MakeRoom(gap, tried); });
    }
    if (teller == covering.end()) return false;
    ++used_[*teller];
    if (IsOpen(*teller)) {
      told_stretches_[{*teller, logged.series, logged.rank}].insert(stretch_);
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
  bool HasRoom(std::size_t gap) const {
    return gaps_[gap].sample_count == 0 || used_[gap] < gaps_[gap].sample_count;
  }
  // A gap that leaves a time or its count open hides one stretch of each series, or as many as are allowed, not holes here and there.
  bool IsOpen(std::size_t gap) const { return OpenCount(gaps_[gap]) > 0; }
  bool IsItsStretch(std::size_t gap, const LoggedSample& logged) const {
    if (!IsOpen(gap)) return true;
    const auto told = told_stretches_.find({gap, logged.series, logged.rank});
    return told == told_stretches_.end() || told->second.contains(stretch_) ||
           told->second.size() < stretches_max_;
  }
  // One of the samples that `gap` tells is told by another one that covers it, which may have to make room in turn.
  bool MakeRoom(std::size_t gap, std::set<std::size_t>& tried) {
    if (!tried.insert(gap).second) return false;
    for (auto& [covering, count] : told_[gap]) {
      if (count == 0) continue;
      for (const std::size_t other : covering) {
        if (other == gap || IsOpen(other)) continue;
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
  const std::uint64_t declared_max_;
  const std::size_t stretches_max_;
  // Of the absent samples so far: the newest, and how many stretches they are.
  Key last_absent_;
  std::size_t stretch_ = 0;
  std::vector<std::int64_t> used_;
  // How many samples each gap tells, by all that cover them.
  std::map<std::size_t, std::map<Covering, std::int64_t>> told_;
  // Which stretch of a series each open gap hides.
  std::map<std::tuple<std::size_t, std::string, int>, std::set<std::size_t>> told_stretches_;
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
              const std::vector<StoredGap>& gaps, Demand demand, const Allowance& allowed) {
  std::map<Key, Entry> entries;
  for (const LoggedSample& sample : ledger.samples) {
    entries[{sample.series, sample.rank, sample.number}].logged.push_back(&sample);
  }
  for (const StoredSample& sample : stored) {
    entries[{sample.series, sample.rank, NumberOf(sample)}].stored.push_back(&sample);
  }
  Comparison comparison(gaps, demand, allowed);
  for (const auto& [key, entry] : entries) comparison.Compare(key, entry);
  return comparison.Take();
}

}  // namespace stepwell::faults
