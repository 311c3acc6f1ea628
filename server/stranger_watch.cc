#include "server/stranger_watch.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "server/peer_address.h"

namespace stepwell {
namespace {

// How often those who are known are asked whether they are still there: for memory alone.
constexpr absl::Duration kAllSeenEach = absl::Seconds(10);

}  // namespace

void StrangerWatch::Add(const std::string& end, const std::string& address, ConnectionSocket socket,
                        SteadyTime now) {
  const absl::MutexLock lock(&mu_);
  Entry& entry = entries_[end];
  entry = Entry();
  entry.socket = socket;
  entry.address = address;
  entry.since = now;
  // Until the next look counts them.
  ++stranger_count_;
}

void StrangerWatch::Know(std::string_view peer, const Caller& caller) {
  if (caller == nullptr) return;
  const std::string end = EndOfPeer(peer);
  const absl::MutexLock lock(&mu_);
  const auto found = entries_.find(end);
  if (found == entries_.end()) return;
  std::vector<Caller>& callers = found->second.callers;
  if (std::find(callers.begin(), callers.end(), caller) != callers.end()) return;
  std::erase_if(callers, [](const Caller& each) { return HasEnded(each); });
  if (callers.size() == kCallersMax) callers.erase(callers.begin());
  callers.push_back(caller);
  found->second.is_stranger = false;
}

std::vector<StrangerWatch::Ended> StrangerWatch::Look(SteadyTime now) {
  std::vector<Seen> seen = ToSee(now);
  for (Seen& each : seen) each.bytes = sockets_.BytesReceived(each.socket);
  std::vector<Ended> ended;
  {
    const absl::MutexLock lock(&mu_);
    Take(seen, now);
    ended = TakeOut(now);
  }
  for (const Ended& each : ended) sockets_.Shut(each.socket);
  return ended;
}

absl::Duration StrangerWatch::NextLook() const {
  const absl::MutexLock lock(&mu_);
  if (entries_.empty()) return absl::InfiniteDuration();
  return stranger_count_ > 0 ? kLookEach : kRestEach;
}

std::vector<StrangerWatch::Seen> StrangerWatch::ToSee(SteadyTime now) {
  const absl::MutexLock lock(&mu_);
  const bool sees_all = now - all_seen_ >= kAllSeenEach;
  if (sees_all) all_seen_ = now;
  stranger_count_ = 0;
  std::vector<Seen> seen;
  for (auto& [end, entry] : entries_) {
    std::erase_if(entry.callers, [](const Caller& each) { return HasEnded(each); });
    if (entry.callers.empty()) ++stranger_count_;
    if (sees_all || entry.callers.empty()) seen.push_back({end, entry.socket, {}});
  }
  return seen;
}

void StrangerWatch::Take(const std::vector<Seen>& seen, SteadyTime now) {
  for (const Seen& each : seen) {
    const auto found = entries_.find(each.end);
    // A connection came meanwhile whose other end is the same.
    if (found == entries_.end() || found->second.socket != each.socket) continue;
    Entry& entry = found->second;
    if (!each.bytes) {
      entries_.erase(found);
      continue;
    }
    const bool was_stranger = std::exchange(entry.is_stranger, entry.callers.empty());
    if (!was_stranger) {
      entry.since = now;
      entry.bytes_first = *each.bytes;
    }
    entry.bytes = *each.bytes - entry.bytes_first;
  }
}

std::vector<StrangerWatch::Ended> StrangerWatch::TakeOut(SteadyTime now) {
  std::vector<std::pair<std::int64_t, std::string>> strangers;
  std::int64_t many_bytes = 0;
  const auto beyond_few = [](std::int64_t bytes) {
    return std::max<std::int64_t>(0, bytes - kFewBytes);
  };
  for (const auto& [end, entry] : entries_) {
    if (!entry.is_stranger) continue;
    strangers.emplace_back(entry.bytes, end);
    many_bytes += beyond_few(entry.bytes);
  }
  // Who sent most goes first.
  std::sort(strangers.begin(), strangers.end(), std::greater<>());
  std::vector<Ended> ended;
  for (const auto& [bytes, end] : strangers) {
    const auto found = entries_.find(end);
    const Entry& entry = found->second;
    const char* why = nullptr;
    if (bytes > kBytesMax) {
      why = "no token was shown in what came";
    } else if (many_bytes > kManyBytesMax) {
      why = "too much comes on connections without a token";
    } else if (now - entry.since >= kTimeMax) {
      why = "no token was shown in time";
    } else {
      continue;
    }
    many_bytes -= beyond_few(bytes);
    ended.push_back({entry.socket, entry.address, why});
    entries_.erase(found);
  }
  return ended;
}

}  // namespace stepwell
