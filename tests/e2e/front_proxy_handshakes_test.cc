// The half of the proxy of deploy/haproxy that ends TLS: places are held by those who finish a handshake, and what lies behind
// knows where they are.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <regex>

#include "base/tls/openssl_text.h"
#include "tests/e2e/front_proxy.h"

namespace stepwell::testing {
namespace {

// The first thing that a client of TLS says.
std::string ClientHello() {
  const OpensslOwned<SSL_CTX> context(SSL_CTX_new(TLS_client_method()));
  const OpensslOwned<SSL> ssl(SSL_new(context.get()));
  BIO* said = BIO_new(BIO_s_mem());
  SSL_set_bio(ssl.get(), BIO_new(BIO_s_mem()), said);
  EXPECT_LT(SSL_connect(ssl.get()), 0) << "nobody answers";
  char* bytes = nullptr;
  const long count = BIO_get_mem_data(said, &bytes);
  return {bytes, static_cast<std::size_t>(count)};
}

// A connection from 127.0.0.`from` that says one thing, and nothing more.
class Unfinished {
 public:
  Unfinished(int from, int port, const std::string& said)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in own = Loopback(from, 0);
    sockaddr_in theirs = Loopback(1, port);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&own), sizeof(own)), 0);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&theirs), sizeof(theirs)), 0);
    // One that is refused a place may have been hung up on already.
    (void)!send(fd_, said.data(), said.size(), MSG_NOSIGNAL);
  }
  ~Unfinished() { close(fd_); }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  // What is answered meanwhile is thrown away.
  bool IsHungUpOn() const {
    char bytes[4096];
    for (;;) {
      const ssize_t count = recv(fd_, bytes, sizeof(bytes), MSG_DONTWAIT);
      if (count <= 0) return count == 0 || (errno != EAGAIN && errno != EINTR);
    }
  }

 private:
  static sockaddr_in Loopback(int last, int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + static_cast<std::uint32_t>(last));
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    return address;
  }
  const int fd_;
};

// All that an address may have and some more, for of many at once haproxy may count one too few. In three ways: nothing at all
// is said, half of what begins a handshake, or all of that and no answer to what is answered.
TEST_F(FrontProxyTest, WhoNeverFinishesAHandshakeGivesItsPlaceBackWhileStreamsStay) {
  StartAll();
  Stream stream(Channel(token_));
  ASSERT_TRUE(stream.Open("beside"));
  ASSERT_TRUE(stream.Send({0}));
  Follow follow(Channel(token_), "beside");
  ASSERT_TRUE(follow.Begin());
  const std::string hello = ClientHello();
  ASSERT_GT(hello.size(), 100u);
  const Words theirs = {"--interface", "127.0.0.9"};
  absl::Time begin;
  std::vector<std::unique_ptr<Unfinished>> stuck;
  std::string beside;
  // A machine that stands still for as long as a handshake may take has shown nothing: once more, then.
  for (int round = 0; round < 5; ++round) {
    stuck.clear();
    begin = absl::Now();
    for (int at = 0; at < 272; ++at) {
      const std::string said = hello.substr(0, hello.size() * static_cast<std::size_t>(at % 3) / 2);
      stuck.push_back(std::make_unique<Unfinished>(9, port_, said));
    }
    beside = Curl("/livez", theirs);
    if (absl::Now() - begin < absl::Seconds(9)) break;
  }
  ASSERT_LT(absl::Now() - begin, absl::Seconds(9)) << "five times";
  EXPECT_EQ(beside, "000") << "no place is left";
  EXPECT_EQ(Curl("/livez"), "200") << "of that address alone";
  EXPECT_TRUE(Eventually([&] { return Curl("/livez", theirs) == "200"; }, absl::Seconds(20)));
  EXPECT_TRUE(Eventually(
      [&] {
        return std::all_of(stuck.begin(), stuck.end(),
                           [](const auto& each) { return each->IsHungUpOn(); });
      },
      absl::Seconds(20)));
  // Silent for longer than a handshake may take.
  absl::SleepFor(begin + absl::Seconds(25) - absl::Now());
  EXPECT_TRUE(stream.Send({2.5})) << stream.both->Finish().error_message();
  EXPECT_TRUE(follow.ReadTo(2.5)) << follow.reader->Finish().error_message();
}

// What goes wrong behind the half that ends TLS is told with the client's address all the same.
TEST_F(FrontProxyTest, ItsLogNamesTheClient) {
  StartAll();
  EXPECT_EQ(Curl("/livez", {"--interface", "127.0.0.9", "--http1.1", "--header", "A B: c"}), "400");
  EXPECT_TRUE(Eventually(
      [&] {
        const std::string log = ReadText(scratch_ / "haproxy.log");
        return std::regex_search(
            log, std::regex(R"(127\.0\.0\.9:\d+ \[.*\] stepwell stepwell/<NOSRV> .* 400 )"));
      },
      absl::Seconds(10)))
      << ReadText(scratch_ / "haproxy.log");
}

}  // namespace
}  // namespace stepwell::testing
