#include "bench/load/master_child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/load/children.h"
#include "bench/load/process_cpu.h"

extern char** environ;

namespace stepwell::bench {
absl::StatusOr<MasterChild> MasterChild::Start(const std::string& binary,
                                               std::vector<std::string> flags) {
  MasterChild child;
  child.dir_ = "/tmp/stepwell-bench-XXXXXX";
  if (mkdtemp(child.dir_.data()) == nullptr) return absl::InternalError("cannot make a directory");
  chmod(child.dir_.c_str(), 0755);  // PostgreSQL runs as another user when we are root
  child.words_ = {binary,          "serve",
                  "--data-dir",    child.dir_ + "/data",
                  "--grpc-listen", "127.0.0.1:0",
                  "--http-listen", "127.0.0.1:0",
                  "--ready-file",  child.dir_ + "/ready.json"};
  child.words_.insert(child.words_.end(), flags.begin(), flags.end());
  if (auto status = child.Spawn(); !status.ok()) return status;
  return child;
}

absl::Status MasterChild::KillAndRestart() {
  DisownChild(pid_);
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  unlink((dir_ + "/ready.json").c_str());
  return Spawn();
}

absl::Status MasterChild::Spawn() {
  std::vector<char*> argv;
  for (auto& word : words_) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::string log = dir_ + "/log";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  const absl::Time begin = absl::Now();
  const int error = posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return absl::NotFoundError("cannot start " + words_[0]);
  AdoptChild(pid_, dir_);
  while (absl::Now() < begin + absl::Seconds(60)) {
    if (std::ifstream file(dir_ + "/ready.json"); file) {
      const auto json = nlohmann::json::parse(file, nullptr, false);
      if (!json.is_discarded()) {
        ready_seconds_ = absl::ToDoubleSeconds(absl::Now() - begin);
        grpc_address_ = json.value("grpc", "");
        http_address_ = json.value("http", "");
        database_url_ = json.value("database_url", "");
        return absl::OkStatus();
      }
    }
    if (waitpid(pid_, nullptr, WNOHANG) == pid_) {
      DisownChild(std::exchange(pid_, 0));
      std::ifstream text(log);
      return absl::InternalError("stepwell serve ended:\n" +
                                 std::string((std::istreambuf_iterator<char>(text)), {}));
    }
    absl::SleepFor(absl::Milliseconds(5));
  }
  return absl::DeadlineExceededError("stepwell serve was not ready within 60 s");
}

MasterChild::MasterChild(MasterChild&& other) noexcept
    : words_(std::move(other.words_)),
      pid_(std::exchange(other.pid_, 0)),
      dir_(std::exchange(other.dir_, "")),
      ready_seconds_(other.ready_seconds_),
      grpc_address_(std::move(other.grpc_address_)),
      http_address_(std::move(other.http_address_)),
      database_url_(std::move(other.database_url_)) {}

MasterChild::~MasterChild() {
  if (pid_ > 0) EndChild(pid_);
  std::error_code ignored;
  if (!dir_.empty()) std::filesystem::remove_all(dir_, ignored);
}

double MasterChild::CpuSeconds() const { return TreeCpuSeconds(pid_); }

}  // namespace stepwell::bench
