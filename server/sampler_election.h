// SamplerElection: of several samplers with one trial and machine, which one samples, and how many
// live trials share the machine. Without I/O: it is told what happens to writers, and answers what
// writers are to be told, which changed. Thread-compatible: WriterDirector locks.
//
// Of the live samplers the one that opened first samples, and goes on while it lives; when it closes,
// its stream ends or it falls silent, the next one does. After a start of the master the first that
// opens. A machine without a name has no election. Clients that do not follow directives store the
// machine's series twice.
//
// Samplers on one stream are one agent's: when a trial's attempt changes, or with a backlog after a
// start, an older one of it is still open until all of it is stored. They are elected, and told off,
// together, and none leaves anything to another. A name would not do: two agents may have the same.
//
// Who is told off is told which GPUs those before it name in their series, so that it goes on with its
// others: before it are the one that samples and the living that opened earlier; the silent are last.
// Further definitions are told a writer at once, then at most once a second. A sampler that opens again
// sends its definitions again, in several messages where they are many: what it named before counts
// until no further ones came for some seconds.
//
// GPUs cost memory for each that names them and each that is told: the first 64 samplers of a machine
// do so, and all together up to a bound. Others are told off without a list, and theirs are in nobody's.
//
// A trial is live on a machine while a writer of it there, rank or sampler, has not closed and was
// heard of of late, whether its stream stands or not: a reconnect changes nothing.
//
//   for (const SamplingOrder& order : election.Open(sampler, now)) Tell(order);
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "base/steady_time.h"
#include "server/named_gpus.h"

namespace stepwell {

// What one sampler is to be told.
struct SamplingOrder {
  TrialId trial_id{};
  WriterNo writer_no{};
  bool on = false;
  // Live trials of its machine, itself included.
  std::int32_t shared_with = 0;
  // Where it is off: what those before it sample.
  std::vector<std::string> gpus = {};

  bool operator==(const SamplingOrder&) const = default;
};

class SamplerElection {
 public:
  struct Options {
    // Not heard of for longer = does not live.
    absl::Duration silence_max = absl::Seconds(60);
    // Writers whose stream ended without a Close and that are still counted; beyond that, forgotten.
    std::size_t lost_count_max = 65'536;
    // Between two further definitions of which a writer is told.
    absl::Duration gpus_interval = absl::Seconds(1);
    // After the last of its definitions, those of a generation are all there.
    absl::Duration definitions_wait = absl::Seconds(5);
    // Samplers of one machine that name GPUs and are told of others'.
    std::size_t naming_count_max = 64;
    // Of all names that are held: those of 100,000 agents with eight GPUs.
    std::size_t named_bytes_max = std::size_t{64} << 20;
  };
  struct Writer {
    TrialId trial_id{};
    WriterNo writer_no{};
    std::uint64_t generation = 0;
    std::string machine = {};
    bool is_sampler = false;
    // Which stream holds it, as long as it stands; 0 = none that another is on.
    std::uint64_t stream = 0;
  };
  using Orders = std::vector<SamplingOrder>;
  // When the master last heard of a writer; long past = not known.
  using HeardOf = std::function<SteadyTime(TrialId, WriterNo)>;

  explicit SamplerElection(Options options) : options_(options) {}
  SamplerElection() : SamplerElection(Options()) {}

  // Opened, for the first time or under a newer generation: a sampler is always answered for. One of
  // an older generation than known is passed over.
  Orders Open(const Writer& writer, SteadyTime now);
  // Those of another generation than the one open are passed over.
  Orders Close(TrialId trial_id, WriterNo writer_no, std::uint64_t generation, SteadyTime now);
  Orders Lose(TrialId trial_id, WriterNo writer_no, std::uint64_t generation, SteadyTime now);
  // Its definitions name these GPUs. All of a generation's count together; until the first of a new
  // generation those before it do.
  Orders Name(TrialId trial_id, WriterNo writer_no, std::uint64_t generation, const NamedGpus& gpus,
              SteadyTime now);
  // Who fell silent, and who is back, and GPUs that were not told yet. O(writers); once a second or so.
  Orders Look(const HeardOf& heard_of, SteadyTime now);

