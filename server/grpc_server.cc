#include "server/grpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "proto/request_traits.h"  // how what comes is parsed
#include "server/grpc_answers.h"
#include "server/grpc_deadline.h"
#include "server/grpc_tls.h"
#include "server/limits.h"
#include "server/memory_pressure.h"
#include "server/peer_address.h"
#include "server/rate_limits.h"

namespace stepwell {
namespace {

constexpr int kMessageSendBytesMax = 64 << 20;
// Before strangers are looked at again.
constexpr int kAcceptsPerTurn = 64;

void SetArguments(grpc::ServerBuilder& builder, const GrpcServer::Options& options) {
  builder.SetMaxReceiveMessageSize(static_cast<int>(kMessageReadBytesMax));
  builder.SetMaxSendMessageSize(kMessageSendBytesMax);
  // Agents ping every 20 s while a stream is open; a little leeway for their clocks.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 100);
  // Else a stream's grows by what a fast connection could have under way, to megabytes that lie here while nothing of
  // them can be taken.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES,
                             static_cast<int>(options.window_bytes));
  // What a socket is read into at once: gRPC's own 4 MiB would lie there for each connection that was fast once.
  builder.AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE,
                             static_cast<int>(options.window_bytes));
  // ChannelzCalls asks for its counters; nothing is kept of their history.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 1);
  builder.AddChannelArgument(GRPC_ARG_MAX_CHANNEL_TRACE_EVENT_MEMORY_PER_NODE, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 16 << 10);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10'000);
  grpc::ResourceQuota quota("stepwell");
  quota.SetMaxThreads(options.threads_max);
  quota.Resize(static_cast<std::size_t>(options.quota_bytes));
  builder.SetResourceQuota(quota);
}

// The kernel gives the lowest number that is free: one beyond this tells that nearly all are in use. Files, the
// database and the port of HTTP want some, too.
int DescriptorsForConnections() {
  constexpr rlim_t kReserve = 256;
  constexpr rlim_t kMany = 1 << 30;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return static_cast<int>(kMany);
  const rlim_t count = std::min(limit.rlim_cur, kMany);
  return static_cast<int>(count - std::min(kReserve, count / 4));
}

// As poll() wants it; -1: for ever.
int PollTime(SteadyTime until) {
  const absl::Duration left = until.Left();
  if (left == absl::InfiniteDuration()) return -1;
  return static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1))));
}

// Who links its library has reflection in each server of the process.
class WithoutReflection final : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    std::erase_if(*plugins,
                  [](const auto& one) { return one->name() == "proto_server_reflection"; });
  }
};

}  // namespace

GrpcServer::~GrpcServer() { Stop(SteadyTime::InfinitePast()); }

absl::Status GrpcServer::Bind() {
  STEPWELL_ASSIGN_OR_RETURN(ListenSocket socket, ListenSocket::Open(options_.host, options_.port));
  port_ = socket.port();
  descriptors_max_ = DescriptorsForConnections();
  socket_.emplace(std::move(socket));
  return absl::OkStatus();
}

absl::Status GrpcServer::Start(const AccessControl* access) {
  const bool asks = access != nullptr && access->asks();
  grpc::EnableDefaultHealthCheckService(!asks);
  static std::once_flag once;
  std::call_once(once, [] { grpc::reflection::InitProtoReflectionServerBuilderPlugin(); });
  grpc::ServerBuilder builder;
  SetArguments(builder, options_);
  if (asks) {
    std::vector<std::string> names;
    for (const NamedService& one : services_) names.push_back(one.name);
    doorkeeper_ = std::make_unique<GrpcDoorkeeper>(*access, names);
    builder.RegisterCallbackGenericService(doorkeeper_.get());
    builder.SetOption(std::make_unique<WithoutReflection>());
  }
  if (access != nullptr) builder.experimental().SetInterceptorCreators(CountAnswers(*access));
  for (const NamedService& one : services_) builder.RegisterService(one.service);
  credentials_ = options_.tls == nullptr ? grpc::InsecureServerCredentials()
                                         : GrpcTlsCredentials(options_.tls);
  using ServerBuilder = grpc::ServerBuilder::experimental_type;
  acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
      ServerBuilder::ExternalConnectionType::FROM_FD, credentials_);
  {
    const absl::MutexLock lock(&mu_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return absl::InternalError("gRPC did not start");
    if (!calls_.Begin()) return absl::InternalError("gRPC counts no calls");
  }
  SetServing(false);
  wake_fd_ = eventfd(0, EFD_CLOEXEC);
  worker_ = Worker("accept", [this] { AcceptLoop(); });
  return absl::OkStatus();
}

std::shared_ptr<grpc::Channel> GrpcServer::InProcessChannel() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMessageSendBytesMax);
  const absl::MutexLock lock(&mu_);
  return server_->InProcessChannel(arguments);
}

void GrpcServer::SetServing(bool serving) {
  const absl::MutexLock lock(&mu_);
  if (server_ == nullptr) return;
  if (doorkeeper_ != nullptr) return doorkeeper_->SetServing(serving);
  auto* health = server_->GetHealthCheckService();
  if (health == nullptr) return;
  // The whole, which is the empty name, and those that a client may ask for by theirs.
  health->SetServingStatus(serving);
  for (const NamedService& one : services_) health->SetServingStatus(one.name, serving);
}

