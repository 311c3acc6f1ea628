#include "client/agent/send_window.h"

#include <algorithm>

#include "base/check.h"

namespace stepwell::agent {

void SendWindow::Connect() {
  if (closed()) return;
  state_ = State::kMustOpen;
  sent_ = 0;
  Rewind(acked_ + 1);
}

void SendWindow::Disconnect() {
  if (closed()) return;
  state_ = State::kDisconnected;
  Rewind(acked_ + 1);
}

// A Close sent before is in doubt as the chunks are.
void SendWindow::Rewind(std::uint64_t next) {
  next_ = next;
  inflight_.clear();
  inflight_bytes_ = 0;
  close_sent_ = false;
}

SendWindow::Action SendWindow::Next(std::uint64_t last_sequence, bool close_wanted) const {
  switch (state_) {
    case State::kDisconnected:
    case State::kOpening:
    case State::kRefused:
    case State::kClosed:
      return {};
    case State::kMustOpen:
      return {ActionKind::kOpen, 0};
    case State::kRetired:
      return close_sent_ ? Action{} : Action{ActionKind::kClose, acked_};
    case State::kOpen:
      break;
  }
  if (next_ <= last_sequence) return {ActionKind::kSend, next_};
  if (close_wanted && !close_sent_) return {ActionKind::kClose, last_sequence};
  return {};
}

bool SendWindow::Fits(std::int64_t bytes) const {
  if (credit_bytes_ <= 0) return false;
  return inflight_.empty() || inflight_bytes_ + bytes <= credit_bytes_;
}

void SendWindow::OnSent(std::uint64_t first_sequence, std::uint64_t last_sequence,
                        std::int64_t bytes) {
  STEPWELL_CHECK(first_sequence == next_ && last_sequence >= first_sequence);
  inflight_.push_back({last_sequence, bytes});
  inflight_bytes_ += bytes;
  next_ = last_sequence + 1;
  sent_ = std::max(sent_, last_sequence);
}

SendWindow::Resume SendWindow::OnOpened(const Opened& opened, std::uint64_t sent_sequence,
                                        std::optional<std::uint32_t> held_crc32c) {
  const std::uint64_t acked_before = acked_;
  credit_bytes_ = opened.credit_bytes;
  acked_ = opened.committed_sequence;
  Rewind(acked_ + 1);
  const bool unknown = opened.committed_sequence > sent_sequence;
  const bool is_compared = opened.committed_crc32c != 0 && held_crc32c.has_value();
  const bool differs = is_compared && *held_crc32c != opened.committed_crc32c;
  // What nobody sent of this spool, and is the same: a copy of it did.
  if (retired_ || differs || (unknown && !is_compared)) {
    retired_ = true;
    only_asks_ = false;
    state_ = State::kRetired;
    return Resume::kRetire;
  }
  state_ = State::kOpen;
  if (opened.committed_sequence >= acked_before) return Resume::kGoOn;
  only_asks_ = false;
  return Resume::kReplay;
}

bool SendWindow::OnAck(std::uint64_t committed_sequence, std::int64_t credit_bytes, bool closed) {
  if (state_ != State::kOpen && state_ != State::kRetired) return true;
  credit_bytes_ = credit_bytes;
  if (state_ == State::kOpen) {
    if (committed_sequence > std::max(sent_, acked_)) return false;
    acked_ = std::max(acked_, committed_sequence);
    next_ = std::max(next_, acked_ + 1);
    while (!inflight_.empty() && inflight_.front().last_sequence <= acked_) {
      inflight_bytes_ -= inflight_.front().bytes;
      inflight_.pop_front();
    }
  }
  if (closed && close_sent_) state_ = State::kClosed;
  return true;
}

void SendWindow::OnHole(std::uint64_t expected) {
  if (state_ != State::kOpen || expected == 0) return;
  // Behind what is acked lies what the master promised to hold: only Opened may take that back.
  Rewind(std::clamp(expected, acked_ + 1, std::max(next_, acked_ + 1)));
}

void SendWindow::OnNotTaken() {
  if (state_ == State::kOpen) Rewind(acked_ + 1);
}

void SendWindow::TellAgain() {
  if (!closed()) return;
  only_asks_ = true;
  state_ = State::kMustOpen;
  Rewind(acked_ + 1);
}

void SendWindow::OnMayReopen() {
  if (state_ == State::kRefused) Connect();
}

}  // namespace stepwell::agent
