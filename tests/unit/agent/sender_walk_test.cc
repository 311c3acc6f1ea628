// What a sender says is what a walk over all of its writers says, message by message: two crowds of the same
// writers meet the same things, one behind a Sender, which asks those that are due, one behind the walk.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "client/agent/outbound_writer.h"
#include "client/agent/sender.h"
#include "client/agent/spool.h"
#include "client/agent/trial_token.h"
#include "tests/unit/agent/test_seed.h"

namespace stepwell::agent {
namespace {

constexpr int kSteps = 4000;

struct Member {
  std::shared_ptr<Spool> spool;
  std::shared_ptr<OutboundWriter> writer;
  std::shared_ptr<TrialToken> token;
};

// Asks every writer at each question.
class Walk {
 public:
  void Add(std::size_t place, std::shared_ptr<OutboundWriter> writer) {
    if (places_.size() <= place) places_.resize(place + 1);
    if (connected_) writer->OnConnected();
    places_[place] = std::move(writer);
  }
  void Remove(std::size_t place) { places_[place] = nullptr; }
  void OnConnected() {
    connected_ = true;
    ForEach([](OutboundWriter& writer) { writer.OnConnected(); });
  }
  void OnDisconnected() {
    connected_ = false;
    ForEach([](OutboundWriter& writer) { writer.OnDisconnected(); });
  }
  bool HasNext(absl::Duration now) const {
    return std::any_of(places_.begin(), places_.end(), [&](const auto& writer) {
      return writer != nullptr && MaySpeak(*writer) && writer->HasNext(now);
    });
  }
  std::optional<pb::StreamChunksRequest> Next(absl::Duration now) {
    for (std::size_t i = 1; i <= places_.size(); ++i) {
      const std::size_t at = (turn_ + i) % places_.size();
      if (places_[at] == nullptr || !MaySpeak(*places_[at])) continue;
      if (auto message = places_[at]->Next(now)) {
        turn_ = at;
        return message;
      }
    }
    return std::nullopt;
  }
  bool OnMessage(const pb::StreamChunksResponse& message, std::size_t to, absl::Duration now) {
    OutboundWriter& writer = *places_[to];
    const std::uint64_t acked_before = writer.acked_sequence();
    if (!writer.OnMessage(message, now)) return false;
    if (message.has_opened()) {
      const OutboundWriter::MasterSeen seen{message.opened().incarnation(),
                                            message.opened().committed_sequence() < acked_before};
      ForEach([&](OutboundWriter& each) {
        if (&each != &writer) each.OnMasterSeen(seen);
      });
    }
    return true;
  }
  bool awaits_answer() const {
    return std::any_of(places_.begin(), places_.end(), [](const auto& writer) {
      return writer != nullptr && writer->awaits_answer();
    });
  }

 private:
  template <typename Do>
  void ForEach(const Do& act) {
    for (const auto& writer : places_) {
      if (writer != nullptr) act(*writer);
    }
  }
  bool MaySpeak(const OutboundWriter& writer) const {
    const auto is_there = [](const auto& each) { return each != nullptr; };
    const auto count = std::count_if(places_.begin(), places_.end(), is_there);
    if (count <= static_cast<std::ptrdiff_t>(Sender::kOpenMax) || writer.has_place()) return true;
    return std::count_if(places_.begin(), places_.end(), [](const auto& each) {
             return each != nullptr && each->has_place();
           }) < static_cast<std::ptrdiff_t>(Sender::kOpenMax);
  }

  std::vector<std::shared_ptr<OutboundWriter>> places_;
  std::size_t turn_ = 0;
  bool connected_ = false;
};

class SenderWalkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-walk-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    path_ = pattern;
    random_.seed(TestSeed());
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  std::size_t Below(std::size_t bound) { return random_() % bound; }
  absl::Duration now() const { return clock_.Monotonic(); }