void GrpcServer::AcceptLoop() {
  std::array<pollfd, 2> waits{pollfd{socket_->fd(), POLLIN, 0}, pollfd{wake_fd_, POLLIN, 0}};
  SteadyTime looked = SteadyTime::Now();
  SteadyTime asked = looked;
  const auto next_ask = [&] {
    return options_.on_look == nullptr ? SteadyTime::InfiniteFuture()
                                       : asked + MemoryPressure::kLookEach;
  };
  const auto next_look = [&] {
    return std::min(looked + strangers_.NextLook(), memory_debt_.due());
  };
  while (true) {
    // They wait in the backlog meanwhile.
    waits[0].events = strangers_.HasRoom() ? POLLIN : 0;
    if (poll(waits.data(), waits.size(), PollTime(std::min(next_look(), next_ask()))) < 0 &&
        errno != EINTR)
      return;
    if (waits[1].revents != 0) return;
    if (waits[0].revents != 0) {
      for (int i = 0; i < kAcceptsPerTurn && strangers_.HasRoom() && AcceptOne();) ++i;
    }
    if (next_ask().HasPassed()) {
      asked = SteadyTime::Now();
      options_.on_look(asked);
    }
    if (!next_look().HasPassed()) continue;
    LookAtStrangers(SteadyTime::Now());
    // Of its end, so that newcomers have their turn however long one takes.
    looked = SteadyTime::Now();
  }
}

void GrpcServer::LookAtStrangers(SteadyTime now) {
  const StrangerWatch::Looked looked = strangers_.Look(now);
  for (const auto& each : looked.ended) TellEnded(each.address, each.why);
  memory_debt_.Owe(looked.freed_bytes, now);
  if (!memory_debt_.IsDue(now)) return;
  malloc_trim(0);
  memory_debt_.Pay(now);
}

bool GrpcServer::AcceptOne() {
  sockaddr_storage peer{};
  socklen_t bytes = sizeof peer;
  const int fd = accept4(socket_->fd(), reinterpret_cast<sockaddr*>(&peer), &bytes,
                         SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      const int error = errno;
      if (const auto others = failed_log_.MaySay(SteadyTime::Now())) {
        log::Warning("accept_failed", {{"errno", error}, {"others_since", *others}});
      }
      // The connection waits in the backlog meanwhile.
      absl::SleepFor(absl::Milliseconds(50));
    }
    return false;
  }
  const std::string address = AddressOfSocket(reinterpret_cast<const sockaddr&>(peer));
  const std::string end = EndOfSocket(reinterpret_cast<const sockaddr&>(peer));
  if (const char* why = WhyNotTaken(fd, address, end); why != nullptr) {
    RefuseConnection(fd, address, why);
    return true;
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  connections_[address].push_back(ConnectionSocket::Of(fd));
  Acceptor::NewConnectionParameters handed;
  handed.listener_fd = socket_->fd();
  handed.fd = fd;
  acceptor_->HandleNewConnection(&handed);
  return true;
}

const char* GrpcServer::WhyNotTaken(int fd, const std::string& address, const std::string& end) {
  if (fd >= descriptors_max_) return "the master has few descriptors left";
  if (!HasPlace(address)) return "too many of this address";
  if (doorkeeper_ == nullptr) return nullptr;
  RateLimits* const rates = options_.rates.get();
  if (rates != nullptr && !rates->MayConnect(address)) return "too many new ones";
  // Behind an address that many share each is one of its own.
  const bool is_shared = rates != nullptr && rates->IsShared(address);
  const char* why =
      strangers_.Add(end, is_shared ? end : address, ConnectionSocket::Of(fd), SteadyTime::Now());
  if (why != nullptr && rates != nullptr) rates->NoteStranger();
  return why;
}

void GrpcServer::RefuseConnection(int fd, const std::string& address, const char* why) {
  close(fd);
  if (const auto others = refused_log_.MaySay(SteadyTime::Now())) {
    log::Warning("connection_refused",
                 {{"address", address}, {"why", why}, {"others_since", *others}});
  }
}

void GrpcServer::TellEnded(const std::string& address, const char* why) {
  if (options_.rates != nullptr) options_.rates->NoteStranger();
  if (const auto others = ended_log_.MaySay(SteadyTime::Now())) {
    log::Warning("connection_ended",
                 {{"address", address}, {"why", why}, {"others_since", *others}});
  }
}

bool GrpcServer::HasPlace(const std::string& address) {
  // Loopback is where many agents and tests share one address.
  const auto cap = static_cast<std::size_t>(options_.connections_per_address_max);
  auto& held = connections_[address];
  if (held.size() >= cap) {
    std::erase_if(held, [](const ConnectionSocket& each) { return each.IsGone(); });
  }
  // Addresses without connections are forgotten now and then.
  if (connections_.size() > 10'000) {
    for (auto at = connections_.begin(); at != connections_.end();) {
      std::erase_if(at->second, [](const ConnectionSocket& each) { return each.IsGone(); });
      at = at->second.empty() && at->first != address ? connections_.erase(at) : std::next(at);
    }
  }
  return held.size() < cap;
}

void GrpcServer::StopAccepting() {
  if (wake_fd_ < 0) return;
  const std::uint64_t one = 1;
  if (write(wake_fd_, &one, sizeof one) < 0) return;
  worker_.Join();
  socket_.reset();
  // Nobody looks any more: whoever is not known by now goes.
  strangers_.Look(SteadyTime::InfiniteFuture());
}

void GrpcServer::Stop(SteadyTime deadline) {
  StopAccepting();
  std::unique_ptr<grpc::Server> stopping;
  {
    const absl::MutexLock lock(&mu_);
    stopping = std::move(server_);
  }
  if (stopping != nullptr) {
    stopping->Shutdown(ToGrpcTime(deadline));
    stopping->Wait();
  }
  if (wake_fd_ >= 0) close(wake_fd_);
  wake_fd_ = -1;
}

}  // namespace stepwell
