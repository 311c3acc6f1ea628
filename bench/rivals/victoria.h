// Victoria: a VictoriaMetrics of Debian's on loopback, in a fresh directory, and requests to it. Stopped
// and removed on destruction. Confined to one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/rivals/remote_load.h"

namespace stepwell::bench {

class Victoria {
 public:
  static absl::StatusOr<Victoria> Start(const std::string& binary);
  Victoria(Victoria&& other) noexcept;
  Victoria& operator=(Victoria&&) = delete;
  ~Victoria();

  // Keeps its connection open. Confined to one thread.
  class Connection {
   public:
    explicit Connection(int port);
    ~Connection();
    // The body of the answer; an error unless it is of the class 2xx.
    absl::StatusOr<std::string> Get(const std::string& target);
    absl::Status PostRemoteWrite(const std::string& packed);

   private:
    struct Socket;
    const std::unique_ptr<Socket> socket_;
  };

  // Ends it as its manual says, which keeps its caches, and starts it again on the same data and port.
  absl::Status Restart();
  int port() const { return port_; }
  double CpuSeconds() const;
  // Two connections, each with half of the writers, writer by writer as samples come.
  absl::Status Load(const RemoteLoad& load);
  // What it has in memory goes to disk and can be read.
  absl::Status Flush();
  // It has so many samples of the field value, and of the field batch.
  absl::Status CheckHeld(std::int64_t sample_count);
  // What data and index take on disk once all is written and merged.
  absl::StatusOr<std::int64_t> StoredBytes();

 private:
  Victoria() = default;
  absl::Status Spawn();
  absl::Status Send(const std::vector<const std::vector<std::string>*>& writers) const;
  pid_t pid_ = 0;
  int port_ = 0;
  std::string dir_;
  std::vector<std::string> words_;
};

// Of all files below it.
std::int64_t BytesBelow(const std::string& directory);

}  // namespace stepwell::bench
