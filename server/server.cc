#include "server/server.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "server/admin_service.h"
#include "server/clock_service.h"
#include "server/database_start.h"
#include "server/disk_watch.h"
#include "server/fold_loop.h"
#include "server/group_committer.h"
#include "server/grpc_server.h"
#include "server/host_port.h"
#include "server/http/connect_gateway.h"
#include "server/http/host_names.h"
#include "server/http/http_server.h"
#include "server/http/page_files.h"
#include "server/http/page_folder.h"
#include "server/http/page_settings.h"
#include "server/http/prometheus_door.h"
#include "server/http/ready_answer.h"
#include "server/http/rpc_channel.h"
#include "server/ingest_service.h"
#include "server/master_identity.h"
#include "server/master_metrics.h"
#include "server/memory_watch.h"
#include "server/ownership_loop.h"
#include "server/port_options.h"
#include "server/profiling_windows.h"
#include "server/query_service.h"
#include "server/rate_limits.h"
#include "server/rate_options.h"
#include "server/stop_watch_loop.h"
#include "server/sweep_loop.h"
#include "server/token_loop.h"
#include "server/token_service.h"
#include "server/trace_service.h"
#include "server/trial_keeper.h"
#include "stepwell/v1/query.grpc.pb.h"
#include "stepwell/v1/token.grpc.pb.h"
#include "stepwell/v1/trace.grpc.pb.h"
#include "storage/journal_ring.h"
#include "storage/pg_caps_store.h"
#include "storage/pg_cut.h"
#include "storage/pg_fold_store.h"
#include "storage/pg_ingest_store.h"
#include "storage/pg_reader.h"
#include "storage/pg_token_store.h"
#include "storage/pg_trace_store.h"
#include "storage/private_postgres.h"

namespace stepwell {
namespace {

// A drain: commit what is queued, write the acks, fold, end the calls. Together below 10 s.
constexpr absl::Duration kCommitWait = absl::Seconds(3);
constexpr absl::Duration kAckWait = absl::Milliseconds(500);
constexpr absl::Duration kFoldWait = absl::Seconds(4);
constexpr absl::Duration kCallWait = absl::Seconds(1);
// And what still waits for the database then is cut off: acked chunks lie in the journal, others with
// their clients.
constexpr absl::Duration kDatabaseWait = absl::Seconds(8);
// How long charts and newest values from memory go by what the database said of who owns it (owner_sight.h).
constexpr absl::Duration kOwnerKept = absl::Milliseconds(100);
// Of calls over HTTP: they turn messages into JSON and back, which takes some 50 ms for 100,000 values.
constexpr int kRpcThreads = 2;

}  // namespace

// In the order of their start; destroyed in reverse.
struct Server::Parts {
  explicit Parts(const MemoryShares& shares) : memory(shares) {}

  ServeOptions options;
  MemoryWatch memory;
  HostPort grpc_listen;
  HostPort http_listen;
  std::string master_id;
  const Clock& clock = RealClock::Get();
  MasterState state;
  IngestStats stats;
  std::optional<Heads> heads;
  RpcChannel rpc{kRpcThreads};
  std::optional<ConnectGateway> gateway;
  std::optional<PrometheusDoor> prometheus;
  std::shared_ptr<TlsReload> tls;
  std::shared_ptr<TokenGuard> tokens;
  std::shared_ptr<RateLimits> rates;
  std::optional<HttpServer> http;
  std::optional<GrpcServer> grpc;
  StartedDatabase database;
  // Of all connections that threads wait on.
  const std::shared_ptr<PgCut> cut = std::make_shared<PgCut>();
  const std::shared_ptr<JournalRing> ring = std::make_shared<JournalRing>();
  // Told by all stores, for the reader.
  const std::shared_ptr<BookChanges> book_changes = std::make_shared<BookChanges>();
  std::unique_ptr<PgIngestStore> ingest_store;
  std::unique_ptr<PgFoldStore> fold_store;
  std::optional<PgReader> reader;
  std::optional<PgCapsStore> caps_store;
  std::optional<PgCapsStore> window_store;
  std::optional<PgTraceStore> trace_store;
  std::optional<PgTokenStore> token_store;
  std::optional<AccessControl> access;
  std::optional<WriterRegistry> registry;
  std::optional<WriterDirector> director;
  std::optional<TraceCapturing> trace_capturing;
  std::optional<CommitQueue> queue;
  std::optional<GroupCommitter> committer;
  std::optional<FoldLoop> fold_loop;
  std::optional<SweepLoop> sweep_loop;
  std::optional<ProfilingWindows> windows;
  std::optional<TokenLoop> token_loop;
  std::optional<TrialKeeper> trial_keeper;
  std::optional<DiskWatch> disk_watch;
  // Of a database that is not our own: that one's supervisor knows.
  std::optional<StopWatchLoop> stop_watch;
  std::optional<OwnershipLoop> ownership;
  std::optional<IngestContext> context;
  std::optional<IngestService> ingest_service;
  std::optional<AdminService> admin_service;
  std::optional<QueryGrpcService> query_service;
  std::optional<QueryReads> trace_reads;
  std::optional<TraceGrpcService> trace_service;
  std::optional<TokenGrpcService> token_service;
  std::optional<ClockGrpcService> clock_service;
  bool serving = false;
  // The rooms are there, and stay until HTTP has stopped.
  std::atomic<bool> serves = false;