  Member Make(const Uuid& id, bool syncs, bool has_token, int side) {
    const std::filesystem::path folder = path_ / absl::StrCat(folder_count_, "-", side);
    std::filesystem::create_directory(folder);
    Spool::Options options;
    options.writer = id;
    options.sync_before_send = syncs;
    Member made;
    made.spool =
        *Spool::Open(FileDescriptor(open(folder.c_str(), O_RDONLY | O_DIRECTORY)), options, clock_);
    if (has_token) made.token = std::make_shared<TrialToken>();
    made.writer =
        std::make_shared<OutboundWriter>(WriterIdentity(), AgentFace(), made.spool, made.token);
    return made;
  }
  void AddMember() {
    const Uuid id = Uuid::Random();
    const bool syncs = Below(4) == 0;
    const bool has_token = Below(3) == 0;
    std::size_t place = of_sender_.size();
    if (!free_.empty()) {
      place = free_.back();
      free_.pop_back();
    } else {
      of_sender_.emplace_back();
      of_walk_.emplace_back();
    }
    of_sender_[place] = Make(id, syncs, has_token, 0);
    of_walk_[place] = Make(id, syncs, has_token, 1);
    ++folder_count_;
    sender_.Add(of_sender_[place].writer);
    walk_.Add(place, of_walk_[place].writer);
  }
  void RemoveMember(std::size_t place) {
    sender_.Remove(*of_sender_[place].writer);
    walk_.Remove(place);
    of_sender_[place] = {};
    of_walk_[place] = {};
    free_.push_back(place);
  }
  template <typename Do>
  void OnBoth(std::size_t place, const Do& act) {
    act(of_sender_[place]);
    act(of_walk_[place]);
  }
  void Connect(bool on) {
    if (on) {
      sender_.OnConnected();
      walk_.OnConnected();
    } else {
      sender_.OnDisconnected();
      walk_.OnDisconnected();
    }
  }

  void Append(std::size_t place) {
    const Spool::Sealed sealed{1000, {1, 1, 1}, std::string(1 + Below(300), 'x')};
    OnBoth(place, [&](Member& member) {
      ASSERT_TRUE(member.spool->AppendFrames({&sealed, 1}, Checkpoint()).ok());
    });
  }
  void GiveSomething(std::size_t place) {
    // Who closes has nothing to say any more.
    const std::size_t what = Below(50) == 0 ? 5 : Below(5);
    const std::string token = absl::StrCat("token ", Below(3));
    const bool died = Below(2) == 0;
    OnBoth(place, [&](Member& member) {
      if (what == 0) {
        ASSERT_TRUE(member.spool->AppendGap(GapSpan()).ok());
      }
      if (what == 1) {
        ASSERT_TRUE(member.spool->Sync().ok());
      }
      if (what == 2) member.writer->AddDefinition(pb::Definition());
      if (what == 3) member.writer->Report(pb::CaptureReport());
      if (what == 4 && member.token != nullptr) member.token->Set(token);
      if (what == 5) member.writer->RequestClose(died);
    });
  }
  // What a master may say, and what none should.
  pb::StreamChunksResponse Answer(const Member& member) {
    pb::StreamChunksResponse message;
    const std::uint64_t last = member.writer->status().sent_sequence;
    const std::uint64_t sequence = last == 0 ? 0 : Below(last + 1);
    const std::string id = member.spool->writer().ToBytes();
    const auto credit = static_cast<std::int64_t>(Below(3) == 0 ? Below(3) * 400 : 1 << 20);
    // As a rule what it waits for: otherwise hardly one would be open.
    const bool is_opening = member.writer->status().state == SendWindow::State::kOpening;
    const std::size_t what = Below(10) == 0 ? Below(12) : is_opening ? 8 : 0;
    if (what < 7) {
      message.mutable_ack()->set_writer(id);
      message.mutable_ack()->set_committed_sequence(Below(3) == 0 ? sequence : last);
      message.mutable_ack()->set_credit_bytes(credit);
      message.mutable_ack()->set_closed(Below(40) == 0);
    } else if (what < 10) {
      message.mutable_opened()->set_writer(id);
      message.mutable_opened()->set_committed_sequence(sequence);
      message.mutable_opened()->set_credit_bytes(credit);
      message.mutable_opened()->set_incarnation(Below(20) == 0 ? "another" : "one");
    } else {
      static const char* const kReasons[] = {"NOT_OPEN",      "SEQUENCE_HOLE", "CHECKSUM",
                                             "TOKEN_REFUSED", "RATE_LIMIT",    "WRITERS_PER_STREAM",
                                             "ARCHIVED"};
      message.mutable_refused()->set_writer(id);
      message.mutable_refused()->set_reason(kReasons[Below(std::size(kReasons))]);
      message.mutable_refused()->set_expected_sequence(sequence);
      message.mutable_refused()->set_terminal(Below(4) == 0);
      message.mutable_refused()->set_retry_delay_ms(static_cast<std::int32_t>(Below(3) * 700));
    }
    return message;
  }
  void Hear(std::size_t place) {
    const pb::StreamChunksResponse message = Answer(of_sender_[place]);
    const bool goes_on = sender_.OnMessage(message, now()) != Sender::Then::kGiveUp;
    ASSERT_EQ(goes_on, walk_.OnMessage(message, place, now())) << message.ShortDebugString();
    if (goes_on) return;
    Connect(false);
    Connect(true);
  }
  // One message of each, or none.
  bool Speak() {
    EXPECT_EQ(sender_.HasNext(now()), walk_.HasNext(now()));
    auto said = sender_.Next(now());
    auto wanted = walk_.Next(now());
    for (auto* message : {&said, &wanted}) {
      if (!*message) continue;
      if ((*message)->has_open()) (*message)->mutable_open()->clear_sent_time_us();
      if ((*message)->has_heartbeat()) (*message)->mutable_heartbeat()->clear_sent_time_us();
    }
    EXPECT_EQ(said ? said->ShortDebugString() : "nothing",
              wanted ? wanted->ShortDebugString() : "nothing");
    EXPECT_EQ(sender_.awaits_answer(), walk_.awaits_answer());
    return said.has_value();
  }

