// MasterLinks: the ways to the masters that the writers of one root asked for: for each address one
// Sender and one Stream, made when the first writer needs it and ended when the last one is gone.
// Confined to the agent's loop; the streams' threads call `on_answer`.
//
//   MasterLinks links({.server = "127.0.0.1:7817"}, clock, [&] { loop.Wake(); });
//   Sender& sender = links.SenderTo(links.Resolve(identity.server));
//   links.Tend();     // each visit
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "client/agent/sender.h"
#include "client/agent/stream.h"

namespace stepwell::agent {

class MasterLinks {
 public:
  struct Options {
    // Of writers that name none. "offline": these stay in the spool.
    std::string server;
    // Also of writers that name another, or "offline".
    bool server_for_all = false;
    // Of all of them; null: plain.
    std::shared_ptr<TlsReload> tls = nullptr;
    // What the agent shows to a master for itself, within TLS; on the streams' threads.
    std::function<std::string(const std::string& server)> token = [](const std::string&) {
      return std::string();
    };
    // A stream is a connection and two threads. Writers of further masters wait in their spools.
    int stream_count_max = 16;
  };

  // `clock` outlives the links.
  MasterLinks(Options options, const Clock& clock, std::function<void()> on_answer);
  ~MasterLinks() { Stop(); }

  // Where a writer that asked for `server` goes: an address, or "offline"; that also for what is no
  // address, so that its samples are kept for an upload.
  std::string Resolve(const std::string& server) const;
  // REQUIRES: `server` was resolved. Lives as long as a writer is on it, and until the next Tend.
  Sender& SenderTo(const std::string& server);

  // Starts the streams that are needed, wakes them, ends those that nobody uses.
  void Tend();
  // Cuts all connections. Nothing is started after it.
  void Stop();
  int stream_count() const;
  // By address: why it cannot be reached now.
  std::map<std::string, std::string> troubles() const;

 private:
  struct Link {
    Sender sender;
    std::unique_ptr<Stream> stream;  // null offline, or while there are too many
  };
  void StartStreams();

  const Options options_;
  const Clock& clock_;
  const std::function<void()> on_answer_;
  std::map<std::string, std::unique_ptr<Link>> links_;  // by address
  bool stopped_ = false;
  absl::Duration waiting_logged_ = -absl::InfiniteDuration();
};

}  // namespace stepwell::agent
