// Too many connections: the listener goes on, and there is room again when they leave.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/host_port.h"
#include "tests/e2e/spine.h"

namespace stepwell::testing {
namespace {

class ConnectionsTest : public SpineTest {};

TEST_F(ConnectionsTest, AStormOfConnectionsLeavesTheListenerHearing) {
  StartMaster({"--connections-per-address-max=8"});
  {
    std::vector<std::unique_ptr<IngestClient>> crowd;
    for (int i = 0; i < 40; ++i) {
      crowd.push_back(std::make_unique<IngestClient>(master_->grpc_address()));
      crowd.back()->channel()->GetState(true);
    }
    EXPECT_TRUE(Eventually([&] { return master_->CountInLog("too many of this address") > 0; },
                           absl::Seconds(20)));
  }
  // All of them left: there is room again.
  IngestClient late(master_->grpc_address());
  EXPECT_EQ(late.GetStatus().role(), "owner");
}

// A plain TCP connection that says nothing; -1 when refused.
int Connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

TEST_F(ConnectionsTest, RunningOutOfDescriptorsDoesNotDeafenTheListener) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "without descriptors the sanitizer takes objects for unreadable: it asks a pipe";
#endif
  StartMaster();
  EXPECT_EQ(master_->Stop(), "exit 0") << master_->LogTail();
  ASSERT_TRUE(master_->StartAndWait({.descriptors_max = 128})) << master_->LogTail();
  const auto listen = ParseHostPort(master_->grpc_address());
  ASSERT_TRUE(listen.ok());
  std::vector<int> crowd;
  for (int i = 0; i < 200; ++i) crowd.push_back(Connect(listen->port));
  EXPECT_TRUE(Eventually([&] { return master_->CountInLog("few descriptors left") > 0; },
                         absl::Seconds(20)))
      << master_->LogTail();
  EXPECT_EQ(master_->CountInLog("accept_failed"), 0) << "its own files have some, too";
  for (const int fd : crowd) close(fd);
  RawStream stream(*client_);
  const Uuid writer = Uuid::Random();
  Open(stream, writer, "after");
  ASSERT_TRUE(stream.Send(ChunkMessage(writer, 1, OneColumn(1, NowUs(), 1000, {1}))));
  EXPECT_TRUE(stream.WaitAck(writer, 1).has_value()) << master_->LogTail();
}

}  // namespace
}  // namespace stepwell::testing
