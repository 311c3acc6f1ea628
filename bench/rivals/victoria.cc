#include "bench/rivals/victoria.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "bench/load/children.h"
#include "bench/load/process_cpu.h"

extern char** environ;

namespace stepwell::bench {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

int FreePort() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    address.sin_port = 0;
  }
  close(listener);
  return ntohs(address.sin_port);
}

}  // namespace

struct Victoria::Connection::Socket {
  asio::io_context context;
  beast::tcp_stream stream{context};
};

Victoria::Connection::Connection(int port) : socket_(std::make_unique<Socket>()) {
  beast::error_code ignored;  // the first request tells
  socket_->stream.connect({asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(port)},
                          ignored);
}

Victoria::Connection::~Connection() = default;

absl::StatusOr<std::string> Victoria::Connection::Get(const std::string& target) {
  http::request<http::empty_body> request(http::verb::get, target, 11);
  request.set(http::field::host, "127.0.0.1");
  beast::error_code error;
  http::write(socket_->stream, request, error);
  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(std::uint64_t{1} << 30);
  if (!error) http::read(socket_->stream, buffer, parser, error);
  if (error) return absl::UnavailableError(absl::StrCat("GET ", target, ": ", error.message()));
  http::response<http::string_body> response = parser.release();
  if (response.result_int() / 100 != 2) {
    return absl::InternalError(absl::StrCat("GET ", target, ": ", response.body()));
  }
  return std::move(response.body());
}

absl::Status Victoria::Connection::PostRemoteWrite(const std::string& packed) {
  http::request<http::span_body<const char>> request(http::verb::post, "/api/v1/write", 11);
  request.set(http::field::host, "127.0.0.1");
  request.set(http::field::content_encoding, "snappy");
  request.set(http::field::content_type, "application/x-protobuf");
  request.body() = beast::span<const char>(packed.data(), packed.size());
  request.prepare_payload();
  beast::error_code error;
  http::write(socket_->stream, request, error);
  beast::flat_buffer buffer;
  http::response<http::string_body> response;
  if (!error) http::read(socket_->stream, buffer, response, error);
  if (error) return absl::UnavailableError(absl::StrCat("remote write: ", error.message()));
  if (response.result_int() / 100 == 2) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("remote write: ", response.body()));
}

absl::StatusOr<Victoria> Victoria::Start(const std::string& binary) {
  Victoria victoria;
  victoria.dir_ = "/tmp/stepwell-rival-XXXXXX";
  if (mkdtemp(victoria.dir_.data()) == nullptr)
    return absl::InternalError("cannot make a directory");
  victoria.port_ = FreePort();
  victoria.words_ = {binary,
                     absl::StrCat("-storageDataPath=", victoria.dir_, "/data"),
                     absl::StrCat("-httpListenAddr=127.0.0.1:", victoria.port_),
                     "-retentionPeriod=100y",
                     "-search.latencyOffset=0s",
                     "-search.maxPointsPerTimeseries=1000000"};
  STEPWELL_RETURN_IF_ERROR(victoria.Spawn());
  return victoria;
}

absl::Status Victoria::Restart() {
  DisownChild(pid_);
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
  return Spawn();
}

absl::Status Victoria::Spawn() {
  std::vector<char*> argv;
  for (auto& word : words_) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::string log = dir_ + "/log";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  const int error = posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return absl::NotFoundError("cannot start " + words_[0]);
  AdoptChild(pid_, dir_);
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (absl::Now() < deadline) {
    if (Connection(port_).Get("/health").ok()) return absl::OkStatus();
    absl::SleepFor(absl::Milliseconds(20));
  }
  return absl::DeadlineExceededError("VictoriaMetrics was not ready within 30 s");
}

Victoria::Victoria(Victoria&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      port_(other.port_),
      dir_(std::exchange(other.dir_, "")),
      words_(std::move(other.words_)) {}

Victoria::~Victoria() {
  if (pid_ > 0) EndChild(pid_);
  std::error_code ignored;
  if (!dir_.empty()) std::filesystem::remove_all(dir_, ignored);
}

double Victoria::CpuSeconds() const { return TreeCpuSeconds(pid_); }

absl::Status Victoria::Load(const RemoteLoad& load) {
  std::vector<const std::vector<std::string>*> halves[2];
  for (std::size_t i = 0; i < load.requests().size(); ++i)
    halves[i % 2].push_back(&load.requests()[i]);
  absl::Status statuses[2];
  std::vector<std::thread> threads;
  for (std::size_t half = 0; half < 2; ++half) {
    threads.emplace_back(
        [this, &writers = halves[half], &status = statuses[half]] { status = Send(writers); });
  }
  for (auto& thread : threads) thread.join();
  return statuses[0].ok() ? statuses[1] : statuses[0];
}

absl::Status Victoria::Send(const std::vector<const std::vector<std::string>*>& writers) const {
  Connection connection(port_);
  for (std::size_t i = 0, sent = 1; sent > 0; ++i) {
    sent = 0;
    for (const auto* requests : writers) {
      if (i >= requests->size()) continue;
      STEPWELL_RETURN_IF_ERROR(connection.PostRemoteWrite((*requests)[i]));
      ++sent;
    }
  }
  return absl::OkStatus();
}

absl::Status Victoria::Flush() { return Connection(port_).Get("/internal/force_flush").status(); }

absl::Status Victoria::CheckHeld(std::int64_t sample_count) {
  Connection connection(port_);
  STEPWELL_RETURN_IF_ERROR(Flush());
  for (const char* field : {"value", "batch"}) {
    STEPWELL_ASSIGN_OR_RETURN(
        const std::string body,
        connection.Get(
            absl::StrCat("/api/v1/query?nocache=1&query=sum(count_over_time(%7Bfield=%22", field,
                         "%22%7D%5B30d%5D))&time=", kLoadStartUs / 1'000'000 + 29 * 86'400)));
    const auto json = nlohmann::json::parse(body, nullptr, false);
    const auto path = nlohmann::json::json_pointer("/data/result/0/value/1");
    if (!json.contains(path) || json[path] != absl::StrCat(sample_count)) {
      return absl::DataLossError(absl::StrCat("VictoriaMetrics has not ", sample_count,
                                              " samples of the field ", field, ": ", body));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::int64_t> Victoria::StoredBytes() {
  STEPWELL_RETURN_IF_ERROR(Flush());
  STEPWELL_RETURN_IF_ERROR(Connection(port_).Get("/internal/force_merge").status());
  // The merge goes on in the background; three looks a second apart that agree are its end.
  std::int64_t before = -1;
  for (int i = 0, same = 0; i < 120; ++i) {
    const std::int64_t now = BytesBelow(dir_ + "/data/data") + BytesBelow(dir_ + "/data/indexdb");
    same = now == before ? same + 1 : 0;
    if (same == 3) return now;
    before = now;
    absl::SleepFor(absl::Seconds(1));
  }
  return absl::DeadlineExceededError("VictoriaMetrics went on merging for 2 minutes");
}

std::int64_t BytesBelow(const std::string& directory) {
  std::int64_t bytes = 0;
  std::error_code error;
  for (auto it = std::filesystem::recursive_directory_iterator(directory, error);
       it != std::filesystem::recursive_directory_iterator(); it.increment(error)) {
    struct stat found {};
    if (lstat(it->path().c_str(), &found) == 0 && S_ISREG(found.st_mode)) bytes += found.st_size;
  }
  return bytes;
}

}  // namespace stepwell::bench
