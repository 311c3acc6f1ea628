#include "client/agent/send_window.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>

#include "tests/unit/agent/test_seed.h"

namespace stepwell::agent {
namespace {

using State = SendWindow::State;
using Kind = SendWindow::ActionKind;
using Resume = SendWindow::Resume;

SendWindow Opened(std::uint64_t acked, SendWindow::Opened opened, std::uint64_t last) {
  SendWindow window(acked);
  window.Connect();
  EXPECT_EQ(window.Next(last, false).kind, Kind::kOpen);
  window.OnOpenSent();
  window.OnOpened(opened, last, std::nullopt);
  return window;
}

struct OpenedRow {
  const char* name;
  std::uint64_t acked;
  SendWindow::Opened opened;
  std::uint64_t last;
  std::optional<std::uint32_t> held_crc;
  Resume resume;
  State state;
  std::uint64_t next;  // 0 = nothing to send
};

const OpenedRow kOpenedRows[] = {
    {"fresh", 0, {0, 0, 100}, 0, {}, Resume::kGoOn, State::kOpen, 0},
    {"fresh with frames", 0, {0, 0, 100}, 3, {}, Resume::kGoOn, State::kOpen, 1},
    {"goes on behind committed", 2, {5, 0xaa, 100}, 9, 0xaa, Resume::kGoOn, State::kOpen, 6},
    {"master older: replays", 7, {4, 0xaa, 100}, 9, 0xaa, Resume::kReplay, State::kOpen, 5},
    {"master wiped: replays all", 7, {0, 0, 100}, 9, {}, Resume::kReplay, State::kOpen, 1},
    {"committed behind the spool: retires",
     2,
     {12, 0xaa, 100},
     9,
     {},
     Resume::kRetire,
     State::kRetired,
     0},
    {"other bytes under it: retires",
     2,
     {5, 0xaa, 100},
     9,
     0xbb,
     Resume::kRetire,
     State::kRetired,
     0},
    {"checksum unknown to the master: goes on",
     2,
     {5, 0, 100},
     9,
     0xbb,
     Resume::kGoOn,
     State::kOpen,
     6},
    {"frame no longer held: goes on", 5, {5, 0xaa, 100}, 9, {}, Resume::kGoOn, State::kOpen, 6},
};

TEST(SendWindowTest, AgentRule03_OpenedDecidesHowTheWriterGoesOn) {
  for (const OpenedRow& row : kOpenedRows) {
    SCOPED_TRACE(row.name);
    SendWindow window(row.acked);
    window.Connect();
    window.OnOpenSent();
    EXPECT_EQ(window.OnOpened(row.opened, row.last, row.held_crc), row.resume);
    EXPECT_EQ(window.state(), row.state);
    const SendWindow::Action action = window.Next(row.last, false);
    if (row.state == State::kRetired) {
      EXPECT_EQ(action.kind, Kind::kClose);
      EXPECT_EQ(action.sequence, row.opened.committed_sequence);
    } else {
      EXPECT_EQ(action.kind, row.next == 0 ? Kind::kNothing : Kind::kSend);
      EXPECT_EQ(action.sequence, row.next);
    }
  }
}

TEST(SendWindowTest, CreditBoundsWhatIsInFlight) {
  SendWindow window = Opened(0, {0, 0, 100}, 5);
  EXPECT_TRUE(window.Fits(1000));  // one may always go, however large
  window.OnSent(1, 1, 60);
  EXPECT_TRUE(window.Fits(40));
  EXPECT_FALSE(window.Fits(41));
  window.OnSent(2, 2, 40);
  EXPECT_FALSE(window.Fits(1));
  EXPECT_TRUE(window.OnAck(1, 100, false));
  EXPECT_EQ(window.inflight_bytes(), 40);
  EXPECT_TRUE(window.Fits(60));
  EXPECT_TRUE(window.OnAck(2, 0, false));
  EXPECT_FALSE(window.Fits(1));  // no credit: wait for the next ack
  EXPECT_TRUE(window.OnAck(2, 100, false));
  EXPECT_TRUE(window.Fits(1));
}

TEST(SendWindowTest, CloseIsSentOnceBehindTheLastFrameAndEndsIt) {
  SendWindow window = Opened(0, {0, 0, 100}, 1);
  EXPECT_EQ(window.Next(1, true).kind, Kind::kSend);
  window.OnSent(1, 1, 10);
  const SendWindow::Action close = window.Next(1, true);
  EXPECT_EQ(close.kind, Kind::kClose);
  EXPECT_EQ(close.sequence, 1u);
  window.OnCloseSent();
  EXPECT_EQ(window.Next(1, true).kind, Kind::kNothing);
  EXPECT_TRUE(window.OnAck(1, 100, false));
  EXPECT_FALSE(window.closed());
  EXPECT_TRUE(window.OnAck(1, 100, true));
  EXPECT_TRUE(window.closed());
  EXPECT_EQ(window.Next(1, true).kind, Kind::kNothing);
}

TEST(SendWindowTest, AReconnectSendsAgainWhatWasInDoubtCloseIncluded) {
  SendWindow window = Opened(0, {0, 0, 100}, 2);
  window.OnSent(1, 1, 10);
  window.OnSent(2, 2, 10);
  window.OnCloseSent();
  window.Disconnect();
  EXPECT_EQ(window.Next(2, true).kind, Kind::kNothing);
  window.Connect();
  window.OnOpenSent();
  window.OnOpened({1, 0, 100}, 2, std::nullopt);
  EXPECT_EQ(window.Next(2, true).sequence, 2u);
  window.OnSent(2, 2, 10);
  EXPECT_EQ(window.Next(2, true).kind, Kind::kClose);
}

// What a copy of the spool sent is in this one, too: sent again by a successor it would be stored twice.
TEST(SendWindowTest, WhatItNeverSentIsItsOwnWhereItIsTheSame) {
  struct Row {
    std::optional<std::uint32_t> held;
    Resume resume;
  };
  for (const Row& row :
       {Row{7, Resume::kGoOn}, Row{8, Resume::kRetire}, Row{{}, Resume::kRetire}}) {
    SendWindow window(10);
    window.Connect();
    window.OnOpenSent();
    EXPECT_EQ(window.OnOpened({31, 7, 100}, 10, row.held), row.resume);
  }
}

TEST(SendWindowTest, AClosedWriterRestsUntilTheMasterMayHaveLostIt) {
  SendWindow window = Opened(0, {0, 0, 100}, 1);
  window.OnSent(1, 1, 10);
  window.OnCloseSent();
  window.OnAck(1, 100, true);
  window.Disconnect();
  window.Connect();
  EXPECT_TRUE(window.closed());
  EXPECT_FALSE(window.awaits_answer());
  EXPECT_EQ(window.Next(1, true).kind, Kind::kNothing);
  window.TellAgain();
  EXPECT_EQ(window.Next(1, true).kind, Kind::kOpen);
  window.OnOpenSent();
  EXPECT_EQ(window.OnOpened({0, 0, 100}, 1, std::nullopt), Resume::kReplay);
  EXPECT_EQ(window.Next(1, true).sequence, 1u);
  window.OnSent(1, 1, 10);
  EXPECT_EQ(window.Next(1, true).kind, Kind::kClose);
}

SendWindow ClosedAndAskingAgain() {
  SendWindow window = Opened(0, {0, 0, 100}, 1);
  window.OnSent(1, 1, 10);
  window.OnCloseSent();
  window.OnAck(1, 100, true);
  window.TellAgain();
  return window;
}

TEST(SendWindowTest, AClosedWriterThatOnlyAskedIsClosedAfterARefusal) {
  SendWindow window = ClosedAndAskingAgain();
  window.OnOpenSent();
  window.OnRefused();
  EXPECT_TRUE(window.closed());
  EXPECT_EQ(window.Next(1, true).kind, Kind::kNothing);
  window.TellAgain();
  EXPECT_EQ(window.Next(1, true).kind, Kind::kOpen) << "the next master may be asked";
  window.Disconnect();
  window.Connect();
  window.OnOpenSent();
  window.OnRefused();
  EXPECT_TRUE(window.closed());
}

TEST(SendWindowTest, OneWhoseMasterHasAllIsClosedThoughItsCloseIsRefused) {
  SendWindow window = ClosedAndAskingAgain();
  window.OnOpenSent();
  EXPECT_EQ(window.OnOpened({1, 0, 100}, 1, std::nullopt), Resume::kGoOn);
  window.OnCloseSent();
  window.OnRefused();
  EXPECT_TRUE(window.closed());
}

TEST(SendWindowTest, OneWhoseMasterLacksSomethingIsRefused) {
  SendWindow window = ClosedAndAskingAgain();
  window.OnOpenSent();
  EXPECT_EQ(window.OnOpened({0, 0, 100}, 1, std::nullopt), Resume::kReplay);
  window.OnRefused();
  EXPECT_EQ(window.state(), State::kRefused);
}

TEST(SendWindowTest, OnlyAClosedWriterIsToldAgain) {
  SendWindow window = Opened(0, {0, 0, 100}, 1);
  window.TellAgain();
  EXPECT_EQ(window.state(), State::kOpen);
}

TEST(SendWindowTest, AHoleIsSentAgainButNeverBehindTheAck) {
  SendWindow window = Opened(0, {0, 0, 100}, 9);
  for (std::uint64_t sequence = 1; sequence <= 5; ++sequence) window.OnSent(sequence, sequence, 1);
  EXPECT_TRUE(window.OnAck(2, 100, false));
  window.OnHole(4);
  EXPECT_EQ(window.Next(9, false).sequence, 4u);
  window.OnHole(1);
  EXPECT_EQ(window.Next(9, false).sequence, 3u);
}

TEST(SendWindowTest, DoesNotBelieveAnAckOfWhatWasNeverSent) {
  SendWindow window = Opened(0, {0, 0, 100}, 9);
  window.OnSent(1, 1, 1);
  EXPECT_FALSE(window.OnAck(2, 100, false));
  EXPECT_EQ(window.acked(), 0u);
}

// What was sent on this connection counts, not where a refusal or a hole has sent the window back to.
TEST(SendWindowTest, BelievesAnAckOfWhatWasSentBeforeItWentBack) {
  SendWindow window = Opened(0, {0, 0, 100}, 9);
  for (std::uint64_t sequence = 1; sequence <= 5; ++sequence) window.OnSent(sequence, sequence, 1);
  window.OnNotTaken();
  EXPECT_EQ(window.Next(9, false).sequence, 1u);
  EXPECT_TRUE(window.OnAck(3, 100, false));
  EXPECT_EQ(window.Next(9, false).sequence, 4u);
  EXPECT_FALSE(window.OnAck(6, 100, false));
  EXPECT_EQ(window.acked(), 3u);
  // Another connection begins with nothing sent.
  window.Connect();
  window.OnOpenSent();
  window.OnOpened({3, 0, 100}, 9, std::nullopt);
  EXPECT_FALSE(window.OnAck(5, 100, false));
  EXPECT_TRUE(window.OnAck(3, 100, false));
}

TEST(SendWindowTest, ARefusedWriterWaitsForTheNextConnection) {
  SendWindow window = Opened(0, {0, 0, 100}, 9);
  window.OnRefused();
  EXPECT_EQ(window.Next(9, true).kind, Kind::kNothing);
  window.OnMayReopen();
  EXPECT_EQ(window.Next(9, true).kind, Kind::kOpen);
}

// A client that crashes (forgetting all but its last written acked mark), a link that breaks, and a
// master that restarts: at the end each frame is stored once, in order.
TEST(SendWindowTest, StoresEachFrameOnceUnderCrashesAndReconnects) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t frame_count = 1 + random() % 40;
    std::uint64_t spooled = 0;
    std::uint64_t acked_on_disk = 0;
    SendWindow window(0);
    // The master: what is stored, and what is under way to it.
    std::vector<std::uint64_t> stored;
    bool closed = false;
    std::deque<std::uint64_t> wire;
    std::deque<std::uint64_t> acks;
    bool open = false;
    bool close_on_wire = false;
    for (int turn = 0; turn < 100000 && !window.closed(); ++turn) {
      const bool calm = turn > 2000;
      switch (random() % 12) {
        case 0:
          if (spooled < frame_count) ++spooled;
          break;
        case 1:
          if (calm) break;
          [[fallthrough]];
        case 2:
          if (calm && open) break;
          // The link breaks; sometimes the client dies with it.
          wire.clear();
          acks.clear();
          close_on_wire = false;
          if (random() % 2 == 0) window = SendWindow(acked_on_disk);
          window.Connect();
          open = false;
          break;
        case 3:
          acked_on_disk = window.acked();
          break;
        case 4:
        case 5:
          if (!wire.empty()) {
            const std::uint64_t sequence = wire.front();
            wire.pop_front();
            if (!calm && random() % 8 == 0) {
              window.OnNotTaken();  // damaged under way; acks of those before it still come
            } else if (sequence > stored.size() + 1) {
              window.OnHole(stored.size() + 1);
            } else {
              if (sequence == stored.size() + 1) stored.push_back(sequence);
              acks.push_back(stored.size());
            }
          } else if (close_on_wire) {
            close_on_wire = false;
            if (stored.size() < frame_count) {
              window.OnHole(stored.size() + 1);
              break;
            }
            closed = true;
            window.OnAck(stored.size(), 50, true);
          }
          break;
        case 6:
          if (!acks.empty()) {
            ASSERT_TRUE(
                window.OnAck(acks.front(), static_cast<std::int64_t>(random() % 100), false));
            acks.pop_front();
          }
          break;
        default: {
          const SendWindow::Action action = window.Next(spooled, spooled == frame_count);
          if (action.kind == Kind::kOpen) {
            window.OnOpenSent();
            ASSERT_EQ(window.OnOpened({stored.size(), 0, 50}, spooled, std::nullopt),
                      Resume::kGoOn);
            open = true;
          } else if (action.kind == Kind::kSend && window.Fits(10)) {
            window.OnSent(action.sequence, action.sequence, 10);
            wire.push_back(action.sequence);
          } else if (action.kind == Kind::kClose) {
            window.OnCloseSent();
            close_on_wire = true;
          } else if (window.inflight_bytes() == 0 && window.state() == State::kOpen) {
            // Credit 0 is lifted by the master's next ack.
            ASSERT_TRUE(window.OnAck(window.acked(), 50, false));
          }
        }
      }
    }
    ASSERT_TRUE(closed) << "round " << round;
    ASSERT_EQ(stored.size(), frame_count);
  }
}

}  // namespace
}  // namespace stepwell::agent
