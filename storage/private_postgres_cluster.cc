#include "storage/private_postgres_cluster.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "storage/private_postgres_config.h"

namespace stepwell {
namespace {

namespace fs = std::filesystem;

constexpr char kSocketName[] = "/.s.PGSQL.5432";

absl::Status FileError(const std::string& path, int error) {
  return absl::FailedPreconditionError(absl::StrCat(path, ": ", std::strerror(error)));
}

absl::Status MakeDirectory(const std::string& directory) {
  std::error_code error;
  if (fs::is_directory(directory, error)) return absl::OkStatus();
  fs::create_directories(fs::path(directory).parent_path(), error);
  // As root the server's user must pass through; it and others see nothing but known names.
  const mode_t mode = geteuid() == 0 ? 0711 : 0700;
  if (mkdir(directory.c_str(), mode) != 0 || chmod(directory.c_str(), mode) != 0) {
    return FileError(directory, errno);
  }
  return absl::OkStatus();
}

absl::StatusOr<OwnedFd> TakeLock(const std::string& directory) {
  const std::string path = directory + "/lock";
  OwnedFd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock.get() < 0) return FileError(path, errno);
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    char text[32] = {};
    (void)!pread(lock.get(), text, sizeof(text) - 1, 0);
    return absl::FailedPreconditionError(
        absl::StrCat("data directory ", directory, " is in use by process ", std::atoi(text),
                     "; stop that one, or choose another --data-dir"));
  }
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(lock.get(), 0) != 0 || pwrite(lock.get(), pid.data(), pid.size(), 0) < 0) {
    return FileError(path, errno);
  }
  return lock;
}

// Makes `directory` if missing. An existing one must be a real directory of the account, closed to
// others: a short one lies in a folder where anybody may create names.
absl::Status MakePrivate(const std::string& directory, const PostgresAccount& account) {
  if (mkdir(directory.c_str(), 0700) == 0) {
    if (chown(directory.c_str(), account.uid, account.gid) != 0) return FileError(directory, errno);
    return absl::OkStatus();
  }
  struct stat found {};
  if (lstat(directory.c_str(), &found) != 0) return FileError(directory, errno);
  if (S_ISDIR(found.st_mode) && found.st_uid == account.uid && (found.st_mode & 0077) == 0) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "%s must be a directory of user %s with mode 0700; remove it, or `chown -R %s %s`", directory,
      account.name, account.name, directory));
}

std::string SocketDirectory(const std::string& directory) {
  const std::string preferred = directory + "/socket";
  if (preferred.size() + std::strlen(kSocketName) < sizeof(sockaddr_un::sun_path)) return preferred;
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const bool usable = geteuid() != 0 && runtime != nullptr && std::strlen(runtime) < 64;
  // Named after the directory, so that the next start finds a server that outlived its master.
  return absl::StrFormat("%s/stepwell-%d-%016x", usable ? runtime : "/tmp", geteuid(),
                         std::hash<std::string>()(directory));
}

// 0 when there is no data directory yet.
absl::StatusOr<int> MajorOfData(const std::string& data_directory) {
  std::ifstream file(data_directory + "/PG_VERSION");
  int major = 0;
  if (file >> major) return major;
  std::error_code error;
  if (!fs::exists(data_directory, error) || fs::is_empty(data_directory, error)) return 0;
  return absl::FailedPreconditionError(
      absl::StrCat(data_directory, " is not a PostgreSQL data directory (no PG_VERSION in it); ",
                   "move it away, or choose another --data-dir"));
}

absl::Status CheckMajor(const PostgresCluster& cluster, int data_major) {
  if (data_major == 0 || data_major == cluster.binaries.major) return absl::OkStatus();
  const std::string& data = cluster.data_directory;
  return absl::FailedPreconditionError(absl::StrFormat(
      "%s was made by PostgreSQL %d, the server found is version %d. Install version %d beside it "
      "(Debian: apt-get install postgresql-%d) and it is used; or move to version %d: dump with "
      "the "
      "old one (pg_dumpall), move %s away, restore into the new; or run pg_upgrade "
      "--old-datadir=%s",
      data, data_major, cluster.binaries.major, data_major, data_major, cluster.binaries.major,
      data, data));
}

