#include "server/sampler_election.h"

#include <algorithm>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"

namespace stepwell {

bool SamplerElection::Lives(const Member& member, SteadyTime now) const {
  return now - member.heard <= options_.silence_max;
}

SamplerElection::Orders SamplerElection::Open(const Writer& writer, SteadyTime now) {
  Orders orders;
  const Key key{writer.trial_id, writer.writer_no};
  std::uint64_t place = 0;
  bool sits = false;
  NamedGpus gpus;
  std::optional<NamedGpus> fresh_gpus;
  std::uint64_t gpus_generation = 0;
  SteadyTime named_at;
  if (const auto before = members_.find(key); before != members_.end()) {
    Member& member = before->second;
    if (member.generation > writer.generation) return orders;
    const std::string machine = member.machine;
    const bool moves = machine != writer.machine;
    // On a new stream while the old one still stands: the same sampler, which never stopped.
    if (!moves && member.is_sampler == writer.is_sampler && member.held) {
      place = member.place;
      sits = IsSeated(machines_.at(machine).shares.at(writer.trial_id), writer.writer_no, member);
      gpus = member.gpus;
      fresh_gpus = member.fresh_gpus;
      gpus_generation = member.gpus_generation;
      named_at = member.named_at;
    }
    Erase(before);
    if (moves) Settle(machine, writer.trial_id, now, orders);
  }
  if (writer.machine.empty()) return orders;
  members_[key] = {.generation = writer.generation,
                   .machine = writer.machine,
                   .is_sampler = writer.is_sampler,
                   .held = true,
                   .heard = now,
                   .place = place != 0 ? place : next_place_++,
                   .stream = writer.stream,
                   .gpus = {},
                   .gpus_generation = gpus_generation,
                   .named_at = named_at,
                   .told = {}};
  Member& member = members_[key];
  if (member.is_sampler) TakeNaming(member);
  // What still waits to be forgotten waits on, or it would count for ever.
  if (AddGpus(member, gpus) && fresh_gpus) {
    named_bytes_ += fresh_gpus->bytes();
    member.fresh_gpus = std::move(fresh_gpus);
  }
  Share& share = machines_[writer.machine].shares[writer.trial_id];
  if (sits) {
    share.seat = writer.writer_no;
    share.seat_stream = writer.stream;
  }
  Join(share, key);
  Settle(writer.machine, writer.trial_id, now, orders);
  return orders;
}

SamplerElection::Orders SamplerElection::Close(TrialId trial_id, WriterNo writer_no,
                                               std::uint64_t generation, SteadyTime now) {
  Orders orders;
  const auto member = members_.find({trial_id, writer_no});
  if (member == members_.end() || member->second.generation != generation) return orders;
  const std::string machine = member->second.machine;
  Erase(member);
  Settle(machine, trial_id, now, orders);
  return orders;
}

SamplerElection::Orders SamplerElection::Lose(TrialId trial_id, WriterNo writer_no,
                                              std::uint64_t generation, SteadyTime now) {
  Orders orders;
  const auto found = members_.find({trial_id, writer_no});
  if (found == members_.end() || found->second.generation != generation) return orders;
  Member& member = found->second;
  if (!member.held) return orders;
  const std::string machine = member.machine;
  member.held = false;
  member.told.reset();
  LeaveNaming(member);
  ++lost_count_;
  if (lost_count_ > options_.lost_count_max) Erase(found);
  Settle(machine, trial_id, now, orders);
  return orders;
}

SamplerElection::Orders SamplerElection::Name(TrialId trial_id, WriterNo writer_no,
                                              std::uint64_t generation, const NamedGpus& gpus,
                                              SteadyTime now) {
  Orders orders;
  const auto found = members_.find({trial_id, writer_no});
  if (found == members_.end() || found->second.generation != generation) return orders;
  Member& member = found->second;
  if (!member.is_sampler || !member.held) return orders;
  if (member.gpus_generation != generation) {
    member.gpus_generation = generation;
    if (member.fresh_gpus) named_bytes_ -= member.fresh_gpus->bytes();
    member.fresh_gpus.reset();
    if (!member.gpus.names().empty()) member.fresh_gpus.emplace();
  }
  member.named_at = now;
  const bool changed = AddGpus(member, gpus);
  if (!changed) return orders;
  const Machine& machine = machines_.at(member.machine);
  TellShare(machine, trial_id, machine.shares.at(trial_id), now, Pace::kBounded, orders);
  return orders;
}

SamplerElection::Orders SamplerElection::Look(const HeardOf& heard_of, SteadyTime now) {
  for (auto next = members_.begin(); next != members_.end();) {
    const auto member = next++;
    const auto& [trial_id, writer_no] = member->first;
    SteadyTime& heard = member->second.heard;
    heard = std::max(heard, heard_of(trial_id, writer_no));
    if (now - member->second.named_at >= options_.definitions_wait) DropOldGpus(member->second);
    if (!member->second.held && !Lives(member->second, now)) Erase(member);
  }
  // All are counted before any is told.
  for (auto& [name, machine] : machines_) {
    for (auto& [trial_id, share] : machine.shares) Refresh(machine, trial_id, share, now);
    std::erase_if(machine.shares, [](const auto& entry) { return entry.second.writers.empty(); });
  }
  absl::erase_if(machines_, [](const auto& entry) { return entry.second.shares.empty(); });
  Orders orders;
  for (const auto& [name, machine] : machines_) {
    for (const auto& [trial_id, share] : machine.shares) {
      TellShare(machine, trial_id, share, now, Pace::kNow, orders);
    }
  }
  return orders;
}

void SamplerElection::Clear() {
  members_.clear();
  machines_.clear();
  lost_count_ = named_bytes_ = 0;
}

void SamplerElection::TakeNaming(Member& member) {
  std::size_t& count = machines_[member.machine].naming_count;
  member.names = count < options_.naming_count_max;
  if (member.names) ++count;
}

void SamplerElection::LeaveNaming(Member& member) {
  if (!member.names) return;
  --machines_.at(member.machine).naming_count;
  member.names = false;
  named_bytes_ -= member.gpus.bytes();
  if (member.fresh_gpus) named_bytes_ -= member.fresh_gpus->bytes();
  member.gpus = {};
  member.fresh_gpus.reset();
}

bool SamplerElection::AddGpus(Member& member, const NamedGpus& gpus) {
  if (!member.names || named_bytes_ + 2 * gpus.bytes() > options_.named_bytes_max) return false;
  const auto add = [&](NamedGpus& to) {
    named_bytes_ -= to.bytes();
    const bool changed = to.Add(gpus);
    named_bytes_ += to.bytes();
    return changed;
  };
  if (member.fresh_gpus) (void)add(*member.fresh_gpus);
  return add(member.gpus);
}

void SamplerElection::DropOldGpus(Member& member) {
  if (!member.fresh_gpus) return;
  named_bytes_ -= member.gpus.bytes();
  member.gpus = *std::exchange(member.fresh_gpus, std::nullopt);
}

void SamplerElection::Erase(std::map<Key, Member>::iterator member) {
  const auto [trial_id, writer_no] = member->first;
  if (!member->second.held) --lost_count_;
  LeaveNaming(member->second);
  machines_.at(member->second.machine).shares.at(trial_id).writers.erase(writer_no);
  members_.erase(member);
}

void SamplerElection::Join(Share& share, const Key& key) {
  Member& joins = members_.at(key);
  share.writers.insert(key.second);
  if (joins.stream == 0 || !joins.is_sampler) return;
  std::vector<Member*> siblings;
  for (const WriterNo writer_no : share.writers) {
    Member& member = members_.at({key.first, writer_no});
    if (!member.is_sampler || !member.held || member.stream != joins.stream) continue;
    siblings.push_back(&member);
    joins.place = std::min(joins.place, member.place);
  }
  for (Member* sibling : siblings) sibling->place = joins.place;
}

bool SamplerElection::IsSeated(const Share& share, WriterNo writer_no, const Member& member) {
  if (!share.seat || !member.is_sampler) return false;
  return share.seat == writer_no || (member.stream != 0 && member.stream == share.seat_stream);
}

std::vector<SamplerElection::Candidate> SamplerElection::Queue(TrialId trial_id, const Share& share,
                                                               First first, SteadyTime now) const {
  std::vector<Candidate> queue;
  absl::flat_hash_set<std::uint64_t> live_streams;
  for (const WriterNo writer_no : share.writers) {
    const Member& member = members_.at({trial_id, writer_no});
    if (!member.is_sampler || !member.held) continue;
    queue.push_back({writer_no, &member, IsSeated(share, writer_no, member)});
    if (member.stream != 0 && Lives(member, now)) live_streams.insert(member.stream);
  }
  const auto rank = [&](const Candidate& each) {
    const Member& member = *each.member;
    const bool is_silent = !Lives(member, now) && !live_streams.contains(member.stream);
    const auto worse = first == First::kLiving ? std::pair(is_silent, !each.seated)
                                               : std::pair(!each.seated, is_silent);
    return std::tuple(worse, member.place, member.stream, each.writer_no);
  };
  std::sort(queue.begin(), queue.end(),
            [&](const Candidate& a, const Candidate& b) { return rank(a) < rank(b); });
  return queue;
}

bool SamplerElection::Refresh(Machine& machine, TrialId trial_id, Share& share, SteadyTime now) {
  const std::vector<Candidate> queue = Queue(trial_id, share, First::kLiving, now);
  share.seat = queue.empty() ? std::nullopt : std::optional(queue.front().writer_no);
  share.seat_stream = queue.empty() ? 0 : queue.front().member->stream;
  const bool live = std::any_of(share.writers.begin(), share.writers.end(), [&](WriterNo no) {
    return Lives(members_.at({trial_id, no}), now);
  });
  if (live == share.live) return false;
  share.live = live;
  machine.live_count += live ? 1 : -1;
  return true;
}

void SamplerElection::Settle(const std::string& machine_name, TrialId trial_id, SteadyTime now,
                             Orders& orders) {
  Machine& machine = machines_.at(machine_name);
  const auto share = machine.shares.find(trial_id);
  const bool count_changes = Refresh(machine, trial_id, share->second, now);
  TellShare(machine, trial_id, share->second, now, Pace::kNow, orders);
  if (share->second.writers.empty()) machine.shares.erase(share);
  if (count_changes) {
    for (const auto& [other_id, other] : machine.shares) {
      TellSeated(other_id, other, machine.live_count, orders);
    }
  }
  if (machine.shares.empty()) machines_.erase(machine_name);
}

void SamplerElection::TellShare(const Machine& machine, TrialId trial_id, const Share& share,
                                SteadyTime now, Pace pace, Orders& orders) {
  // First who stops, then who begins.
  if (!share.seat) return;
  const std::vector<Candidate> queue = Queue(trial_id, share, First::kSeated, now);
  NamedGpus before;
  NamedGpus siblings;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    // What an agent's own earlier sampler names is nobody else's.
    const bool is_sibling = i > 0 && queue[i].member->stream != 0 &&
                            queue[i].member->stream == queue[i - 1].member->stream;
    if (!is_sibling) before.Add(std::exchange(siblings, {}));
    siblings.Add(queue[i].member->gpus);
    if (queue[i].seated) continue;
    TellOff(trial_id, queue[i].writer_no, machine.live_count, before, now, pace, orders);
  }
  TellSeated(trial_id, share, machine.live_count, orders);
}

