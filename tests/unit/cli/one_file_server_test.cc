#include "client/cli/one_file_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/scratch_file.h"

namespace stepwell::cli {
namespace {

class OneFileServerTest : public ::testing::Test {
 protected:
  OneFileServerTest() : bytes_(3'000'000, 'x') {
    bytes_.back() = 'y';
    auto file = ScratchFile::Make();
    EXPECT_TRUE(file.ok()) << file.status();
    if (!file.ok()) return;
    file_ = *std::move(file);
    EXPECT_TRUE(file_->Write(bytes_).ok());
    auto server = OneFileServer::Open(
        {.file = file_->descriptor(), .name = "trace", .origin = "https://page"});
    EXPECT_TRUE(server.ok()) << server.status();
    if (server.ok()) server_ = *std::move(server);
  }

  std::string host() const { return server_->url().substr(7, server_->url().find('/', 7) - 7); }
  std::string target() const { return server_->url().substr(server_->url().find('/', 7)); }
  // Head and body, as they came.
  std::string Ask(const std::string& request) const {
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(host().substr(host().find(':') + 1), &port));
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(send(socket, request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    std::string answer;
    char piece[65'536];
    for (ssize_t count = 0; (count = recv(socket, piece, sizeof piece, 0)) > 0;) {
      answer.append(piece, static_cast<std::size_t>(count));
    }
    close(socket);
    return answer;
  }

  std::string bytes_;
  std::unique_ptr<ScratchFile> file_;
  std::unique_ptr<OneFileServer> server_;
};

TEST_F(OneFileServerTest, OnePageReadsItOnceAndNobodyElse) {
  ASSERT_NE(server_, nullptr);
  absl::Status served = absl::UnknownError("");
  std::thread serving([&] { served = server_->ServeOnce(SteadyTime::Now() + absl::Minutes(2)); });
  const std::string good_host = absl::StrCat("Host: ", host(), "\r\n\r\n");
  const struct {
    std::string request;
    const char* status;
  } rows[] = {
      {absl::StrCat("GET /trace HTTP/1.1\r\n", good_host), "HTTP/1.1 404 "},
      {absl::StrCat("GET ", target(), " HTTP/1.1\r\nHost: evil.example\r\n\r\n"), "HTTP/1.1 404 "},
      {absl::StrCat("GET ", target(), " HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 "},
      {absl::StrCat("POST ", target(), " HTTP/1.1\r\n", good_host), "HTTP/1.1 405 "},
      {absl::StrCat("OPTIONS ", target(), " HTTP/1.1\r\n", good_host), "HTTP/1.1 204 "},
      {absl::StrCat("HEAD ", target(), " HTTP/1.1\r\n", good_host), "HTTP/1.1 200 "},
      {"\r\n\r\n", "HTTP/1.1 404 "},
  };
  for (const auto& row : rows) {
    const std::string answer = Ask(row.request);
    EXPECT_TRUE(absl::StartsWith(answer, row.status)) << row.request << answer.substr(0, 200);
    EXPECT_TRUE(absl::EndsWith(answer, "\r\n\r\n")) << row.request;
  }
  const std::string answer = Ask(absl::StrCat("GET ", target(), " HTTP/1.1\r\n", good_host));
  serving.join();
  EXPECT_TRUE(served.ok()) << served;
  EXPECT_TRUE(absl::StartsWith(answer, "HTTP/1.1 200 "));
  EXPECT_NE(answer.find("Access-Control-Allow-Origin: https://page\r\n"), std::string::npos);
  EXPECT_TRUE(answer.substr(answer.find("\r\n\r\n") + 4) == bytes_);
}

TEST_F(OneFileServerTest, SaysWhenNobodyCameAndWhatCannotBe) {
  ASSERT_NE(server_, nullptr);
  EXPECT_TRUE(absl::IsDeadlineExceeded(server_->ServeOnce(SteadyTime::Now())));
  int port = 0;
  ASSERT_TRUE(absl::SimpleAtoi(host().substr(host().find(':') + 1), &port));
  EXPECT_EQ(server_->port(), port);
  EXPECT_TRUE(absl::IsUnavailable(
      OneFileServer::Open({.file = file_->descriptor(), .port = port}).status()));
}

}  // namespace
}  // namespace stepwell::cli
