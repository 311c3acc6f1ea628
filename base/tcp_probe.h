// TcpProbe: one TCP connection of its own to where another did not come about, to find out why. Blocks until its
// deadline at most, without what a name's look-up takes.
//
//   const TcpProbe probe("master.lab:7817", SteadyTime::Now() + absl::Seconds(3));
//   if (!probe.connected()) return probe.trouble();
#pragma once

#include <string>

#include "base/steady_time.h"

namespace stepwell {

class TcpProbe {
 public:
  // `address` is HOST:PORT; an IPv6 host stands in [ ].
  TcpProbe(const std::string& address, SteadyTime deadline);
  ~TcpProbe();
  TcpProbe(const TcpProbe&) = delete;
  TcpProbe& operator=(const TcpProbe&) = delete;

  bool connected() const { return fd_ >= 0; }
  // In a person's words: the last address's, of several that a name has. Empty where it is connected.
  const std::string& trouble() const { return trouble_; }
  // Without the brackets.
  const std::string& host() const { return host_; }
  // REQUIRES: connected(). Does not block; this owns it.
  int fd() const { return fd_; }
  // Until one of `events` of poll(2) is there: false where `deadline` passes first.
  static bool WaitFor(int fd, short events, SteadyTime deadline);

 private:
  std::string host_;
  std::string trouble_;
  int fd_ = -1;
};

}  // namespace stepwell
