#include "tests/support/master_process.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "tests/support/loopback.h"

namespace stepwell::testing {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string Exchange(int port, const std::string& request) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const absl::Cleanup closer = [fd] { close(fd); };
  const timeval patience = {2, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  const sockaddr_in address = Loopback(port);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) return "";
  if (send(fd, request.data(), request.size(), MSG_NOSIGNAL) < 0) return "";
  std::string answer;
  char buffer[4096];
  ssize_t count = 0;
  while ((count = recv(fd, buffer, sizeof(buffer), 0)) > 0) {
    answer.append(buffer, static_cast<std::size_t>(count));
  }
  return answer;
}

std::string File(const MasterProcess::Options& options, const char* ending) {
  return absl::StrCat(options.scratch, "/", options.name, ending);
}

// Logs name paths below it, and a scene's own directory ends with one.
MasterProcess::Options WithoutSlash(MasterProcess::Options options) {
  if (options.scratch.ends_with('/')) options.scratch.pop_back();
  return options;
}

}  // namespace

MasterProcess::MasterProcess(Options options)
    : options_(WithoutSlash(std::move(options))),
      grpc_address_(absl::StrCat("127.0.0.1:", FreePort())),
      http_address_(absl::StrCat("127.0.0.1:", FreePort())) {}

void MasterProcess::Start(const Life& life) {
  const std::string ready_file = File(options_, ".ready");
  unlink(ready_file.c_str());
  const std::string program = life.program.empty() ? BuiltProgram("stepwell") : life.program;
  std::vector<std::string> words = {program,         "serve",       "--grpc-listen", grpc_address_,
                                    "--http-listen", http_address_, "--ready-file",  ready_file};
  if (options_.database_url.empty()) {
    words.insert(words.end(), {"--data-dir", data_directory()});
  } else {
    words.insert(words.end(), {"--database-url", options_.database_url});
  }
  words.insert(words.end(), options_.flags.begin(), options_.flags.end());
  if (life.descriptors_max > 0) {
    words.insert(words.begin(),
                 {"/usr/bin/prlimit", absl::StrCat("--nofile=", life.descriptors_max)});
  }
  std::map<std::string, std::string> environment;
  if (!life.failpoints.empty()) environment["STEPWELL_FAILPOINTS"] = life.failpoints;
  child_.Start(words, environment, File(options_, ".log"));
}

bool MasterProcess::WaitReady(absl::Duration patience) {
  bool died = false;
  const auto ready = [&] {
    const auto json = nlohmann::json::parse(ReadAll(File(options_, ".ready")), nullptr, false);
    if (json.is_object()) {
      database_url_ = json.value("database_url", "");
      return true;
    }
    died = !child_.running();
    return died;
  };
  return Eventually(ready, patience) && !died;
}

bool MasterProcess::StartAndWait(const Life& life, absl::Duration patience) {
  Start(life);
  return WaitReady(patience);
}

std::string MasterProcess::Stop(absl::Duration patience) {
  child_.Signal(SIGTERM);
  return child_.Wait(patience);
}

std::string MasterProcess::data_directory() const {
  return absl::StrCat(options_.scratch, "/", options_.name, ".data");
}

pid_t MasterProcess::PostmasterPid() const {
  const std::string text = ReadAll(data_directory() + "/pg/postmaster.pid");
  int pid = 0;
  if (!absl::SimpleAtoi(text.substr(0, text.find('\n')), &pid) || pid <= 0) return 0;
  return kill(pid, 0) == 0 ? pid : 0;
}

std::string MasterProcess::Get(const std::string& path) const {
  int port = 0;
  STEPWELL_CHECK(absl::SimpleAtoi(http_address_.substr(http_address_.rfind(':') + 1), &port));
  return Exchange(port, absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: ", http_address_,
                                     "\r\nConnection: close\r\n\r\n"));
}

int MasterProcess::CountInLog(const std::string& text) const {
  const std::string log = ReadAll(File(options_, ".log"));
  int count = 0;
  for (std::size_t at = log.find(text); at != std::string::npos; at = log.find(text, at + 1)) {
    ++count;
  }
  return count;
}

std::string MasterProcess::LogTail() const {
  const std::vector<std::string> lines = absl::StrSplit(ReadAll(File(options_, ".log")), '\n');
  const std::size_t skip = lines.size() > 40 ? lines.size() - 40 : 0;
  return absl::StrJoin(lines.begin() + static_cast<std::ptrdiff_t>(skip), lines.end(), "\n");
}

}  // namespace stepwell::testing
