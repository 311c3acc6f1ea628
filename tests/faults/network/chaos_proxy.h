// ChaosProxy: a TCP proxy on loopback that stands between clients and a server and is the network
// between them, as bad as its Weather. It invents, drops, repeats and reorders no byte: a connection
// either carries all of them in order, or ends. Thread-safe; one thread of its own.
//
//   ChaosProxy proxy(master.grpc_address(), seed);
//   scene.StartAgent(proxy.address());
//   proxy.Set("delay=300ms jitter=100ms");
//   proxy.LoseServer();   // the server's host starts anew without a word
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace stepwell::faults {

class ChaosProxy {
 public:
  struct Counts {
    std::uint64_t accepted = 0;
    // By its client, its server or a failed connect, not by the weather.
    std::uint64_t ended = 0;
    // By the weather: "reset" and "flap".
    std::uint64_t reset = 0;
    std::uint64_t bytes_up = 0;
    std::uint64_t bytes_down = 0;
    std::uint64_t writes_up = 0;
    std::uint64_t open = 0;
  };

  // Listens on a free port from here on. `server` is "127.0.0.1:PORT" and may be absent now and then.
  // Aborts where there is no port. `listen_host` is an IPv4 address of this machine.
  ChaosProxy(const std::string& server, std::uint64_t seed,
             const std::string& listen_host = "127.0.0.1");
  // Resets what is open.
  ~ChaosProxy();
  ChaosProxy(const ChaosProxy&) = delete;
  ChaosProxy& operator=(const ChaosProxy&) = delete;

  // "HOST:PORT", of the host that it listens on.
  const std::string& address() const;

  // For connections that are open and for new ones. Aborts where the words are none of Weather's.
  void Set(const std::string& weather);
  // Half-open: of connections that are open the other side is gone, this one is told nothing, and what
  // it sends goes nowhere. New ones are served.
  void LoseServer();
  void LoseClient();
  // RST to both sides of all that is open.
  void ResetAll();

  Counts counts() const;

 private:
  class Loop;
  const std::unique_ptr<Loop> loop_;
};

}  // namespace stepwell::faults
