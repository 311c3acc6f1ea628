#include "tests/simulation/history.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stepwell::simulation {
namespace {

std::string Text(SampleNumber sample) {
  return absl::StrCat("sample ", sample & 0xffffffff, " of rank ", RankOf(sample));
}

}  // namespace

void History::Fail(std::string what) {
  if (wrong_.empty()) wrong_ = std::move(what);
}

History::Sample* History::Find(SampleNumber sample) {
  const auto found = samples_.find(sample);
  if (found != samples_.end()) return &found->second;
  Fail(absl::StrCat(Text(sample), " was never recorded"));
  return nullptr;
}

void History::Recorded(SampleNumber sample) { samples_.try_emplace(sample); }

void History::Framed(SampleNumber sample, std::uint64_t first_sequence,
                     std::uint64_t last_sequence) {
  Sample* const known = Find(sample);
  if (known == nullptr) return;
  known->first_sequence = first_sequence;
  known->last_sequence = last_sequence;
}

void History::Renumbered(int rank) {
  const auto end = samples_.lower_bound(NumberOf(rank + 1, 0));
  for (auto each = samples_.lower_bound(NumberOf(rank, 0)); each != end; ++each) {
    Sample& sample = each->second;
    if (sample.committed || sample.first_sequence > sample.last_sequence) continue;
    sample.first_sequence = 1;
    sample.last_sequence = UINT64_MAX;
  }
}

void History::Sent(const Uuid& writer, std::uint64_t sequence, std::vector<SampleNumber> samples) {
  std::vector<SampleNumber>& known = sent_[writer][sequence];
  const bool is_other = !known.empty() && known != samples;
  if (is_other && !set_back_.contains(RankOf(known.front()))) {
    Fail(absl::StrCat("sequence ", sequence, " of rank ", RankOf(known.front()),
                      " was sent with other samples than before"));
  }
  known = std::move(samples);
}

void History::SentGap(const Uuid& writer, std::uint64_t first_sequence,
                      std::uint64_t last_sequence) {
  auto& chunks = sent_[writer];
  chunks.erase(chunks.lower_bound(first_sequence), chunks.upper_bound(last_sequence));
}

void History::CheckSeries(SeriesNo series_no, SampleNumber sample) {
  const auto [place, is_new] = rank_of_series_.try_emplace(series_no, RankOf(sample));
  if (place->second == RankOf(sample)) return;
  Fail(absl::StrCat(Text(sample), " was stored as one of rank ", place->second));
}

void History::Committed(SeriesNo series_no, SampleNumber sample) {
  CheckSeries(series_no, sample);
  Sample* const known = Find(sample);
  if (known == nullptr) return;
  if (known->committed) return Fail(absl::StrCat(Text(sample), " was committed twice"));
  known->committed = true;
  if (std::exchange(known->taken_back, false)) Saw("committed again");
  ++committed_count_;
}

void History::Told(int rank, std::uint64_t first_sequence, std::uint64_t last_sequence) {
  const auto end = samples_.lower_bound(NumberOf(rank + 1, 0));
  for (auto each = samples_.lower_bound(NumberOf(rank, 0)); each != end; ++each) {
    Sample& sample = each->second;
    sample.told = sample.told || std::max(sample.first_sequence, first_sequence) <=
                                     std::min(sample.last_sequence, last_sequence);
  }
}

// Frames that outlived the definitions before them.
void History::Rejected(const Uuid& writer, int rank, std::uint64_t first_sequence,
                       std::uint64_t last_sequence) {
  if (!set_back_.contains(rank)) {
    return Fail(absl::StrCat("sequence ", first_sequence, " of rank ", rank, " was rejected"));
  }
  for (std::uint64_t each = first_sequence; each <= last_sequence; ++each) {
    rejected_[writer].insert(each);
  }
}

void History::Acked(const Uuid& writer, std::uint64_t sequence) {
  const auto found = sent_.find(writer);
  if (found == sent_.end()) return;
  const auto end = found->second.upper_bound(sequence);
  for (auto chunk = found->second.begin(); chunk != end; ++chunk) {
    if (rejected_[writer].contains(chunk->first)) continue;
    for (const SampleNumber sample : chunk->second) {
      Sample* const known = Find(sample);
      if (known == nullptr) return;
      // The ack of a database that has been set back since may still be on its way.
      if (!known->committed && !known->taken_back) {
        return Fail(absl::StrCat(Text(sample), " is acked with sequence ", chunk->first,
                                 " and not in the database"));
      }
      if (!std::exchange(known->acked, true)) ++acked_count_;
    }
  }
  found->second.erase(found->second.begin(), end);
}