  absl::Status ReadCertificates();
  absl::Status Listen();
  absl::Status AddDoors();
  absl::StatusOr<bool> ReadsAll(const HttpRequest& request) const;
  MasterReading Read();
  absl::Status OpenStores(const std::function<bool()>& stop_asked);
  void MakeRooms();
  void MakeLoops();
  absl::Status Serve();
  void TellHealth();
  void WaitAcksWritten(SteadyTime deadline);
  void Drain();
};

absl::Status Server::Parts::ReadCertificates() {
  if (options.tls_cert.empty() && options.tls_key.empty() && options.tls_client_ca.empty()) {
    if (options.token_file.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        "--token-file wants --tls-cert and --tls-key: in plain everybody on the way reads the "
        "token");
  }
  if (options.tls_cert.empty() || options.tls_key.empty()) {
    return absl::FailedPreconditionError(
        "--tls-cert and --tls-key go together, and --tls-client-ca with both");
  }
  const TlsFiles files{options.tls_client_ca, options.tls_cert, options.tls_key};
  auto opened = TlsReload::Open(files, TlsSide::kServer, clock);
  STEPWELL_RETURN_IF_ERROR(Annotate(opened.status(), "certificates"));
  tls = *std::move(opened);
  if (options.token_file.empty()) return absl::OkStatus();
  auto guard = TokenGuard::Open(options.token_file, clock);
  STEPWELL_RETURN_IF_ERROR(Annotate(guard.status(), "--token-file"));
  tokens = *std::move(guard);
  return absl::OkStatus();
}

absl::Status Server::Parts::Listen() {
  STEPWELL_RETURN_IF_ERROR(ReadCertificates());
  rates = std::make_shared<RateLimits>(RateOptions(options), clock);
  STEPWELL_ASSIGN_OR_RETURN(grpc_listen, ParseHostPort(options.grpc_listen));
  STEPWELL_ASSIGN_OR_RETURN(http_listen, ParseHostPort(options.http_listen));
  GrpcServer::Options grpc_options = GrpcOptions(options, memory.shares(), grpc_listen, tls, rates);
  grpc_options.on_look = [this](SteadyTime now) { memory.Look(now); };
  grpc.emplace(std::move(grpc_options));
  STEPWELL_RETURN_IF_ERROR(Annotate(grpc->Bind(), "--grpc-listen"));
  auto names = ParseHostNames(options.http_host, tls == nullptr ? "" : tls->Current()->cert_pem);
  STEPWELL_RETURN_IF_ERROR(Annotate(names.status(), "--http-host"));
  http.emplace(
      HttpOptions(options, memory.shares(), http_listen, *std::move(names), tls, tokens, rates));
  http->routes().Add("GET", "/livez", HttpDoor::kOpen, [](const HttpRequest&) {
    return HttpResponse{200, "application/json", "{\"alive\":true}\n"};
  });
  http->routes().Add("GET", "/readyz", HttpDoor::kOpen, [this](const HttpRequest&) {
    return ReadyAnswer(state.Get(), tokens != nullptr);
  });
  prometheus.emplace(
      rpc, [this](MetricFamilies& families) { AddMasterMetrics(Read(), families); },
      [this](const HttpRequest& request) { return ReadsAll(request); });
  prometheus->Serve(http->routes());
  STEPWELL_RETURN_IF_ERROR(AddDoors());
  return Annotate(http->Start(), "--http-listen");
}

absl::StatusOr<bool> Server::Parts::ReadsAll(const HttpRequest& request) const {
  if (tokens == nullptr) return true;
  const auto caller = tokens->Identify(request.Authorization());
  if (absl::IsUnavailable(caller.status())) return caller.status();
  return caller.ok() && (*caller)->grants.ReadsAll();
}

MasterReading Server::Parts::Read() {
  MasterReading reading{STEPWELL_VERSION, state.Get(), stats};
  reading.rates = rates->counts();
  reading.memory_limit_bytes = memory.shares().limit_bytes;
  reading.memory_resident_bytes = ResidentBytes();
  if (!serves) return reading;
  reading.writers_open = static_cast<std::int64_t>(registry->open_count());
  reading.unfolded_bytes = heads->unfolded_bytes();
  reading.queue_bytes = queue->bytes();
  reading.queue_limit_bytes = queue->bytes_max();
  reading.swept_samples = sweep_loop->removed_sample_count();
  return reading;
}

absl::Status Server::Parts::AddDoors() {
  gateway.emplace(ConnectGateway::Options{options.http_get, tokens, rates}, rpc);
  for (const auto* one : {pb::ListTrialsRequest::descriptor(), pb::FlushRequest::descriptor(),
                          pb::ListTracesRequest::descriptor(), pb::ListTokensRequest::descriptor(),
                          pb::ReadClockRequest::descriptor()}) {
    STEPWELL_CHECK(one->file()->service_count() == 1);
    gateway->Serve(*one->file()->service(0), http->routes());
  }
  http->routes().Add("GET", "/page.json", HttpDoor::kSameOrigin,
                     [json = PageSettingsJson(options.trace_viewer)](const HttpRequest&) {
                       return HttpResponse{200, "application/json", json};
                     });
  if (options.ui_dir.empty()) {
    AddPage(EmbeddedPage(), http->routes());
    return absl::OkStatus();
  }
  STEPWELL_RETURN_IF_ERROR(Annotate(PageFolder::Check(options.ui_dir), "--ui-dir"));
  http->routes().AddRest(HttpDoor::kNamed,
                         [folder = PageFolder(options.ui_dir)](const HttpRequest& request) {
                           return folder.Answer(request);
                         });
  return absl::OkStatus();
}

absl::Status Server::Parts::OpenStores(const std::function<bool()>& stop_asked) {
  STEPWELL_ASSIGN_OR_RETURN(database, StartDatabase(options));
  STEPWELL_RETURN_IF_ERROR(BringSchema(database.url, state, stop_asked));
  master_id = options.master_id;
  if (master_id.empty() && !database.data_directory.empty()) {
    STEPWELL_ASSIGN_OR_RETURN(master_id, MasterIdOf(database.data_directory));
  }
  if (master_id.empty()) master_id = MasterIdOf(grpc_listen.host, grpc->port());
  const auto place = std::make_shared<OwnedPlace>();
  STEPWELL_ASSIGN_OR_RETURN(
      ingest_store,
      PgIngestStore::Open(
          {.url = database.url, .cut = cut, .book_changes = book_changes, .owned_place = place},
          ring));
  STEPWELL_ASSIGN_OR_RETURN(
      fold_store,
      PgFoldStore::Open(
          {.url = database.url, .cut = cut, .book_changes = book_changes, .owned_place = place},
          ring));
  // One for each read that may run, so that nobody waits behind a client; those who follow share two.
  reader.emplace(
      PgReader::Options{.url = database.url,
                        .connection_count_max = QueryGrpcService::Options().reads_max + 2,
                        .cut = cut,
                        .book_changes = book_changes,
                        .owner_kept = kOwnerKept,
                        .memory = PgReadMemory::Options::Of(
                            static_cast<std::size_t>(memory.shares().of(MemoryShares::kCharts)))});
  caps_store.emplace(
      PgCapsStore::Options{.url = database.url, .cut = cut, .book_changes = book_changes});
  // On connections of its own: an Open waits for no sweep and no preview.
  window_store.emplace(PgCapsStore::Options{
      .url = database.url, .connections_max = 2, .cut = cut, .book_changes = book_changes});
  trace_store.emplace(PgTraceStore::Options{.url = database.url, .cut = cut});
  token_store.emplace(PgTokenStore::Options{.url = database.url, .cut = cut});
  return absl::OkStatus();
}

void Server::Parts::MakeRooms() {
  registry.emplace(clock);
  director.emplace(clock);
  const MemoryShares& shares = memory.shares();
  heads.emplace(Heads::Options{.kept_bytes_max = shares.of(MemoryShares::kLatest),
                               .followed_bytes_max = shares.of(MemoryShares::kFollowed)});
  queue.emplace(CommitQueue::Options{.queue_bytes_max = shares.of(MemoryShares::kQueue),
                                     .linger = options.group_linger});
  committer.emplace(
      GroupCommitter::Options{.unfolded_bytes_max = shares.of(MemoryShares::kUnfolded)},
      GroupCommitter::Parts{*ingest_store, *queue, *heads, state, stats, clock});
  FoldLoop::Options fold_options;
  fold_options.interval = options.fold_interval;
  fold_options.unfolded_bytes_soft = shares.fold_bytes;
  fold_loop.emplace(fold_options, FoldLoop::Parts{*fold_store, *heads, state, clock, [this] {
                                                    return committer->settled_before_us();
                                                  }});
  sweep_loop.emplace(SweepLoop::Options{.interval = options.sweep_interval},
                     SweepLoop::Parts{*caps_store, state, clock});
  windows.emplace(ProfilingWindows::Parts{*window_store, state, *director, clock});
  trial_keeper.emplace(*ingest_store, *registry, clock);
  access.emplace(tokens.get(), *token_store, rates.get(), &grpc->strangers());
  context.emplace(
      IngestContext{*ingest_store, *queue, *heads, state, stats, *registry, *director, clock,
                    [this](TrialId trial_id) { fold_loop->FoldSoon(trial_id); },
                    ParseVersion(options.minimum_agent_version).value_or(kAgentVersionMin),
                    [this](TrialId trial_id) { return windows->IsOver(trial_id); },
                    [this](TrialId trial_id, WriterNo writer_no, std::uint64_t generation,
                           const v1::CaptureReport& report) {
                      trace_capturing->Reported(trial_id, writer_no, generation, report);
                    },
                    &*access, rates.get(), shares.credit_bytes()});
  trace_capturing.emplace(
      *director,
      TraceCapturing::LookUp{
          [this](const TrialSelector& trial, const ProjectFilter& projects, SteadyTime deadline) {
            return reader->FindTrial(trial, projects, deadline);
          },
          [this](TrialId trial_id,
                 SteadyTime deadline) -> absl::StatusOr<std::vector<WriterRecord>> {
            STEPWELL_ASSIGN_OR_RETURN(const auto snapshot, reader->OpenSnapshot(deadline));
            return snapshot->ListWriters(trial_id);
          }});
  if (tokens == nullptr) return;
  token_loop.emplace(TokenLoop::Parts{*token_store, *tokens, clock, [this] {
                                        registry->ForEachStream([](IngestStream& stream) {
                                          stream.RefuseEndedTokens();
                                        });
                                      }});
}

void Server::Parts::MakeLoops() {
  disk_watch.emplace(DiskSpace::Options{.low_bytes = options.disk_low_bytes},
                     database.data_directory, state, clock);
  if (database.data_directory.empty()) {
    stop_watch.emplace(database.url, cut);
  }
  const RecoveryParts recovery{*ingest_store, *fold_store, *heads, *registry, state, stats};
  const bool has_made = tokens != nullptr && tokens->has_made_file();
  ownership.emplace(OwnershipLoop::Options{.master_id = master_id,
                                           .address = HostPortText(grpc_listen.host, grpc->port()),
                                           .token_file_made = has_made ? options.token_file : "",
                                           .unfolded_bytes_max = memory.shares().credit_bytes()},
                    OwnershipLoop::Parts{recovery, *queue, *trial_keeper, *director,
                                         [this] {
                                           disk_watch->Look();
                                           TellHealth();
                                         },
                                         [this] { reader->Forget(); }});
}

absl::Status Server::Parts::Serve() {
  ingest_service.emplace(
      IngestService::Options{.streams_max = static_cast<int>(options.streams_max)}, *context,
      memory.rooms());
  admin_service.emplace(AdminService::Parts{master_id, STEPWELL_VERSION, *fold_loop, state, stats,
                                            *heads, *registry, *ingest_store, *reader, *director,
                                            *caps_store, *sweep_loop, *windows, clock, &*access});
  grpc->Register(&*ingest_service, pb::IngestService::service_full_name());
  QuerySources sources{*reader,
                       *heads,
                       clock,
                       *registry,
                       [this] { return state.incarnation(); },
                       [this](TrialId trial_id) { return windows->IsOver(trial_id); },
                       [this] { return state.undoubted_epoch(); },
                       [this] { return state.Get().role == MasterRole::kStandby; }};
  sources.series_room = &memory.lists();
  const auto writers_wait = [this] {
    return memory.is_tight() || queue->bytes() >= queue->bytes_max() / 4 * 3;
  };
  query_service.emplace(
      sources, QueryGrpcService::Options{.writers_wait = writers_wait,
                                         .follows_max = static_cast<int>(options.follows_max),
                                         .access = &*access});
  grpc->Register(&*admin_service, pb::AdminService::service_full_name());
  grpc->Register(query_service->service(), pb::QueryService::service_full_name());
  trace_reads.emplace(sources);
  trace_service.emplace(
      *trace_store, state, *trace_reads, *trace_capturing,
      TraceGrpcService::Options{.writers_wait = writers_wait, .access = &*access});
  grpc->Register(trace_service->service(), pb::TraceService::service_full_name());
  token_service.emplace(TokenGrpcService::Parts{
      *token_store, *access, token_loop.has_value() ? &*token_loop : nullptr, clock,
      !options.tls_client_ca.empty(), options.fetched_token_max});
  grpc->Register(token_service->service(), pb::TokenService::service_full_name());
  clock_service.emplace(clock, &*access);
  grpc->Register(&*clock_service, pb::ClockService::service_full_name());
  // Nobody is told that the port is open before tokens are known.
  if (token_loop) {
    const absl::Status learned = token_loop->LearnNow();
    if (!learned.ok()) log::Warning("tokens_not_read", {{"status", learned.ToString()}});
    token_loop->Start();
  }
  STEPWELL_RETURN_IF_ERROR(grpc->Start(&*access));
  rpc.Open(grpc->InProcessChannel());
  committer->Start();
  fold_loop->Start();
  sweep_loop->Start();
  windows->Start();
  ownership->Start();
  if (stop_watch) stop_watch->Start();
  serves = true;
  return absl::OkStatus();
}

void Server::Parts::TellHealth() {
  const bool ready = state.Get().accepting();
  if (ready == serving) return;
  serving = ready;
  grpc->SetServing(ready);
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServeOptions& options,
                                                      std::function<bool()> stop_asked) {
  STEPWELL_ASSIGN_OR_RETURN(const MemoryShares shares, DivideMemory(AskedMemory(options)));
  auto parts = std::make_unique<Parts>(shares);
  parts->options = options;
  STEPWELL_RETURN_IF_ERROR(parts->Listen());
  STEPWELL_RETURN_IF_ERROR(parts->OpenStores(stop_asked));
  STEPWELL_ASSIGN_OR_RETURN(const Uuid incarnation, parts->ingest_store->ReadIncarnation());
  parts->state.SetIncarnation(incarnation);
  parts->MakeRooms();
  parts->MakeLoops();
  STEPWELL_RETURN_IF_ERROR(parts->Serve());
  return std::unique_ptr<Server>(new Server(std::move(parts)));
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Server::~Server() { Stop(); }

ServerAddresses Server::addresses() const {
  return {HostPortText(parts_->grpc_listen.host, parts_->grpc->port()),
          HostPortText(parts_->http_listen.host, parts_->http->port()), parts_->database.url,
          parts_->database.data_directory};
}

MasterState::Snapshot Server::state() const { return parts_->state.Get(); }

std::vector<HttpRoutes::Name> Server::http_routes() const { return parts_->http->routes().Names(); }

void Server::Parts::WaitAcksWritten(SteadyTime deadline) {
  bool waiting = true;
  while (waiting && !deadline.HasPassed()) {
    waiting = false;
    registry->ForEachStream(
        [&](IngestStream& stream) { waiting = waiting || !stream.board().empty(); });
    if (waiting) absl::SleepFor(absl::Milliseconds(5));
  }
}

void Server::Parts::Drain() {
  const bool owner = state.Get().ready();
  state.StartDraining();
  sweep_loop->AskStop();
  cut->CutAfter(kDatabaseWait);
  grpc->SetServing(false);
  grpc->StopAccepting();
  committer->Stop(SteadyTime::Now() + kCommitWait);
  heads->EndFollows();
  WaitAcksWritten(SteadyTime::Now() + kAckWait);
  registry->ForEachStream(
      [](IngestStream& stream) { stream.End(absl::UnavailableError("this master is stopping")); });
  if (owner) {
    const auto folded = fold_loop->FoldNow(std::nullopt, SteadyTime::Now() + kFoldWait);
    if (!folded.ok()) {
      // Nothing is lost: the next start reads it from the journal.
      log::Warning("last_fold_failed", {{"status", folded.status().ToString()}});
    }
  }
  rpc.StopTaking();
  grpc->Stop(SteadyTime::Now() + kCallWait);
  rpc.Stop();
  windows->Stop();
  if (token_loop) token_loop->Stop();
  sweep_loop->Stop();
  fold_loop->Stop();
  ownership->Stop();
  if (stop_watch) stop_watch->Stop();
}

void Server::Stop() {
  if (parts_ == nullptr) return;
  log::Info("stopping", {});
  parts_->Drain();
  parts_->http->Stop();
  parts_.reset();
  log::Info("stopped", {});
}

}  // namespace stepwell
