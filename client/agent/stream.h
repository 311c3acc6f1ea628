// Stream: the agent's one gRPC stream to the master, and nothing else: it connects, for ever and
// with backoff, carries what Sender gives, and hands back what the master says. Thread-safe.
//
//   Stream stream({.server = "127.0.0.1:7817"}, sender, clock, [&] { loop.Wake(); });
//   stream.Start();
//   stream.Wake();   // there may be something to send
//   stream.Stop();
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/tls/tls_reload.h"
#include "base/worker.h"
#include "client/agent/reconnect_delay.h"
#include "client/agent/sender.h"

namespace grpc {
class ChannelCredentials;
class Status;
}  // namespace grpc

namespace stepwell::agent {

// What a connection to a master shows, a stream's or a call's. Null `tls`: plain, and nothing. Else TLS with the
// files of this moment, and `token` where it is not empty.
std::shared_ptr<grpc::ChannelCredentials> MasterCredentials(TlsReload* tls,
                                                            const std::string& token);

class Stream {
 public:
  struct Options {
    std::string server;
    // Null: plain. Asked at each connection.
    std::shared_ptr<TlsReload> tls = nullptr;
    ReconnectDelay::Options reconnect = {};
    // Nothing heard for so long although an answer is due: the connection is given up.
    absl::Duration silence_max = absl::Seconds(60);
    // A stopped master's machine, and a network that swallows all, keep a connection up: so often is
    // the master pinged, and so long may the answer take. The master takes pings from 10 s apart.
    absl::Duration ping_interval = absl::Seconds(20);
    absl::Duration ping_timeout = absl::Seconds(10);
    // Shown within TLS; asked at each connection. Empty = none.
    std::function<std::string()> token = [] { return std::string(); };
  };

  // `sender` and `clock` outlive the stream. `on_answer` is called on the receive thread after each
  // message of the master; it must not block.
  Stream(Options options, Sender& sender, const Clock& clock, std::function<void()> on_answer);
  ~Stream() { Stop(); }

  void Start();
  void Wake() ABSL_LOCKS_EXCLUDED(mu_);
  // Gives the connection up where nothing was heard for silence_max although an answer is due or a
  // message is stuck. Call it each second or so.
  void Tend() ABSL_LOCKS_EXCLUDED(mu_);
  // Cuts the connection and joins. Stopping twice is fine.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);
  // Why the master cannot be reached, as of the last try; empty = it answered, or there was none yet.
  std::string trouble() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Call;  // stream.cc: one connection's context and stream
  void Run();
  // One connection, from connect to its end; true if the master answered on it.
  bool RunCall();
  void SendUntilBroken(Call& call, const std::function<void()>& tend_clock);
  // All that there is to send now, in few packets. False: the connection is broken.
  bool SendRun(Call& call);
  bool Write(Call& call, const pb::StreamChunksRequest& message, bool is_last);
  bool IsOver(const Call& call) ABSL_LOCKS_EXCLUDED(mu_);
  void Receive(Call& call);
  // Waits for the master's first word, which comes before any message.
  void ReceiveIncarnation(Call& call);
  // Why `status` ended a connection, for people.
  std::string TroubleOf(const grpc::Status& status, const Call& call);
  void SetTrouble(std::string trouble) ABSL_LOCKS_EXCLUDED(mu_);
  // Until something may be to send, at most for a heartbeat's fraction.
  void WaitForWork();

  const Options options_;
  Sender& sender_;
  const Clock& clock_;
  const std::function<void()> on_answer_;
  ReconnectDelay reconnect_;
  absl::Duration asked_wait_;  // by the master, before the next try; these are confined, too
  std::string tls_trouble_;
  absl::Duration tls_looked_ = -absl::InfiniteDuration();
  absl::Duration failure_logged_ = -absl::InfiniteDuration();  // confined to the send thread

  mutable absl::Mutex mu_;
  std::string trouble_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool work_ ABSL_GUARDED_BY(mu_) = false;
  Call* call_ ABSL_GUARDED_BY(mu_) = nullptr;
  Worker worker_;
};

}  // namespace stepwell::agent
