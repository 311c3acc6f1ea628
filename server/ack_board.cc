#include "server/ack_board.h"

#include <algorithm>
#include <utility>

#include "server/limits.h"

namespace stepwell {
namespace {

// Adds `more` to `held`: neighbours with one reason become one range, and so does all that comes
// after there are too many.
void AddRejection(std::vector<pb::Rejection>& held, pb::Rejection more) {
  const bool full = held.size() >= kRejectionsPerAckMax;
  if (!held.empty()) {
    pb::Rejection& last = held.back();
    const bool joins =
        last.reason() == more.reason() && last.last_sequence() + 1 == more.first_sequence();
    if (joins || full) {
      last.set_last_sequence(more.last_sequence());
      last.set_sample_count(last.sample_count() + more.sample_count());
      return;
    }
  }
  held.push_back(std::move(more));
}

}  // namespace

void AckBoard::Post(pb::StreamChunksResponse message) {
  {
    absl::MutexLock lock(&mu_);
    if (closed_) return;
    PushLocked(std::move(message));
  }
  on_post_();
}

void AckBoard::PushLocked(pb::StreamChunksResponse message) {
  const std::size_t bytes = kMessageOwnBytes + message.ByteSizeLong();
  message_bytes_ += bytes;
  messages_.push_back({std::move(message), bytes});
}

void AckBoard::HoldAck(const Uuid& writer, Ack ack) {
  absl::MutexLock lock(&mu_);
  if (closed_) return;
  Ack& held = acks_[writer];
  held.committed_sequence = std::max(held.committed_sequence, ack.committed_sequence);
  held.credit_bytes = ack.credit_bytes;
  held.closed = held.closed || ack.closed;
  for (pb::Rejection& rejection : ack.rejections) {
    AddRejection(held.rejections, std::move(rejection));
  }
}

void AckBoard::Tell() {
  {
    absl::MutexLock lock(&mu_);
    if (closed_) return;
  }
  on_post_();
}

void AckBoard::Expect(const Uuid& writer, std::uint64_t generation) {
  absl::MutexLock lock(&mu_);
  acks_.erase(writer);
  ErasePlaceLocked(writer);
  if (!closed_) places_[writer].generation = generation;
}

void AckBoard::PostOpened(const Uuid& writer, pb::StreamChunksResponse opened) {
  {
    absl::MutexLock lock(&mu_);
    if (closed_) return;
    Place& place = places_[writer];
    place.opened = true;
    for (auto& [kind, wanted] : place.wanted) {
      if (!wanted.waiting) continue;
      *opened.mutable_opened()->add_directives() = *std::exchange(wanted.waiting, std::nullopt);
    }
    // In the same hold: a directive that came between would be taken for one of before.
    PushLocked(std::move(opened));
  }
  on_post_();
}

bool AckBoard::PostDirective(const Uuid& writer, std::uint64_t version, pb::Directive directive) {
  {
    absl::MutexLock lock(&mu_);
    const auto place = places_.find(writer);
    if (closed_ || place == places_.end()) return false;
    const Kind kind = directive.directive_case();
    Wanted& wanted = place->second.wanted[kind];
    // Who asked later may be here first.
    if (version <= wanted.version) return true;
    wanted = {version, std::move(directive)};
    if (!place->second.opened) return true;
    directives_.emplace(writer, kind);
  }
  on_post_();
  return true;
}

void AckBoard::DropDirectives(const Uuid& writer, std::uint64_t generation) {
  absl::MutexLock lock(&mu_);
  const auto place = places_.find(writer);
  // It may have been opened here anew meanwhile.
  if (place != places_.end() && place->second.generation == generation) ErasePlaceLocked(writer);
}

void AckBoard::ErasePlaceLocked(const Uuid& writer) {
  places_.erase(writer);
  std::erase_if(directives_, [&](const auto& waiting) { return waiting.first == writer; });
}

bool AckBoard::TakeDirectiveLocked(pb::StreamChunksResponse& out) {
  if (directives_.empty()) return false;
  const auto [writer, kind] = *directives_.begin();
  directives_.erase(directives_.begin());
  out.Clear();
  Wanted& wanted = places_.at(writer).wanted.at(kind);
  *out.mutable_directive() = *std::exchange(wanted.waiting, std::nullopt);
  return true;
}

bool AckBoard::TakeMessage(pb::StreamChunksResponse& out) {
  absl::MutexLock lock(&mu_);
  return TakeMessageLocked(out);
}

bool AckBoard::TakeMessageLocked(pb::StreamChunksResponse& out) {
  if (messages_.empty()) return false;
  out = std::move(messages_.front().message);
  message_bytes_ -= messages_.front().bytes;
  messages_.pop_front();
  return true;
}

bool AckBoard::TakeNext(pb::StreamChunksResponse& out) {
  // In one hold: a directive that comes in between would overtake the Opened that came with it.
  absl::MutexLock lock(&mu_);
  if (TakeMessageLocked(out)) return true;
  if (TakeDirectiveLocked(out)) return true;
  out.Clear();
  if (acks_.empty()) return false;
  auto node = acks_.extract(acks_.begin());
  pb::Ack& ack = *out.mutable_ack();
  ack.set_writer(node.key().ToBytes());
  ack.set_committed_sequence(node.mapped().committed_sequence);
  ack.set_credit_bytes(node.mapped().credit_bytes);
  ack.set_closed(node.mapped().closed);
  for (pb::Rejection& rejection : node.mapped().rejections) {
    *ack.add_rejections() = std::move(rejection);
  }
  return true;
}

bool AckBoard::empty() const {
  absl::MutexLock lock(&mu_);
  return messages_.empty() && acks_.empty() && directives_.empty();
}

bool AckBoard::WaitForRoom(SteadyTime deadline) {
  const auto has_room = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closed_ || (messages_.size() < kMessageCountMax && message_bytes_ < kMessageBytesMax);
  };
  absl::MutexLock lock(&mu_);
  return mu_.AwaitWithTimeout(absl::Condition(&has_room), deadline.Left()) && !closed_;
}

void AckBoard::Close() {
  absl::MutexLock lock(&mu_);
  closed_ = true;
  messages_.clear();
  message_bytes_ = 0;
  acks_.clear();
  places_.clear();
  directives_.clear();
}

}  // namespace stepwell
