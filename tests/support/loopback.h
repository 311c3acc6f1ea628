// Ports of loopback, for tests that start what listens there.
#pragma once

#include <netinet/in.h>

#include <cstdint>

namespace stepwell::testing {

inline sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

// Free when asked. Below the range that the kernel gives to outgoing connections, so that none of
// them sits on it while what listens there is being restarted.
int FreePort();

// Takes connections and says nothing: who asks it waits.
class SilentListener {
 public:
  SilentListener();
  SilentListener(const SilentListener&) = delete;
  SilentListener& operator=(const SilentListener&) = delete;
  ~SilentListener();

  int port() const { return port_; }

 private:
  int fd_ = -1;
  int port_ = 0;
};

}  // namespace stepwell::testing
