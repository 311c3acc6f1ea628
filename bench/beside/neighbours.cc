#include "bench/beside/neighbours.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "bench/load/made_up_chunks.h"
#include "storage/private_postgres_binaries.h"

extern char** environ;

namespace stepwell::bench {
namespace {

// A thread that works until it is told to stop.
class Working : public Neighbour {
 public:
  absl::Status End() override {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return result_;
  }

 protected:
  // Last in the constructor of whoever works, and End first in its destructor.
  void Begin() {
    thread_ = std::thread([this] { result_ = Work(); });
  }
  virtual absl::Status Work() = 0;
  bool stopped() const { return stop_; }

 private:
  std::atomic<bool> stop_ = false;
  absl::Status result_ = absl::OkStatus();
  std::thread thread_;
};

class ShortLives final : public Working {
 public:
  ShortLives(std::string address, std::string trial)
      : address_(std::move(address)), trial_(std::move(trial)) {
    Begin();
  }
  ~ShortLives() override { End().IgnoreError(); }

 private:
  static constexpr int kWriters = 4;
  static constexpr int kChunksPerLife = 10;
  static constexpr ChunkShape kShape{
      .series_count = 100, .tick_count = 10, .tick_interval_us = 10'000};
  struct Life {
    MadeUpChunks chunks;
    LoadStream stream;
    int left;
  };

  absl::Status Work() override {
    std::array<std::unique_ptr<Life>, kWriters> lives;
    absl::Time due = absl::Now();
    while (!stopped()) {
      for (std::size_t i = 0; i < lives.size(); ++i) {
        STEPWELL_RETURN_IF_ERROR(Step(static_cast<int>(i), lives[i]));
        due += absl::Milliseconds(25);
        absl::SleepFor(due - absl::Now());
      }
    }
    for (auto& life : lives) {
      if (life != nullptr) STEPWELL_RETURN_IF_ERROR(Close(life));
    }
    return lives_count_ > 0 ? absl::OkStatus() : absl::InternalError("no writer came and went");
  }

  absl::Status Step(int rank, std::unique_ptr<Life>& life) {
    if (life == nullptr) {
      MadeUpChunks chunks(kShape, seed_++);
      std::vector<v1::Definition> definitions = chunks.definitions();
      // They do not all close at one time.
      life.reset(new Life{std::move(chunks),
                          {address_, trial_, rank, std::move(definitions)},
                          lives_count_ < kWriters ? 2 * (rank + 1) : kChunksPerLife});
      STEPWELL_RETURN_IF_ERROR(life->stream.Open());
      ++lives_count_;
    }
    STEPWELL_RETURN_IF_ERROR(life->stream.Send(life->chunks.Next()));
    return --life->left > 0 ? absl::OkStatus() : Close(life);
  }

  static absl::Status Close(std::unique_ptr<Life>& life) {
    const absl::Status closed = life->stream.Finish(LoadStream::Ending::kClose);
    life.reset();
    return closed;
  }

  const std::string address_;
  const std::string trial_;
  int seed_ = 1000;
  int lives_count_ = 0;
};

class Sweeps final : public Working {
 public:
  Sweeps(AdminClient& admin, std::string trial) : admin_(admin), trial_(std::move(trial)) {
    Begin();
  }
  ~Sweeps() override { End().IgnoreError(); }

 private:
  absl::Status Work() override {
    std::int64_t sample_count = 0;
    while (!stopped()) {
      STEPWELL_ASSIGN_OR_RETURN(const std::int64_t swept, admin_.Sweep(trial_));
      sample_count += swept;
      for (int i = 0; i < 10 && !stopped(); ++i) absl::SleepFor(absl::Milliseconds(50));
    }
    return sample_count > 0 ? absl::OkStatus() : absl::InternalError("sweeps removed nothing");
  }

  AdminClient& admin_;
  const std::string trial_;
};

class Snapshot final : public Neighbour {
 public:
  explicit Snapshot(const std::string& database_url) {
    auto sql = PgConnection::Open({.url = database_url, .application_name = "psql"});
    status_ = sql.status();
    if (!sql.ok()) return;
    sql_ = *std::move(sql);
    status_ = sql_->ExecScript(
        "begin isolation level repeatable read; select count(*) from stepwell.usage");
  }
  absl::Status End() override {
    if (!status_.ok()) return status_;
    return sql_->ExecScript("select count(*) from stepwell.usage; commit");
  }

 private:
  std::unique_ptr<PgConnection> sql_;
  absl::Status status_;
};

class Dump final : public Neighbour {
 public:
  explicit Dump(const std::string& database_url) {
    const auto binaries = FindPostgresBinaries("", 0);
    if (!binaries.ok()) return;
    const std::string pg_dump =
        binaries->postgres.substr(0, binaries->postgres.rfind('/')) + "/pg_dump";
    std::string loop =
        absl::StrCat("while '", pg_dump, "' --dbname='", database_url, "' >/dev/null; do :; done");
    std::string shell = "/bin/sh", option = "-c";
    char* words[] = {shell.data(), option.data(), loop.data(), nullptr};
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    // Ended with what it started.
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    if (posix_spawn(&pid_, words[0], nullptr, &attributes, words, environ) != 0) pid_ = 0;
    posix_spawnattr_destroy(&attributes);
  }
  ~Dump() override { End().IgnoreError(); }

  absl::Status End() override {
    if (pid_ == 0) return absl::InternalError("pg_dump does not start");
    const bool ended = waitpid(pid_, nullptr, WNOHANG) != 0;
    if (!ended) {
      kill(-pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    pid_ = 0;
    return ended ? absl::InternalError("pg_dump failed") : absl::OkStatus();
  }

 private:
  pid_t pid_ = 0;
};

}  // namespace

std::unique_ptr<Neighbour> StartShortLives(const std::string& address, const std::string& trial) {
  return std::make_unique<ShortLives>(address, trial);
}
std::unique_ptr<Neighbour> StartSweeps(AdminClient& admin, const std::string& trial) {
  return std::make_unique<Sweeps>(admin, trial);
}
std::unique_ptr<Neighbour> StartSnapshot(const std::string& database_url) {
  return std::make_unique<Snapshot>(database_url);
}
std::unique_ptr<Neighbour> StartDump(const std::string& database_url) {
  return std::make_unique<Dump>(database_url);
}

}  // namespace stepwell::bench
