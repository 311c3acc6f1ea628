// ConnectionCalls: how many calls a connection of gRPC has begun, those that ended among them. Nobody else knows of one that
// is reset before its message has come.
//
//   for (const CallCounter& each : calls.Since(id)) ...   // connections that are new
//   calls.Begun(each.id)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepwell {

struct CallCounter {
  std::string end;  // as EndOfSocket writes it
  std::int64_t id = 0;
};

// gRPC's own counters (ChannelzCalls), or what a test has for them. Thread-compatible.
class ConnectionCalls {
 public:
  virtual ~ConnectionCalls() = default;
  // Of connections that live and whose ids are no less; they grow, but for two that begin at once. One in its handshake has none.
  virtual std::vector<CallCounter> Since(std::int64_t id) = 0;
  // Nothing where it is gone.
  virtual std::optional<std::int64_t> Begun(std::int64_t id) = 0;
};

}  // namespace stepwell
