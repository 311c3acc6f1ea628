#include "tests/faults/network/chaos_proxy.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <random>
#include <thread>
#include <utility>

#include "tests/faults/network/weather.h"
#include "tests/faults/seed.h"

namespace stepwell::faults {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

bool Soon(const std::function<bool()>& condition) {
  const auto deadline = steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(milliseconds(2));
  }
  return true;
}

// One end of a connection. Reads wait for 30 s at most.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {
    const timeval patience = {30, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&&) = delete;
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  bool Send(const std::string& bytes) const {
    return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  void SendEnd() const { shutdown(fd_, SHUT_WR); }
  // `count` bytes, fewer where it ends before; `error` says how.
  std::string Receive(std::size_t count, int* error = nullptr) const {
    std::string bytes;
    char buffer[65536];
    while (bytes.size() < count) {
      const ssize_t got = recv(fd_, buffer, std::min(sizeof(buffer), count - bytes.size()), 0);
      if (error != nullptr) *error = got < 0 ? errno : 0;
      if (got <= 0) break;
      bytes.append(buffer, static_cast<std::size_t>(got));
    }
    return bytes;
  }
  // Something to be read, an end or an error.
  bool HasNews() const {
    pollfd asked = {fd_, POLLIN, 0};
    return poll(&asked, 1, 0) == 1;
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

class ChaosProxyTest : public ::testing::Test {
 protected:
  ChaosProxyTest() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_.fd(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_.fd(), 16), 0);
    getsockname(listener_.fd(), reinterpret_cast<sockaddr*>(&address), &size);
    proxy_ =
        std::make_unique<ChaosProxy>("127.0.0.1:" + std::to_string(ntohs(address.sin_port)), seed_);
  }

  Socket Connect() const {
    Socket client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const std::string& text = proxy_->address();
    address.sin_port =
        htons(static_cast<std::uint16_t>(std::stoi(text.substr(text.rfind(':') + 1))));
    EXPECT_EQ(connect(client.fd(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return client;
  }
  Socket Accept() const { return Socket(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC)); }

  std::string RandomBytes(std::size_t count) {
    std::string bytes(count, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }

  const std::uint64_t seed_ = Seed();
  std::mt19937_64 random_{seed_};
  const Socket listener_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::unique_ptr<ChaosProxy> proxy_;
};

TEST_F(ChaosProxyTest, CarriesAllBytesInOrderBothWaysAndTheirEnd) {
  const struct {
    const char* weather;
    std::size_t bytes;
  } rows[] = {{"", 3'000'000},
              {"delay=20ms jitter=30ms", 300'000},
              {"stall=10%:20ms", 300'000},
              {"rate=2000000", 300'000},
              {"slice=1", 30'000},
              {"slice=7 delay=5ms jitter=5ms rate=500000 stall=2%:50ms", 50'000}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.weather);
    proxy_->Set(row.weather);
    const Socket client = Connect();
    const Socket server = Accept();
    const std::string up = RandomBytes(row.bytes);
    const std::string down = RandomBytes(row.bytes);
    std::thread sender([&] {
      EXPECT_TRUE(client.Send(up));
      client.SendEnd();
    });
    std::thread answerer([&] {
      EXPECT_TRUE(server.Send(down));
      server.SendEnd();
    });
    std::thread reader([&] { EXPECT_EQ(client.Receive(down.size() + 1) == down, true); });
    EXPECT_EQ(server.Receive(up.size() + 1) == up, true);
    sender.join();
    answerer.join();
    reader.join();
  }
  EXPECT_TRUE(Soon([&] { return proxy_->counts().open == 0; }));
  EXPECT_EQ(proxy_->counts().ended, std::size(rows));
  EXPECT_EQ(proxy_->counts().reset, 0U);
}

TEST_F(ChaosProxyTest, DelaysAndRatesTakeAtLeastTheirTime) {
  for (const char* weather : {"delay=200ms", "rate=5000", "stall=100%:200ms"}) {
    SCOPED_TRACE(weather);
    proxy_->Set(weather);
    const Socket client = Connect();
    const Socket server = Accept();
    const auto begin = steady_clock::now();
    EXPECT_TRUE(client.Send(std::string(1200, 'x')));
    EXPECT_EQ(server.Receive(1200).size(), 1200U);
    EXPECT_GE(steady_clock::now() - begin, milliseconds(190));
  }
}

TEST_F(ChaosProxyTest, SlicesAreWritesOfTheirOwn) {
  proxy_->Set("slice=1");
  const Socket client = Connect();
  const Socket server = Accept();
  EXPECT_TRUE(client.Send(std::string(500, 'x')));
  EXPECT_EQ(server.Receive(500).size(), 500U);
  EXPECT_TRUE(Soon([&] { return proxy_->counts().bytes_up == 500; }));
  EXPECT_EQ(proxy_->counts().writes_up, 500U);
}

TEST_F(ChaosProxyTest, ResetsBothAfterExactlySoManyBytes) {
  proxy_->Set("reset=1000");
  const Socket client = Connect();
  const Socket server = Accept();
  EXPECT_TRUE(client.Send(std::string(999, 'x')));
  EXPECT_EQ(server.Receive(999).size(), 999U);
  EXPECT_EQ(proxy_->counts().reset, 0U);
  EXPECT_TRUE(client.Send(std::string(500, 'x')));
  int error = 0;
  EXPECT_LE(server.Receive(500, &error).size(), 1U);
  EXPECT_EQ(error, ECONNRESET);
  client.Receive(1, &error);
  EXPECT_EQ(error, ECONNRESET);
  EXPECT_EQ(proxy_->counts().reset, 1U);
  EXPECT_EQ(proxy_->counts().bytes_up, 1000U);
}

TEST_F(ChaosProxyTest, ABlackHoleTellsNothingUntilItIsLifted) {
  const Socket client = Connect();
  const Socket server = Accept();
  proxy_->Set("hold=up");
  EXPECT_TRUE(client.Send("question"));
  client.SendEnd();
  for (int i = 0; i < 20; ++i) {  // the other way goes on
    EXPECT_TRUE(server.Send("a"));
    EXPECT_EQ(client.Receive(1), "a");
    EXPECT_FALSE(server.HasNews());
  }
  proxy_->Set("hold=both");
  EXPECT_TRUE(server.Send("late"));
  EXPECT_EQ(proxy_->counts().bytes_up, 0U);
  proxy_->Set("hold=down");
  EXPECT_EQ(server.Receive(100), "question");
  EXPECT_FALSE(client.HasNews());
  proxy_->Set("");
  EXPECT_EQ(client.Receive(4), "late");
}

TEST_F(ChaosProxyTest, WhoLosesTheOtherSideHearsNothing) {
  const Socket client = Connect();
  const Socket server = Accept();
  EXPECT_TRUE(client.Send("a"));
  EXPECT_EQ(server.Receive(1), "a");
  proxy_->LoseServer();
  int error = 0;
  server.Receive(1, &error);
  EXPECT_EQ(error, ECONNRESET);
  const Socket next = Connect();
  const Socket next_server = Accept();
  for (int i = 0; i < 20; ++i) {  // new ones are served meanwhile
    EXPECT_TRUE(client.Send("into nowhere"));
    EXPECT_TRUE(next.Send("b"));
    EXPECT_EQ(next_server.Receive(1), "b");
    EXPECT_FALSE(client.HasNews());
  }
  proxy_->LoseClient();
  next.Receive(1, &error);
  EXPECT_EQ(error, ECONNRESET);
  EXPECT_FALSE(next_server.HasNews());
}

TEST_F(ChaosProxyTest, FlapsBetweenServiceAndRefusal) {
  proxy_->Set("flap=100ms:50ms");
  int served = 0;
  EXPECT_TRUE(Soon([&] {
    const Socket client = Connect();
    if (client.Send("a")) {
      pollfd asked = {listener_.fd(), POLLIN, 0};
      if (poll(&asked, 1, 20) == 1 && Accept().Receive(1) == "a") ++served;
    }
    return served >= 3 && proxy_->counts().reset >= 3;
  }));
}

TEST(WeatherTest, TakesItsWordsAndNoOthers) {
  const auto weather = Weather::Parse("delay=300ms stall=1%:2s rate=8000 hold=up flap=2s:500ms");
  ASSERT_TRUE(weather.has_value());
  EXPECT_EQ(weather->delay, milliseconds(300));
  EXPECT_DOUBLE_EQ(weather->stall_chance, 0.01);
  EXPECT_EQ(weather->stall, std::chrono::seconds(2));
  EXPECT_EQ(weather->bytes_per_second, 8000);
  EXPECT_TRUE(weather->holds_up);
  EXPECT_FALSE(weather->holds_down);
  EXPECT_EQ(weather->flap_down, milliseconds(500));
  EXPECT_TRUE(Weather::Parse("").has_value());
  for (const char* wrong : {"rain", "delay", "delay=", "delay=3", "delay=3min", "stall=1:2s",
                            "stall=1%", "rate=0", "slice=x", "hold=sideways", "flap=2s"}) {
    EXPECT_FALSE(Weather::Parse(wrong).has_value()) << wrong;
  }
}

}  // namespace
}  // namespace stepwell::faults
