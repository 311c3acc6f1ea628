// History: what was recorded, sent, committed, acked and folded in a simulated run, sample by sample,
// and whether that is as promised. It sees the ends of the line alone and knows no rule of the middle.
// The first wrong thing stays. Confined to its run.
//
//   history.Committed(series_no, sample);
//   if (history.wrong()) ...
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/uuid.h"

namespace stepwell::simulation {

// The number of a sample is its value: the rank in the upper half, the how manieth of it in the lower.
using SampleNumber = std::uint64_t;
constexpr SampleNumber NumberOf(int rank, std::uint64_t nth) {
  return (static_cast<std::uint64_t>(rank) << 32) | nth;
}
constexpr int RankOf(SampleNumber sample) { return static_cast<int>(sample >> 32); }

// What gaps say is missing of a rank.
struct Declared {
  std::uint64_t sample_count = 0;
  // None of them leaves its count open, or tells it roughly.
  bool is_exact = true;
  // First and last, of frames that are gone.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> sequences;
};

class History {
 public:
  void Recorded(SampleNumber sample);
  // It is in a frame under one of these sequences; in none where the last is below the first.
  void Framed(SampleNumber sample, std::uint64_t first_sequence, std::uint64_t last_sequence);
  // Whatever is in frames of the rank and not in the database may be in others by now, under any sequence.
  void Renumbered(int rank);
  // A chunk leaves the agent. Sent again it may hold other samples only where the spool was set back.
  void Sent(const Uuid& writer, std::uint64_t sequence, std::vector<SampleNumber> samples);
  // Nothing will be sent under these any more.
  void SentGap(const Uuid& writer, std::uint64_t first_sequence, std::uint64_t last_sequence);
  // A transaction stored it.
  void Committed(SeriesNo series_no, SampleNumber sample);
  // It stored a gap that names these.
  void Told(int rank, std::uint64_t first_sequence, std::uint64_t last_sequence);
  // It stored that these are refused, as a gap.
  void Rejected(const Uuid& writer, int rank, std::uint64_t first_sequence,
                std::uint64_t last_sequence);
  // The agent takes all up to `sequence` as stored for good.
  void Acked(const Uuid& writer, std::uint64_t sequence);
  // A fold made a row of it.
  void Folded(SeriesNo series_no, SampleNumber sample);
  // The rank's machine lost its power, or its spool was set back: what nobody had acked may be gone. What it records
  // from now on is held as elsewhere.
  void SetBack(int rank);
  // The database as of now is kept, and later put in the place of what it has become: what was committed in between
  // is not there any more, and may be committed and folded once more.
  void KeepDatabase();
  void PutDatabaseBack(bool is_noticed);
  // A writer of the rank was opened, as the database is now.
  void Opened(int rank) { opened_.insert(rank); }
  // An agent that had closed its writer has ended.
  void Left(int rank) { left_.insert(rank); }
  // Its sequences ended, and another one goes on.
  void Retired(int rank) { retired_.insert(rank); }
  // The run is over, and all is calm: what is missing was in frames that gaps name and, where gaps count
  // exactly, is as much as they say.
  void Ended(int rank, const Declared& declared);

  // What `rank` could not even put into its ring.
  void Dropped(int rank, std::uint64_t count) { dropped_[rank] += count; }

  // What the run came by, so that a test can say what runs must come by.
  void Saw(const std::string& what) { ++seen_[what]; }
  const std::map<std::string, int>& seen() const { return seen_; }

  void Fail(std::string what);
  bool wrong() const { return !wrong_.empty(); }
  const std::string& what() const { return wrong_; }
  std::size_t committed_count() const { return committed_count_; }
  std::size_t acked_count() const { return acked_count_; }

 private:
  struct Sample {
    bool committed = false;
    bool acked = false;
    bool folded = false;
    bool excused = false;
    // A gap that the database holds names its frame.
    bool told = false;
    // It was committed or told, and the database was set back to before.
    bool taken_back = false;
    // Of its frame.
    std::uint64_t first_sequence = 1;
    std::uint64_t last_sequence = 0;
  };

  // What a copy of the database holds.
  struct Kept {
    std::set<SampleNumber> committed;
    std::set<SampleNumber> folded;
    std::set<SampleNumber> told;
    std::map<Uuid, std::set<std::uint64_t>> rejected;
    std::map<SeriesNo, int> rank_of_series;
  };

  Sample* Find(SampleNumber sample);
  bool MayStayAway(int rank) const;
  void CheckSeries(SeriesNo series_no, SampleNumber sample);

  std::map<SampleNumber, Sample> samples_;
  std::map<Uuid, std::map<std::uint64_t, std::vector<SampleNumber>>> sent_;
  std::map<Uuid, std::set<std::uint64_t>> rejected_;
  std::map<SeriesNo, int> rank_of_series_;
  std::map<int, std::uint64_t> dropped_;
  // The newest sample of each when its spool was set back last.
  std::map<int, SampleNumber> set_back_;
  std::optional<Kept> kept_;
  bool is_database_set_back_ = false;
  bool is_set_back_noticed_ = false;
  std::set<int> left_;
  std::set<int> opened_;  // since the database was set back last
  std::set<int> retired_;
  std::size_t committed_count_ = 0;
  std::size_t acked_count_ = 0;
  std::map<std::string, int> seen_;
  std::string wrong_;
};

}  // namespace stepwell::simulation
