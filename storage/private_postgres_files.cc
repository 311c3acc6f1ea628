#include "storage/private_postgres_files.h"

#include <signal.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLogBytesMax = std::int64_t{16} << 20;
constexpr std::int64_t kLastWordsBytes = 16 * 1024;

// "2026-01-01 10:00:00.000 UTC [12] FATAL:  no room" gives "no room".
std::string AfterSeverity(const std::string& line) {
  const std::size_t at = line.find(":  ");
  return at == std::string::npos ? line : line.substr(at + 3);
}

}  // namespace

PidFile ReadPidFile(const std::string& data_directory) {
  std::ifstream file(data_directory + "/postmaster.pid");
  PidFile found;
  std::string line;
  for (int number = 1; number <= 8 && std::getline(file, line); ++number) {
    std::istringstream words(line);
    // A negative pid marks a single-user backend.
    if (number == 1 && !(words >> found.pid)) found.pid = 0;
    std::int64_t key = 0;
    if (number == 7 && !(words >> key >> found.shared_memory_id)) found.shared_memory_id = -1;
    if (number == 8) found.is_stopping = absl::StartsWith(line, "stopping");
  }
  return found;
}

bool IsServerOf(pid_t pid, const std::string& data_directory) {
  if (pid <= 0 || kill(pid, 0) != 0) return false;
  std::error_code error;
  const fs::path working = fs::read_symlink(absl::StrCat("/proc/", pid, "/cwd"), error);
  if (error) return false;
  const fs::path ours = fs::canonical(data_directory, error);
  if (error || working != ours) return false;
  std::ifstream comm(absl::StrCat("/proc/", pid, "/comm"));
  std::string name;
  std::getline(comm, name);
  return name == "postgres" || name == "postmaster";
}

bool SharedMemoryInUse(const PidFile& file) {
  if (file.shared_memory_id < 0 || (file.pid > 0 && kill(file.pid, 0) == 0)) return false;
  shmid_ds segment{};
  return shmctl(file.shared_memory_id, IPC_STAT, &segment) == 0 && segment.shm_nattch > 0;
}

std::int64_t LogBytes(const PostgresCluster& cluster) {
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(cluster.log_file, error);
  return error ? 0 : static_cast<std::int64_t>(bytes);
}

void TrimLog(const PostgresCluster& cluster) {
  if (LogBytes(cluster) <= kLogBytesMax) return;
  std::error_code ignored;
  fs::copy_file(cluster.log_file, cluster.log_file + ".1", fs::copy_options::overwrite_existing,
                ignored);
  // The server appends: after the cut it goes on at the new end.
  fs::resize_file(cluster.log_file, 0, ignored);
}

std::string LastWords(const PostgresCluster& cluster, std::int64_t offset) {
  std::ifstream log(cluster.log_file);
  const std::int64_t bytes = LogBytes(cluster);
  log.seekg(std::max<std::int64_t>({0, bytes < offset ? 0 : offset, bytes - kLastWordsBytes}));
  std::string line;
  std::string fatal;
  while (std::getline(log, line)) {
    // The panic says more than the deaths of others that follow it.
    const bool panic = absl::StrContains(line, "PANIC:  ");
    const bool own =
        absl::StrContains(line, "FATAL:  ") && !absl::StrContains(line, "] client backend ");
    if (panic || (own && fatal.empty())) fatal = line;
  }
  std::string words = AfterSeverity(fatal);
  if (absl::StrContains(words, "No space left on device")) {
    absl::StrAppend(&words, " (the disk that holds ", cluster.data_directory, " is full)");
  }
  return words;
}

}  // namespace stepwell
