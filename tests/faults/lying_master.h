// LyingMaster: an IngestService that answers as the contract wants it, and lies: it opens whatever comes, stores nothing, and
// acks far more than it was sent. On a port of loopback until it is destroyed. Thread-safe.
//
//   LyingMaster liar;
//   scene.StartAgent(liar.address());
//   ... liar.lie_count() ...
#pragma once

#include <memory>
#include <string>

namespace stepwell::faults {

class LyingMaster {
 public:
  LyingMaster();
  ~LyingMaster();
  LyingMaster(const LyingMaster&) = delete;
  LyingMaster& operator=(const LyingMaster&) = delete;

  // "127.0.0.1:PORT".
  std::string address() const;
  // Acks that it told.
  int lie_count() const;

 private:
  class Service;
  const std::unique_ptr<Service> service_;
};

}  // namespace stepwell::faults