void History::Folded(SeriesNo series_no, SampleNumber sample) {
  CheckSeries(series_no, sample);
  Sample* const known = Find(sample);
  if (known == nullptr) return;
  if (!known->committed) return Fail(absl::StrCat(Text(sample), " is a row and was not committed"));
  if (known->folded) return Fail(absl::StrCat(Text(sample), " is in rows twice"));
  known->folded = true;
}

void History::SetBack(int rank) {
  const auto end = samples_.lower_bound(NumberOf(rank + 1, 0));
  set_back_[rank] = NumberOf(rank, 0);
  if (end != samples_.begin()) {
    set_back_[rank] = std::max(set_back_[rank], std::prev(end)->first);
  }
  for (auto each = samples_.lower_bound(NumberOf(rank, 0)); each != end; ++each) {
    if (!each->second.acked) each->second.excused = true;
  }
}

void History::KeepDatabase() {
  kept_.emplace();
  kept_->rejected = rejected_;
  kept_->rank_of_series = rank_of_series_;
  for (const auto& [number, sample] : samples_) {
    if (sample.committed) kept_->committed.insert(number);
    if (sample.folded) kept_->folded.insert(number);
    if (sample.told) kept_->told.insert(number);
  }
}

void History::PutDatabaseBack(bool is_noticed) {
  for (auto& [number, sample] : samples_) {
    const bool was_committed = std::exchange(sample.committed, kept_->committed.contains(number));
    sample.folded = kept_->folded.contains(number);
    const bool was_told = std::exchange(sample.told, kept_->told.contains(number));
    // What is committed may have been told before, by a gap that names roughly: its ack is on its way all the same.
    const bool was_there = was_committed || (was_told && !sample.told);
    if (was_there && !sample.committed) sample.taken_back = true;
  }
  rejected_ = kept_->rejected;
  rank_of_series_ = kept_->rank_of_series;
  opened_.clear();
  is_database_set_back_ = true;
  is_set_back_noticed_ = is_noticed;
}

// Who has closed asks again where the database says that it is another one, and its agent lives on. Of a writer whose sequences
// ended nobody tells again what a database lacks that it had.
bool History::MayStayAway(int rank) const {
  if (retired_.contains(rank)) return true;
  return !opened_.contains(rank) && (!is_set_back_noticed_ || left_.contains(rank));
}

void History::Ended(int rank, const Declared& declared) {
  const auto is_named = [&](const Sample& sample) {
    return std::any_of(declared.sequences.begin(), declared.sequences.end(), [&](const auto& gap) {
      return std::max(sample.first_sequence, gap.first) <=
             std::min(sample.last_sequence, gap.second);
    });
  };
  std::uint64_t missing = dropped_[rank];
  SampleNumber first_missing = 0;
  const auto end = samples_.lower_bound(NumberOf(rank + 1, 0));
  for (auto each = samples_.lower_bound(NumberOf(rank, 0)); each != end; ++each) {
    const Sample& sample = each->second;
    if (sample.committed != sample.folded) {
      return Fail(absl::StrCat(Text(each->first), " is committed and in no row"));
    }
    if (sample.committed || sample.excused) continue;
    if (sample.taken_back) {
      const bool stays_away = MayStayAway(rank);
      Saw(stays_away ? "taken back, and nobody asked" : "taken back, and told");
      if (stays_away) continue;
    }
    // Of a spool that was set back frames have other sequences than they had.
    const auto set_back = set_back_.find(rank);
    if ((set_back == set_back_.end() || each->first > set_back->second) && !is_named(sample)) {
      return Fail(absl::StrCat(Text(each->first), " is missing, of sequences ",
                               sample.first_sequence, " to ", sample.last_sequence,
                               ", and no gap names one of them"));
    }
    ++missing;
    if (first_missing == 0) first_missing = each->first;
  }
  // Drops that nobody had told yet are gone with it, and gaps count what is excused; those that a database held
  // behind where it was set back to are gone, too.
  if (set_back_.contains(rank) || is_database_set_back_) return;
  if (!declared.is_exact || missing == declared.sample_count) return;
  Fail(absl::StrCat("rank ", rank, ": ", missing, " samples are missing, gaps declare ",
                    declared.sample_count, first_missing == 0 ? "" : "; the first is ",
                    first_missing == 0 ? "" : Text(first_missing)));
}

}  // namespace stepwell::simulation
