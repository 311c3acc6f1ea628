#include "storage/private_postgres_config.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"

namespace stepwell {
namespace {

constexpr std::int64_t kSharedBuffersMax = std::int64_t{1} << 30;
constexpr std::int64_t kSharedBuffersMin = std::int64_t{8} << 20;

absl::Status WriteAll(int fd, const std::string& path, const std::string& text) {
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = write(fd, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      return absl::UnavailableError(absl::StrCat(path, ": ", std::strerror(errno)));
    }
    written += count;
  }
  return absl::OkStatus();
}

// The folder belongs to the server's user while we may be root: a new file is made under a fresh
// name that nobody prepared (O_EXCL, O_NOFOLLOW), then renamed over the old one.
absl::Status ReplaceFile(const PostgresCluster& cluster, const std::string& path,
                         const std::string& text) {
  const std::string fresh = path + ".new";
  unlink(fresh.c_str());
  const OwnedFd fd(open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (fd.get() < 0 || fchown(fd.get(), cluster.account.uid, cluster.account.gid) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(fresh, ": ", std::strerror(errno)));
  }
  STEPWELL_RETURN_IF_ERROR(WriteAll(fd.get(), fresh, text));
  if (fdatasync(fd.get()) != 0 || rename(fresh.c_str(), path.c_str()) != 0) {
    return absl::UnavailableError(absl::StrCat(path, ": ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

std::string Quoted(const std::string& value) {
  return absl::StrCat("'", absl::StrReplaceAll(value, {{"'", "''"}, {"\\", "\\\\"}}), "'");
}

std::int64_t SharedBuffersBytes(const PrivatePostgres::Options& options) {
  if (options.shared_buffers_bytes > 0) return options.shared_buffers_bytes;
  const std::int64_t memory =
      static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  return std::clamp(memory / 4, kSharedBuffersMin, kSharedBuffersMax);
}

std::string Settings(const PostgresCluster& cluster, const PrivatePostgres::Options& options) {
  std::string text = absl::StrCat(
      "# Written by stepwell at every start. Use ALTER SYSTEM for settings of your own.\n"
      "listen_addresses = ''\n"
      "port = 5432\n"
      "unix_socket_directories = ",
      Quoted(cluster.socket_directory),
      "\n"
      "unix_socket_permissions = 0700\n"
      // Compiling a plan costs more than any of our queries runs.
      "jit = off\n"
      "shared_buffers = ",
      SharedBuffersBytes(options) / 1024,
      "kB\n"
      // 4 GB: some minutes of the heaviest load between checkpoints, after each of which pages are logged whole
      // once; ten seconds of recovery or so.
      "max_wal_size = '4GB'\n"
      "log_destination = 'stderr'\n"
      "logging_collector = off\n"
      "log_line_prefix = '%m [%p] %b '\n");
  if (options.durability == PrivatePostgres::Options::Durability::kForTests) {
    text += "fsync = off\n";
  }
  for (const auto& [name, value] : options.settings) {
    absl::StrAppend(&text, name, " = ", Quoted(value), "\n");
  }
  return text;
}

std::string IdentMap(const PostgresCluster& cluster) {
  std::set<std::string> names = {"root", cluster.account.name};
  if (const std::string ours = AccountName(geteuid()); !ours.empty()) names.insert(ours);
  std::string text = "# map  system user  database role\n";
  for (const std::string& name : names) {
    absl::StrAppend(&text, "stepwell  \"", name, "\"  ", kPrivateRole, "\n");
  }
  return text;
}

// Builds without lz4 refuse the setting; asked once, the server itself answers.
bool KnowsLz4(const PostgresCluster& cluster, const std::string& data_directory) {
  return RunProgram({cluster.binaries.postgres, "-D", data_directory, "-c", "wal_compression=lz4",
                     "-C", "wal_compression"},
                    cluster.account)
      .ok();
}

}  // namespace

absl::Status WriteStaticConfig(const PostgresCluster& cluster, const std::string& data_directory) {
  const std::string path = data_directory + "/postgresql.conf";
  const std::string text =
      absl::StrCat("wal_compression = ", KnowsLz4(cluster, data_directory) ? "lz4" : "on",
                   "\ninclude_if_exists = 'stepwell.conf'\n");
  const OwnedFd fd(open(path.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
  if (fd.get() < 0) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": ", std::strerror(errno)));
  }
  return WriteAll(fd.get(), path, text);
}

absl::Status WriteConfig(const PostgresCluster& cluster, const PrivatePostgres::Options& options) {
  const std::string& data = cluster.data_directory;
  STEPWELL_RETURN_IF_ERROR(
      ReplaceFile(cluster, data + "/stepwell.conf", Settings(cluster, options)));
  STEPWELL_RETURN_IF_ERROR(ReplaceFile(cluster, data + "/pg_ident.conf", IdentMap(cluster)));
  return ReplaceFile(cluster, data + "/pg_hba.conf",
                     "local all all peer map=stepwell\n"
                     "local replication all peer map=stepwell\n"
                     "host all all all reject\n");
}

}  // namespace stepwell