void SamplerElection::TellSeated(TrialId trial_id, const Share& share, std::int32_t live_count,
                                 Orders& orders) {
  for (const WriterNo writer_no : share.writers) {
    const Member& member = members_.at({trial_id, writer_no});
    if (!member.held || !IsSeated(share, writer_no, member)) continue;
    TellOn(trial_id, writer_no, live_count, orders);
  }
}

void SamplerElection::TellOn(TrialId trial_id, WriterNo writer_no, std::int32_t live_count,
                             Orders& orders) {
  Member& member = members_.at({trial_id, writer_no});
  // Its own trial counts, silent or not.
  const std::int32_t shared_with = std::max(live_count, 1);
  if (member.told && member.told->on && member.told->shared_with == shared_with) return;
  member.told = {.on = true, .shared_with = shared_with};
  orders.push_back({trial_id, writer_no, true, shared_with});
}

void SamplerElection::TellOff(TrialId trial_id, WriterNo writer_no, std::int32_t live_count,
                              const NamedGpus& before, SteadyTime now, Pace pace, Orders& orders) {
  Member& member = members_.at({trial_id, writer_no});
  static const NamedGpus kNone;
  const NamedGpus& listed = member.names ? before : kNone;
  Told news{.on = false,
            .shared_with = std::max(live_count, 1),
            .gpus_hash = absl::HashOf(listed.names())};
  // Who does not sample the machine need not know how many share it.
  if (member.told && !member.told->on) {
    if (member.told->gpus_hash == news.gpus_hash) return;
    const bool is_early = now - member.told->gpus_at < options_.gpus_interval;
    if (pace == Pace::kBounded && is_early) return;
    news.gpus_at = now;
  }
  member.told = news;
  orders.push_back({trial_id, writer_no, false, news.shared_with, listed.names()});
}

}  // namespace stepwell