  // Nobody is open any more.
  void Clear();

  std::size_t writer_count() const { return members_.size(); }
  std::size_t named_bytes() const { return named_bytes_; }

 private:
  using Key = std::pair<TrialId, WriterNo>;
  // What a sampler knows. Of its GPUs a hash: there may be many writers.
  struct Told {
    bool on = false;
    std::int32_t shared_with = 0;
    std::size_t gpus_hash = 0;
    // When the GPUs alone were told last; long past = never.
    SteadyTime gpus_at = {};
  };
  struct Member {
    std::uint64_t generation = 0;
    std::string machine;
    bool is_sampler = false;
    // A stream holds it open.
    bool held = true;
    SteadyTime heard = {};
    // Who came first; siblings are at one place.
    std::uint64_t place = 0;
    std::uint64_t stream = 0;
    // One of those of its machine that name GPUs and are told of them.
    bool names = false;
    // What its definitions name, and of which generation those were.
    NamedGpus gpus;
    std::uint64_t gpus_generation = 0;
    // Of that generation alone, while those of an earlier one count too; when the last of them came.
    std::optional<NamedGpus> fresh_gpus = {};
    SteadyTime named_at = {};
    std::optional<Told> told;
  };
  // One trial on one machine.
  struct Share {
    std::set<WriterNo> writers;
    // Who samples, if anyone: this one, and its siblings on its stream.
    std::optional<WriterNo> seat;
    std::uint64_t seat_stream = 0;
    bool live = false;
  };
  struct Machine {
    std::map<TrialId, Share> shares;
    std::int32_t live_count = 0;
    std::size_t naming_count = 0;
  };

  bool Lives(const Member& member, SteadyTime now) const;
  // Takes one of its machine's places among those that name GPUs, if there is one.
  void TakeNaming(Member& member);
  // Gives it back, and forgets what it named.
  void LeaveNaming(Member& member);
  // False where there is no room for more.
  bool AddGpus(Member& member, const NamedGpus& gpus);
  // What an earlier generation named counts no more.
  void DropOldGpus(Member& member);
  // The member is gone; its share is refreshed afterwards.
  void Erase(std::map<Key, Member>::iterator member);
  // Takes its place in a share, beside its siblings if there are any.
  void Join(Share& share, const Key& key);
  static bool IsSeated(const Share& share, WriterNo writer_no, const Member& member);
  // Whether a trial lives on a machine, and who samples it. True when the machine's count changes.
  bool Refresh(Machine& machine, TrialId trial_id, Share& share, SteadyTime now);
  // Refreshes one trial on one machine, and tells whom that concerns.
  void Settle(const std::string& machine_name, TrialId trial_id, SteadyTime now, Orders& orders);
  // Definitions come as often as a client likes: of GPUs alone they tell at most once an interval, and
  // the next Look the rest.
  enum class Pace { kNow, kBounded };
  struct Candidate {
    WriterNo writer_no{};
    const Member* member = nullptr;
    bool seated = false;
  };
  // Whom to elect: those that live before the silent, then who sits. Whom to tell: who sits first.
  enum class First { kLiving, kSeated };
  // Who may sample, siblings side by side.
  std::vector<Candidate> Queue(TrialId trial_id, const Share& share, First first,
                               SteadyTime now) const;
  void TellShare(const Machine& machine, TrialId trial_id, const Share& share, SteadyTime now,
                 Pace pace, Orders& orders);
  void TellSeated(TrialId trial_id, const Share& share, std::int32_t live_count, Orders& orders);
  void TellOn(TrialId trial_id, WriterNo writer_no, std::int32_t live_count, Orders& orders);
  void TellOff(TrialId trial_id, WriterNo writer_no, std::int32_t live_count,
               const NamedGpus& before, SteadyTime now, Pace pace, Orders& orders);

  const Options options_;
  std::map<Key, Member> members_;
  absl::flat_hash_map<std::string, Machine> machines_;
  std::uint64_t next_place_ = 1;
  std::size_t lost_count_ = 0;
  std::size_t named_bytes_ = 0;
};

}  // namespace stepwell