// initdb into a folder of its own that gets its name when it is whole: a crash leaves no half.
absl::Status Initialise(const PostgresCluster& cluster, const std::string& partial,
                        PrivatePostgres::Options::Durability durability) {
  std::error_code error;
  fs::remove_all(partial, error);
  STEPWELL_RETURN_IF_ERROR(MakePrivate(partial, cluster.account));
  std::vector<std::string> command = {
      cluster.binaries.initdb, "--pgdata=" + partial, absl::StrCat("--username=", kPrivateRole),
      "--encoding=UTF8",       "--no-locale",         "--data-checksums",
      "--auth-local=peer",     "--auth-host=reject"};
  if (durability == PrivatePostgres::Options::Durability::kForTests) command.push_back("--no-sync");
  const auto output = RunProgram(command, cluster.account);
  if (!output.ok()) return Annotate(output.status(), "initdb");
  STEPWELL_RETURN_IF_ERROR(WriteStaticConfig(cluster, partial));
  fs::remove(cluster.data_directory, error);  // an empty one, seen by MajorOfData
  if (rename(partial.c_str(), cluster.data_directory.c_str()) != 0) {
    return FileError(cluster.data_directory, errno);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<PostgresCluster>> PostgresCluster::Prepare(
    const PrivatePostgres::Options& options) {
  auto cluster = std::make_unique<PostgresCluster>();
  std::string directory = fs::absolute(options.directory).lexically_normal().string();
  if (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  cluster->data_directory = directory + "/pg";
  cluster->log_file = directory + "/postgres.log";
  cluster->socket_directory = SocketDirectory(directory);
  STEPWELL_ASSIGN_OR_RETURN(cluster->account, FindPostgresAccount(options.user));
  STEPWELL_ASSIGN_OR_RETURN(const int data_major, MajorOfData(cluster->data_directory));
  STEPWELL_ASSIGN_OR_RETURN(cluster->binaries,
                            FindPostgresBinaries(options.binary_directory, data_major));
  STEPWELL_RETURN_IF_ERROR(CheckMajor(*cluster, data_major));
  STEPWELL_RETURN_IF_ERROR(MakeDirectory(directory));
  STEPWELL_ASSIGN_OR_RETURN(cluster->lock, TakeLock(directory));
  STEPWELL_RETURN_IF_ERROR(CheckReachable(cluster->account, directory));
  if (data_major == 0) {
    STEPWELL_RETURN_IF_ERROR(Initialise(*cluster, directory + "/pg.partial", options.durability));
  }
  STEPWELL_RETURN_IF_ERROR(MakePrivate(cluster->data_directory, cluster->account));
  STEPWELL_RETURN_IF_ERROR(MakePrivate(cluster->socket_directory, cluster->account));
  STEPWELL_RETURN_IF_ERROR(WriteConfig(*cluster, options));
  return cluster;
}

void PostgresCluster::Unlock() {
  // Leaves nothing behind in /tmp; a directory that is not empty stays.
  rmdir(socket_directory.c_str());
  lock = OwnedFd();
}

std::string PostgresCluster::Url(const std::string& database) const {
  std::string host;
  for (const char c : socket_directory) {
    const bool plain = absl::ascii_isalnum(c) || c == '/' || c == '-' || c == '_' || c == '.';
    host += plain ? std::string(1, c) : absl::StrFormat("%%%02X", static_cast<unsigned char>(c));
  }
  return absl::StrCat("postgresql://", kPrivateRole, "@/", database, "?host=", host,
                      // psql of Debian, and PGPORT, would look for another one there.
                      "&port=5432");
}

}  // namespace stepwell
