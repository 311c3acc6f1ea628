// So many connect that the master has no descriptor left, beside a training and writers whose streams stand. Theirs go
// on meanwhile; when the crowd has left, the listener hears whoever comes anew.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"
#include "tests/support/loopback.h"

namespace stepwell::faults {
namespace {

constexpr int kDescriptors = 128;
constexpr int kCrowd = 200;
constexpr std::uint64_t kChunks = 40;
constexpr int kLateRank = 12;

// Connections that say nothing.
class Crowd {
 public:
  explicit Crowd(const std::string& address) {
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    const sockaddr_in place = testing::Loopback(port);
    for (int i = 0; i < kCrowd; ++i) {
      connections_.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      (void)connect(connections_.back(), reinterpret_cast<const sockaddr*>(&place), sizeof(place));
    }
  }
  ~Crowd() { Leave(); }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  void Leave() {
    for (const int connection : connections_) close(connection);
    connections_.clear();
  }

 private:
  std::vector<int> connections_;
};

TEST(UsedUpDescriptorsTest, AreMetByNobodyWhoIsThereAndTheListenerHearsAgain) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "without descriptors the sanitizer takes objects for unreadable: it asks a pipe";
#endif
  Scene scene("used up descriptors");
  MasterProcess master({.scratch = scene.path("")});
  MasterClient client(master.grpc_address());
  ASSERT_TRUE(master.StartAndWait({.descriptors_max = kDescriptors})) << master.LogTail();
  scene.StartAgent(master.grpc_address());
  for (const int rank : {0, 1}) scene.StartTrainer(rank, {{"--world-size", "2"}});
  for (const int rank : {10, 11}) scene.StartRawWriter(rank, master.grpc_address());
  const auto await_commits = [&](const std::string& when) {
    const auto committed = [&] {
      const auto status = client.Status();
      return status ? status->chunks_committed() : 0;
    };
    const std::uint64_t before = committed();
    EXPECT_TRUE(scene.Await(absl::StrCat(kChunks, " chunks ", when), absl::Seconds(60),
                            [&] { return committed() >= before + kChunks; }))
        << scene.Logs() << master.LogTail();
  };
  await_commits("before");
  Crowd crowd(master.grpc_address());
  EXPECT_TRUE(scene.Await("no descriptor is left", absl::Seconds(20), [&] {
    return master.CountInLog("few descriptors left") > 0;
  })) << master.LogTail();
  await_commits("beside the crowd");
  EXPECT_EQ(master.CountInLog("accept_failed"), 0) << "its own files have some, too";
  crowd.Leave();
  scene.StartRawWriter(kLateRank, master.grpc_address());
  EXPECT_TRUE(scene.Await("one that comes late is acked", absl::Seconds(30),
                          [&] {
                            const Ledger ledger = scene.ReadLedgers();
                            return std::any_of(ledger.samples.begin(), ledger.samples.end(),
                                               [](const auto& sample) {
                                                 return sample.rank == kLateRank && sample.acked;
                                               });
                          }))
      << scene.Logs() << master.LogTail();
  scene.StopProducers(absl::Seconds(60));
  const Verdict verdict = scene.ExpectExact(master, Demand::kRecorded);
  EXPECT_EQ(verdict.declared_count, 0U);
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