  void Step() {
    const std::size_t place = Below(of_sender_.size());
    const bool is_there = of_sender_[place].writer != nullptr;
    switch (const std::size_t what = Below(100)) {
      case 0:
        Connect(false);
        break;
      case 1:
      case 2:
        Connect(true);
        break;
      case 3:
        if (is_there) RemoveMember(place);
        break;
      case 4:
        if (!free_.empty()) AddMember();
        break;
      case 5:
        clock_.Advance(absl::Seconds(Below(70)));
        break;
      default:
        if (what < 20) clock_.Advance(absl::Milliseconds(Below(1500)));
        if (!is_there || what < 20) break;
        if (what < 40) Append(place);
        if (what >= 40 && what < 50) GiveSomething(place);
        if (what >= 50 && what < 75) Hear(place);
        break;
    }
    // Not always to the end: what is left must be found at the next wake.
    for (std::size_t left = Below(2) * Below(20); left > 0 && Speak(); --left) continue;
  }
  void RunWith(std::size_t writer_count, int steps) {
    for (std::size_t i = 0; i < writer_count; ++i) AddMember();
    Connect(true);
    for (int step = 0; step < steps && !HasFailure(); ++step) {
      SCOPED_TRACE(absl::StrCat("step ", step));
      Step();
    }
    while (!HasFailure() && Speak()) continue;
  }

  std::filesystem::path path_;
  std::mt19937_64 random_;
  FakeClock clock_;
  Sender sender_;
  Walk walk_;
  std::vector<Member> of_sender_;
  std::vector<Member> of_walk_;
  std::vector<std::size_t> free_;
  int folder_count_ = 0;
};

TEST_F(SenderWalkTest, SaysWhatAWalkOverAllSays) { RunWith(6, kSteps); }

TEST_F(SenderWalkTest, SaysWhatAWalkOverAllSaysWhereNotAllHaveAPlace) {
  RunWith(Sender::kOpenMax + 4, kSteps);
}

}  // namespace
}  // namespace stepwell::agent
