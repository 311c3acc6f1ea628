#include "tests/faults/others_postgres.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "storage/private_postgres_account.h"
#include "storage/private_postgres_binaries.h"
#include "storage/private_postgres_process.h"
#include "tests/support/child_process.h"

namespace stepwell::faults {

OthersPostgres::~OthersPostgres() {
  if (pid_ > 0) {
    kill(pid_, SIGQUIT);
    kill(pid_, SIGCONT);
  }
  testing::Eventually([this] { return HasEnded(); }, absl::Seconds(30));
}

std::string OthersPostgres::Start() {
  const auto account = FindPostgresAccount("");
  if (!account.ok()) return account.status().ToString();
  const auto binaries = FindPostgresBinaries("", /*major=*/0);
  if (!binaries.ok()) return binaries.status().ToString();
  // The private one took it away.
  const std::string sockets = directory_ + "/socket";
  mkdir(sockets.c_str(), 0700);
  if (chown(sockets.c_str(), account->uid, account->gid) != 0) return std::strerror(errno);
  const auto pid = StartServer({binaries->postgres, "-D", directory_ + "/pg"}, *account,
                               directory_ + "/postgres.log", "/");
  if (!pid.ok()) return pid.status().ToString();
  pid_ = *pid;
  return "";
}

void OthersPostgres::Signal(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

bool OthersPostgres::HasEnded() {
  if (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = 0;
  return pid_ == 0;
}

}  // namespace stepwell::faults
