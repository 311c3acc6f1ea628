#include "server/stranger_watch.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "server/peer_address.h"

namespace stepwell {
namespace {

// How often those who are known are asked whether they are still there: for memory alone.
constexpr absl::Duration kAllSeenEach = absl::Seconds(10);

// A look comes each 25 ms where there are any.
constexpr absl::Duration kStoodStill = absl::Seconds(1);

// Of connections that begin at once, one may be listed after one whose counter is greater.
constexpr std::int64_t kCountersOverlap = 256;

// Of a connection that is gone, about: calls take more than they send. A balancer's that looks whether there is a port sends nothing.
std::int64_t Held(std::int64_t bytes) { return bytes == 0 ? 0 : StrangerWatch::kFewBytes + bytes; }

// As far as it is known by now.
std::int64_t EndTimeUs(const Caller& caller) {
  std::int64_t end = std::numeric_limits<std::int64_t>::max();
  for (const TokenHolder* each = caller.get(); each != nullptr; each = each->of.get()) {
    if (each->expires_time_us != 0) end = std::min(end, each->expires_time_us);
  }
  return end;
}

void Remember(const Caller& caller, std::vector<Caller>& callers) {
  if (std::find(callers.begin(), callers.end(), caller) != callers.end()) return;
  std::erase_if(callers, [](const Caller& each) { return HasEnded(each); });
  if (callers.size() == StrangerWatch::kCallersMax) {
    const auto soonest = std::min_element(
        callers.begin(), callers.end(),
        [](const Caller& a, const Caller& b) { return EndTimeUs(a) < EndTimeUs(b); });
    if (EndTimeUs(caller) < EndTimeUs(*soonest)) return;
    callers.erase(soonest);
  }
  callers.push_back(caller);
}

}  // namespace

std::optional<ConnectionSocket> StrangerWatch::SocketOf(const std::string& end) const {
  if (const auto found = strangers_.find(end); found != strangers_.end()) {
    return found->second.socket;
  }
  if (const auto found = known_.find(end); found != known_.end()) return found->second.socket;
  return std::nullopt;
}

bool StrangerWatch::HasRoom() const {
  if (closing_.size() >= kClosingMax || ClosingBytes() > kClosingBytesMax) return false;
  const absl::MutexLock lock(&mu_);
  return strangers_.size() < kCountMax || !OverShare().empty();
}

const char* StrangerWatch::Add(const std::string& end, const std::string& address,
                               ConnectionSocket socket, SteadyTime now) {
  std::optional<ConnectionSocket> before;
  {
    const absl::MutexLock lock(&mu_);
    before = SocketOf(end);
  }
  for (const Closing& each : closing_) {
    if (each.end == end) before = each.socket;
  }
  if (before && sockets_.StateOf(*before)) return "another one of the same port is there";
  if (const auto rest = rests_.find(address); rest != rests_.end() && now < rest->second) {
    return "too many calls without a token came of this address";
  }
  if (IsClosingMuch(address)) return "much of this address is not yet ended";
  std::optional<ConnectionSocket> ended;
  {
    const absl::MutexLock lock(&mu_);
    known_.erase(end);
    if (const auto gone = strangers_.find(end); gone != strangers_.end()) Erase(gone);
    if (strangers_.size() >= kCountMax) {
      const auto own = count_of_address_.find(address);
      if (own != count_of_address_.end() && own->second >= kShareWhenFull) {
        return "too many connections without a token";
      }
      const std::string most = OverShare();
      if (!most.empty()) {
        EndOldestOf(most, now);
        ended = looked_.ended.back().socket;
      }
    }
    Insert(end, {socket, address, now});
  }
  if (ended) sockets_.Shut(*ended);
  return nullptr;
}

void StrangerWatch::Know(std::string_view peer, const Caller& caller) {
  if (caller == nullptr) return;
  const std::string end = EndOfPeer(peer);
  const absl::MutexLock lock(&mu_);
  if (const auto known = known_.find(end); known != known_.end()) {
    return Remember(caller, known->second.callers);
  }
  const auto found = strangers_.find(end);
  if (found == strangers_.end()) return;
  Stranger stranger = Erase(found);
  known_[end] = {stranger.socket, std::move(stranger.address), {caller}, stranger.counter};
}

StrangerWatch::Looked StrangerWatch::Look(SteadyTime now) {
  std::vector<Seen> seen = ToSee(now);
  for (Seen& each : seen) each.state = sockets_.StateOf(each.socket);
  // A process that stood still has kept strangers from showing anything, and gRPC from freeing.
  const absl::Duration stood = now - std::exchange(look_time_, now);
  const bool has_stood = stood > kStoodStill;
  const std::int64_t freed_bytes = ForgetGone(now, has_stood ? stood : absl::ZeroDuration());
  Looked looked;
  std::size_t shut = 0;
  std::vector<ConnectionSocket> over;
  {
    const absl::MutexLock lock(&mu_);
    shut = looked_.ended.size();  // by Add
    for (const Seen& each : seen) Take(each, now);
    for (const auto& [end, stranger] : strangers_) {
      if (stranger.is_over) over.push_back(stranger.socket);
    }
  }
  // What they sent last is not to be read.
  for (const ConnectionSocket& each : over) sockets_.Shut(each);
  CountCalls();
  {
    const absl::MutexLock lock(&mu_);
    EndForCalls(now);
    CloseOver(now);
    EndEach(now);
    EndForBytes(now);
    EndForRoom(now, has_stood);
    looked = std::exchange(looked_, {});
    looked.freed_bytes += freed_bytes;
  }
  for (; shut < looked.ended.size(); ++shut) sockets_.Shut(looked.ended[shut].socket);
  return looked;
}

absl::Duration StrangerWatch::NextLook() const {
  if (!closing_.empty() || !rests_.empty()) return kLookEach;
  const absl::MutexLock lock(&mu_);
  if (!strangers_.empty()) return kLookEach;
  return known_.empty() ? absl::InfiniteDuration() : kRestEach;
}

std::vector<StrangerWatch::Seen> StrangerWatch::ToSee(SteadyTime now) {
  const absl::MutexLock lock(&mu_);
  std::vector<Seen> seen;
  for (const auto& [end, stranger] : strangers_) seen.push_back({end, stranger.socket});
  if (now - known_looked_ < kRestEach) return seen;
  known_looked_ = now;
  const bool sees_all = now - all_seen_ >= kAllSeenEach;
  if (sees_all) all_seen_ = now;
  for (auto& [end, known] : known_) {
    std::erase_if(known.callers, [](const Caller& each) { return HasEnded(each); });
    if (sees_all || known.callers.empty()) seen.push_back({end, known.socket});
  }
  return seen;
}

void StrangerWatch::Take(const Seen& seen, SteadyTime now) {
  if (const auto found = strangers_.find(seen.end); found != strangers_.end()) {
    Stranger& stranger = found->second;
    if (!seen.state) {
      looked_.freed_bytes += Held(Erase(found).bytes);
      return;
    }
    stranger.bytes = seen.state->bytes_received - stranger.bytes_first;
    stranger.is_over = seen.state->is_over;
    return;
  }
  const auto found = known_.find(seen.end);
  if (found == known_.end()) return;
  // Somebody may have been shown meanwhile.
  const bool is_over = !seen.state || seen.state->is_over;
  if (!is_over && !found->second.callers.empty()) return;
  Stranger stranger{seen.socket, std::move(found->second.address), now};
  stranger.counter = found->second.counter;
  known_.erase(found);
  if (is_over) return;
  stranger.bytes_first = seen.state->bytes_received;
  stranger.calls_first = -1;
  Insert(seen.end, std::move(stranger));
}

void StrangerWatch::CountCalls() {
  std::vector<std::string> ends;
  bool is_new = false;
  {
    const absl::MutexLock lock(&mu_);
    for (const auto& [end, stranger] : strangers_) {
      const bool is_asked =
          stranger.calls_first < 0 || stranger.bytes - stranger.bytes_counted >= kCallsEachBytes;
      if (!is_asked) continue;
      is_new = is_new || stranger.counter == 0;
      ends.push_back(end);
    }
  }
  if (is_new) ListCounters();
  for (const std::string& end : ends) {
    std::int64_t counter = 0;
    {
      const absl::MutexLock lock(&mu_);
      const auto found = strangers_.find(end);
      if (found != strangers_.end()) counter = found->second.counter;
    }
    if (counter == 0) continue;
    // gRPC is asked without the lock, which its threads take.
    const std::optional<std::int64_t> calls = calls_.Begun(counter);
    const absl::MutexLock lock(&mu_);
    const auto found = strangers_.find(end);
    if (found == strangers_.end() || !calls.has_value()) continue;
    Stranger& stranger = found->second;
    if (stranger.calls_first < 0) stranger.calls_first = calls.value();
    stranger.calls = calls.value() - stranger.calls_first;
    stranger.bytes_counted = stranger.bytes;
  }
}

void StrangerWatch::ListCounters() {
  const std::vector<CallCounter> counters =
      calls_.Since(std::max<std::int64_t>(0, counter_seen_ - kCountersOverlap));
  const absl::MutexLock lock(&mu_);
  for (const CallCounter& each : counters) {
    counter_seen_ = std::max(counter_seen_, each.id);
    if (const auto found = strangers_.find(each.end); found != strangers_.end()) {
      found->second.counter = each.id;
    } else if (const auto known = known_.find(each.end); known != known_.end()) {
      known->second.counter = each.id;
    }
  }
}

void StrangerWatch::EndEach(SteadyTime now) {
  for (auto at = strangers_.begin(); at != strangers_.end();) {
    const auto stranger = at++;
    if (stranger->second.bytes > kBytesMax) {
      End(stranger, "no token was shown in what came", now);
    } else if (now - stranger->second.since >= kTimeMax) {
      End(stranger, "no token was shown in time", now);
    }
  }
}

void StrangerWatch::EndForCalls(SteadyTime now) {
  absl::erase_if(rests_, [&](const auto& each) { return now >= each.second; });
  std::map<std::string, int> count_of_address;
  std::set<std::string> floods;
  for (const auto& [end, stranger] : strangers_) {
    if (stranger.calls <= kCallsMax) continue;
    if (++count_of_address[stranger.address] >= kCallsCrowd || stranger.calls > kCallsFlood) {
      floods.insert(stranger.address);
    }
  }
  for (const std::string& each : floods) rests_[each] = now + kCallsRest;
  for (auto at = strangers_.begin(); at != strangers_.end();) {
    const auto stranger = at++;
    const Stranger& each = stranger->second;
    const bool is_of_flood = each.bytes >= kCallsEachBytes && floods.contains(each.address);
    if (!each.is_over && (each.calls > kCallsMax || is_of_flood)) {
      End(stranger, "no token was shown in so many calls", now);
    }
  }
}

void StrangerWatch::CloseOver(SteadyTime now) {
  for (auto at = strangers_.begin(); at != strangers_.end();) {
    const auto stranger = at++;
    if (!stranger->second.is_over) continue;
    const std::string end = stranger->first;
    Close(end, Erase(stranger), now);
  }
}

void StrangerWatch::EndForBytes(SteadyTime now) {
  const std::int64_t closing_beyond = std::max<std::int64_t>(0, ClosingBytes() - kManyBytesMax);
  const std::int64_t bytes_max = std::max<std::int64_t>(0, kManyBytesMax - closing_beyond);
  std::int64_t bytes = 0;
  std::map<std::string, std::int64_t> bytes_of_address;
  for (const auto& [end, stranger] : strangers_) {
    bytes += stranger.beyond_few();
    bytes_of_address[stranger.address] += stranger.beyond_few();
  }
  while (bytes > bytes_max) {
    const auto most =
        std::max_element(bytes_of_address.begin(), bytes_of_address.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    auto largest = strangers_.end();
    for (auto at = strangers_.begin(); at != strangers_.end(); ++at) {
      if (at->second.address != most->first) continue;
      if (largest == strangers_.end() || at->second.bytes > largest->second.bytes) largest = at;
    }
    const std::int64_t freed = largest->second.beyond_few();
    bytes -= freed;
    most->second -= freed;
    End(largest, "too much comes on connections without a token", now);
  }
}

void StrangerWatch::EndForRoom(SteadyTime now, bool has_stood) {
  if (strangers_.size() < kCountMax || has_stood) return;
  std::vector<std::pair<SteadyTime, std::string>> by_age;
  for (const auto& [end, stranger] : strangers_) {
    if (now - stranger.since >= kTimeWhenFull) by_age.emplace_back(stranger.since, end);
  }
  std::sort(by_age.begin(), by_age.end());
  // Others' are not for somebody's who has too many.
  const std::size_t share = OverShare().empty() ? 0 : kShareWhenFull;
  for (const auto& [since, end] : by_age) {
    if (strangers_.size() + kRoomEach <= kCountMax) return;
    const auto found = strangers_.find(end);
    if (count_of_address_.at(found->second.address) <= share) continue;
    End(found, "too many connections without a token", now);
  }
}

void StrangerWatch::Insert(const std::string& end, Stranger stranger) {
  ++count_of_address_[stranger.address];
  strangers_.insert_or_assign(end, std::move(stranger));
}

StrangerWatch::Stranger StrangerWatch::Erase(Strangers::iterator stranger) {
  const auto count = count_of_address_.find(stranger->second.address);
  if (--count->second == 0) count_of_address_.erase(count);
  Stranger erased = std::move(stranger->second);
  strangers_.erase(stranger);
  return erased;
}

void StrangerWatch::Close(const std::string& end, Stranger stranger, SteadyTime now) {
  closing_.push_back({end, stranger.socket, std::move(stranger.address), stranger.bytes, now});
}

std::int64_t StrangerWatch::ForgetGone(SteadyTime now, absl::Duration stood) {
  std::int64_t freed_bytes = 0;
  std::erase_if(closing_, [&](Closing& each) {
    each.since = std::min(now, each.since + stood);
    const bool is_gone = !sockets_.StateOf(each.socket).has_value();
    if (is_gone) freed_bytes += Held(each.bytes);
    return is_gone || now - each.since >= kClosingTimeMax;
  });
  return freed_bytes;
}

bool StrangerWatch::IsClosingMuch(const std::string& address) const {
  std::size_t count = 0;
  std::int64_t bytes = 0;
  for (const Closing& each : closing_) {
    if (each.address != address) continue;
    ++count;
    bytes += BeyondFew(each.bytes);
  }
  return count >= kClosingShare || bytes > kClosingShareBytes;
}

std::int64_t StrangerWatch::ClosingBytes() const {
  std::int64_t bytes = 0;
  for (const Closing& each : closing_) bytes += BeyondFew(each.bytes);
  return bytes;
}

void StrangerWatch::End(Strangers::iterator stranger, const char* why, SteadyTime now) {
  const std::string end = stranger->first;
  Stranger ended = Erase(stranger);
  looked_.ended.push_back({ended.socket, ended.address, why});
  Close(end, std::move(ended), now);
}

std::string StrangerWatch::OverShare() const {
  const auto most =
      std::max_element(count_of_address_.begin(), count_of_address_.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == count_of_address_.end() || most->second <= kShareWhenFull ? "" : most->first;
}

void StrangerWatch::EndOldestOf(const std::string& address, SteadyTime now) {
  auto oldest = strangers_.end();
  for (auto at = strangers_.begin(); at != strangers_.end(); ++at) {
    if (at->second.address != address) continue;
    if (oldest == strangers_.end() || at->second.since < oldest->second.since) oldest = at;
  }
  End(oldest, "too many connections without a token", now);
}

}  // namespace stepwell
