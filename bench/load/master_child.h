// MasterChild: a real `stepwell serve` on a private PostgreSQL in a fresh directory, for a bench.
// Stopped and removed on destruction. Confined to one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stepwell::bench {

class MasterChild {
 public:
  // `binary` is the path of the stepwell executable, `flags` go behind `serve`. Waits until the
  // master is ready.
  static absl::StatusOr<MasterChild> Start(const std::string& binary,
                                           std::vector<std::string> flags = {});
  MasterChild(MasterChild&& other) noexcept;
  MasterChild& operator=(MasterChild&&) = delete;
  ~MasterChild();

  const std::string& grpc_address() const { return grpc_address_; }
  const std::string& http_address() const { return http_address_; }
  // Of its private PostgreSQL.
  const std::string& database_url() const { return database_url_; }
  std::string data_dir() const { return dir_ + "/data"; }
  // Seconds from start to ready.
  double ready_seconds() const { return ready_seconds_; }
  // SIGKILL, then a new master on the same directory.
  absl::Status KillAndRestart();
  pid_t pid() const { return pid_; }
  // User and system time of the master and all processes below it, so far.
  double CpuSeconds() const;

 private:
  MasterChild() = default;
  absl::Status Spawn();

  std::vector<std::string> words_;
  pid_t pid_ = 0;
  std::string dir_;
  double ready_seconds_ = 0;
  std::string grpc_address_;
  std::string http_address_;
  std::string database_url_;
};

}  // namespace stepwell::bench
