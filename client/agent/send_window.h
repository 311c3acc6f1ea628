// SendWindow: what one writer may send next, and what each answer of the master means for it. Pure:
// no time of its own, no stream, no disk. Confined to its caller's lock.
//
//   window.Connect();
//   switch (window.Next(spool_last, close).kind) ...
//
// Chunks leave in sequence, once per connection, within the master's credit; whatever the
// connection does, the next one goes on behind what the master says is committed.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace stepwell::agent {

class SendWindow {
 public:
  enum class State {
    kDisconnected,
    kMustOpen,
    kOpening,
    kOpen,
    kRefused,  // terminal: nothing goes out until the next connection
    kRetired,  // the sequences must not go on; only Close is left
    // The master holds all of it, Close included. Stays so across connections: opening it again
    // would make its trial run again.
    kClosed,
  };
  enum class ActionKind { kNothing, kOpen, kSend, kClose };
  struct Action {
    ActionKind kind = ActionKind::kNothing;
    // kSend: what to read from the spool.
    std::uint64_t sequence = 0;
  };
  // What an Opened means.
  enum class Resume {
    kGoOn,
    kReplay,  // the master lost what it had acked: the tail goes out again
    // The master holds sequences that nobody sent of this spool, and that cannot be compared with its own, or other bytes
    // under one.
    kRetire,
  };

  explicit SendWindow(std::uint64_t acked_sequence) : acked_(acked_sequence) {}

  // The next Opened retires it, whatever it says.
  void Retire() { retired_ = true; }
  // A new connection: all that was in flight is in doubt and will be told by Opened.
  void Connect();
  void Disconnect();

  // `last_sequence` = newest in the spool, `close_wanted` = nothing will follow it.
  Action Next(std::uint64_t last_sequence, bool close_wanted) const;
  // Whether a chunk of that size fits the credit. One always may go while none is in flight and
  // there is any credit, however large it is.
  bool Fits(std::int64_t bytes) const;
  void OnOpenSent() { state_ = State::kOpening; }
  // REQUIRES: `first_sequence` is what Next said. A gap covers more than one.
  void OnSent(std::uint64_t first_sequence, std::uint64_t last_sequence, std::int64_t bytes);
  void OnCloseSent() { close_sent_ = true; }

  struct Opened {
    std::uint64_t committed_sequence = 0;
    // 0 = unknown.
    std::uint32_t committed_crc32c = 0;
    std::int64_t credit_bytes = 0;
  };
  // `sent_sequence` = newest that this agent or an earlier one may have sent of the spool. `held_crc32c` is of the frame that
  // the spool holds, or held, under committed_sequence, where that is known.
  Resume OnOpened(const Opened& opened, std::uint64_t sent_sequence,
                  std::optional<std::uint32_t> held_crc32c);
  // False where the master acks what was never sent: its word is then not taken.
  bool OnAck(std::uint64_t committed_sequence, std::int64_t credit_bytes, bool closed);
  // The master waits for `expected`: sends again from there.
  void OnHole(std::uint64_t expected);
  // A message with a sequence was not taken: sends again from behind the last ack.
  void OnNotTaken();
  void OnNotOpen() { state_ = State::kMustOpen; }
  // One that only asks again (TellAgain), and that no master was seen to lack anything of, is closed as it was.
  void OnRefused() { state_ = only_asks_ ? State::kClosed : State::kRefused; }
  // The master may have lost what it acked: a closed writer opens again, and Opened tells. No answer at all (its trial is
  // archived or deleted, its token has ended) changes nothing.
  void TellAgain();
  // Opening again may help: after a refusal's time has passed.
  void OnMayReopen();

  State state() const { return state_; }
  std::uint64_t acked() const { return acked_; }
  std::int64_t inflight_bytes() const { return inflight_bytes_; }
  bool awaits_answer() const {
    return state_ == State::kOpening || !inflight_.empty() || (close_sent_ && !closed());
  }
  bool closed() const { return state_ == State::kClosed; }
  bool is_open() const { return state_ == State::kOpen || state_ == State::kRetired; }
  // The master holds it open on this connection, or was asked to.
  bool has_place() const { return is_open() || state_ == State::kOpening; }
  // Its Close was sent on this connection, or is taken: nothing else of it matters to the master.
  bool is_closing() const { return closed() || (is_open() && close_sent_); }
  // Stays true when its Close has been taken.
  bool retired() const { return retired_; }

 private:
  struct Inflight {
    std::uint64_t last_sequence;
    std::int64_t bytes;
  };
  void Rewind(std::uint64_t next);

  State state_ = State::kDisconnected;
  std::uint64_t acked_ = 0;
  std::uint64_t next_ = 1;
  // Highest on this connection: next_ goes back, what the master may ack does not.
  std::uint64_t sent_ = 0;
  std::int64_t credit_bytes_ = 0;
  std::int64_t inflight_bytes_ = 0;
  std::deque<Inflight> inflight_;
  bool close_sent_ = false;
  bool retired_ = false;
  // It was closed, and opens to ask whether the master still has all.
  bool only_asks_ = false;
};

}  // namespace stepwell::agent
