#include "server/serve_main.h"

#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/descriptor_limit.h"
#include "base/grpc_log.h"
#include "base/log.h"
#include "base/process_secrets.h"
#include "base/shell_word.h"
#include "base/status_macros.h"
#include "base/tls/certificate_names.h"
#include "base/tls/tls_files.h"
#include "nlohmann/json.hpp"
#include "server/database_start.h"
#include "server/host_port.h"
#include "server/listen_socket.h"
#include "server/master_identity.h"
#include "server/options.h"
#include "server/server.h"
#include "server/token_file.h"

namespace stepwell {
namespace {

constexpr int kExitUsage = 64;
constexpr int kExitInternal = 70;
constexpr int kExitConfig = 78;

int Fail(int exit_code, absl::string_view message) {
  std::fprintf(stderr, "stepwell serve: %.*s\n", static_cast<int>(message.size()), message.data());
  if (exit_code == kExitUsage) std::fprintf(stderr, "Try: stepwell serve --help\n");
  return exit_code;
}

int ExitCodeOf(const absl::Status& status) {
  return status.code() == absl::StatusCode::kInternal ? kExitInternal : kExitConfig;
}

// Streams allocate chunks that folds free, megabytes a moment apart: glibc would hand such memory back
// to the kernel and fault it in again, page by page.
// Each arena keeps what its own threads freed, and glibc makes eight for each core: few where little may be taken.
void KeepFreedMemory(std::int64_t memory_bytes) {
  constexpr int kMiB = 1 << 20;
  constexpr std::int64_t kPerArena = 64 * kMiB;
  mallopt(M_ARENA_MAX, static_cast<int>(std::min<std::int64_t>(memory_bytes / kPerArena, 1024)));
  mallopt(M_TOP_PAD, kMiB);
  mallopt(M_TRIM_THRESHOLD, 32 * kMiB);
  mallopt(M_MMAP_THRESHOLD, 32 * kMiB);
}

// PostgreSQL's processes are its own. A token's file needs no look: without a TLS key it is refused before it is read. Somebody
// else's database may have a password wherever libpq finds one: in its URL, PGPASSWORD, or a file that this names, or none does.
void KeepSecrets(const ServeOptions& options) {
  if (!options.tls_key.empty() || !options.database_url.empty()) KeepMemoryPrivate();
}

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

// True once one came; remembers it.
bool StopAsked(absl::Duration wait) {
  static bool asked = false;
  if (asked) return true;
  const sigset_t signals = StopSignals();
  const timespec timeout = absl::ToTimespec(wait);
  asked = sigtimedwait(&signals, nullptr, &timeout) > 0;
  return asked;
}

// `options.token_file` as ChooseTokenFile said.
absl::Status CheckListen(const ServeOptions& options) {
  for (const auto& [name, text] : {std::pair("--grpc-listen", options.grpc_listen),
                                   std::pair("--http-listen", options.http_listen)}) {
    const auto listen = ParseHostPort(text);
    if (!listen.ok()) return Annotate(listen.status(), name);
    const bool is_guarded = !options.tls_cert.empty() && !options.token_file.empty();
    if (IsLoopback(listen->host) || is_guarded || options.insecure_allow_remote) continue;
    // Where there is TLS, a file was made by itself unless --token-file or --tls-client-ca said otherwise.
    const char* way =
        options.tls_cert.empty()
            ? "give --tls-cert and --tls-key, with which callers are asked for a token (beside "
              "--tls-client-ca name its --token-file, too)"
            : "name a --token-file";
    return absl::FailedPreconditionError(absl::StrCat(
        name, ": refusing to listen on ", text, ": other machines could reach it without ",
        options.tls_cert.empty() ? "authentication" : "a token", ". Listen on 127.0.0.1, ", way,
        ", or pass --insecure-allow-remote if the network is trusted"));
  }
  return absl::OkStatus();
}

void SetUpLog(const ServeOptions& options) {
  static const std::map<std::string, log::Level> kLevels = {{"debug", log::Level::kDebug},
                                                            {"info", log::Level::kInfo},
                                                            {"warning", log::Level::kWarning},
                                                            {"error", log::Level::kError}};
  log::Setup({.level = kLevels.at(options.log_level),
              .format = options.log_format == "json" ? log::Format::kJson : log::Format::kText});
}

std::string TokenLine(const ServeOptions& options) {
  if (options.token_file.empty()) return "";
  return absl::StrCat("  token     in ", options.token_file, "; clients show it: STEPWELL_TOKEN\n");
}

// As a shell takes it, from any directory.
std::string ShellPath(const std::string& path) {
  std::error_code error;
  return ShellWord(std::filesystem::absolute(path, error).string());
}

// What the commands below it need of a master that speaks TLS. The CA where `stepwell tls init` puts it; else the reader
// knows.
std::string TlsExports(const ServeOptions& options) {
  const std::string ca =
      (std::filesystem::path(options.tls_cert).parent_path() / "ca.pem").string();
  std::string text = absl::StrCat(
      "  export STEPWELL_TLS_CA=", IsSignedBy(options.tls_cert, ca) ? ShellPath(ca) : "FILE", "\n");
  if (!options.token_file.empty()) {
    absl::StrAppend(&text, "  export STEPWELL_TOKEN=\"$(cat ", ShellPath(options.token_file),
                    ")\"\n");
  }
  if (!options.tls_client_ca.empty()) {
    absl::StrAppend(&text, "  export STEPWELL_TLS_CERT=FILE STEPWELL_TLS_KEY=FILE\n",
                    "      a certificate of your own, and its key\n");
  }
  return text;
}

// Of a master that listens on all addresses: nobody calls one by that, and no certificate has it.
std::string CalledBy(const std::string& address, const ServeOptions& options) {
  const auto listens = ParseHostPort(address);
  if (!listens.ok() || (listens->host != "0.0.0.0" && listens->host != "::")) return address;
  if (options.tls_cert.empty()) return HostPortText("127.0.0.1", listens->port);
  const std::vector<std::string> names = ServerNames(ReadWholeFile(options.tls_cert).value_or(""));
  const auto is_of_others = [](const std::string& name) {
    return name != "localhost" && name != "::1" && !absl::StartsWith(name, "127.");
  };
  const auto found = std::find_if(names.begin(), names.end(), is_of_others);
  return HostPortText(found == names.end() ? "localhost" : *found, listens->port);
}

void PrintFirstScreen(const ServerAddresses& at, const ServeOptions& options) {
  const bool has_tls = !options.tls_cert.empty();
  const char* scheme = has_tls ? "https" : "http";
  const std::string grpc = CalledBy(at.grpc, options);
  const std::string http = CalledBy(at.http, options);
  std::printf(
      "Stepwell %s is ready.\n"
      "  page      %s://%s/  for a browser\n"
      "  gRPC      %s\n"
      "  HTTP      %s://%s/readyz\n"
      "  database  %s\n"
      "%s"
      "\n"
      "Next, in another terminal; NAME is your trial's:\n"
      "%s"
      "  STEPWELL_SERVER=%s STEPWELL_TRIAL=NAME ./train\n"
      "      your program, with Stepwell's recorder in it: it starts its agent, which ships what\n"
      "      is recorded, samples this machine, and ends by itself\n"
      "  stepwell report NAME --server %s\n"
      "      where the time of its steps went, what the machine did meanwhile\n"
      "  stepwell trials --server %s\n"
      "      what is stored\n"
      "  psql '%s' -c \"select s.* from stepwell.trials t,\n"
      "      stepwell.samples(t.trial_id, 'timing', 'step') s where t.external_id = 'NAME' limit "
      "5\"\n"
      "      the same in SQL (docs/schema.md); what is new is there within some ten seconds\n"
      "\n"
      "Stop with Ctrl-C.\n",
      STEPWELL_VERSION, scheme, http.c_str(), at.grpc.c_str(), scheme, http.c_str(),
      ShownUrl(at.database_url).c_str(), (has_tls ? TokenLine(options) : "").c_str(),
      (has_tls ? TlsExports(options) : "").c_str(), grpc.c_str(), grpc.c_str(), grpc.c_str(),
      ShownUrl(at.database_url).c_str());
  std::fflush(stdout);
}

// The one that was asked for, and one in the data directory of a private PostgreSQL, so that who starts
// a second master there is told of the first.
class ReadyFiles {
 public:
  // REQUIRES: nobody else serves the data directory.
  ReadyFiles(const ServeOptions& options, const ServerAddresses& at)
      : asked_for_(options.ready_file) {
    if (!at.data_directory.empty()) in_data_ = at.data_directory + "/ready.json";
    Remove();  // that in the data directory may be of one that was killed
  }
  ~ReadyFiles() { Remove(); }
  ReadyFiles(const ReadyFiles&) = delete;
  ReadyFiles& operator=(const ReadyFiles&) = delete;

  absl::Status Write(const ServerAddresses& at) const {
    const nlohmann::json ready{
        {"grpc", at.grpc}, {"http", at.http}, {"database_url", at.database_url}, {"pid", getpid()}};
    const std::string text = ready.dump() + "\n";
    if (!in_data_.empty()) STEPWELL_RETURN_IF_ERROR(WriteFileAtomically(in_data_, text));
    if (asked_for_.empty()) return absl::OkStatus();
    return Annotate(WriteFileAtomically(asked_for_, text), "--ready-file");
  }

 private:
  void Remove() const {
    for (const std::string& path : {asked_for_, in_data_}) {
      if (!path.empty()) unlink(path.c_str());
    }
  }

  const std::string asked_for_;
  std::string in_data_;
};

// Waits for a signal; tells once when ready, and when standing by.
absl::Status ServeUntilStopped(Server& server, const ReadyFiles& ready_files,
                               const ServeOptions& options) {
  bool told_ready = false;
  std::string told_reason;
  while (!StopAsked(told_ready ? absl::Seconds(1) : absl::Milliseconds(10))) {
    const MasterState::Snapshot now = server.state();
    if (!told_ready && now.ready()) {
      STEPWELL_RETURN_IF_ERROR(ready_files.Write(server.addresses()));
      PrintFirstScreen(server.addresses(), options);
      told_ready = true;
    }
    if (!told_ready && now.role == MasterRole::kStandby && told_reason.empty()) {
      told_reason = now.reason();
      std::printf("%s\n", told_reason.c_str());
      std::fflush(stdout);
    }
  }
  return absl::OkStatus();
}

// What a start would change in the database, without changing it.
int ListPendingMigrations(const ServeOptions& options) {
  SetUpLog(options);
  const auto pending = PendingSchema(options);
  if (!pending.ok()) return Fail(ExitCodeOf(pending.status()), pending.status().message());
  for (const std::string& name : *pending) std::printf("pending %s\n", name.c_str());
  if (pending->empty()) std::printf("the schema is up to date\n");
  return 0;
}

int ApplyMigrations(const ServeOptions& options) {
  SetUpLog(options);
  const auto applied = MigrateSchema(options);
  if (!applied.ok()) return Fail(ExitCodeOf(applied.status()), applied.status().message());
  for (const std::string& name : *applied) std::printf("applied %s\n", name.c_str());
  if (applied->empty()) std::printf("the schema is up to date\n");
  return 0;
}

int Serve(ServeOptions options) {
  KeepFreedMemory(options.memory_bytes);
  SetUpLog(options);
  LogWhatGrpcSays();
  RaiseDescriptorLimit();
  // The one that counts from here on, whether it was named or not; empty where nobody is asked.
  const bool is_named = !options.token_file.empty();
  auto token_file = ChooseTokenFile(options, HomeOfProcess());
  if (!token_file.ok()) return Fail(kExitConfig, token_file.status().message());
  options.token_file = *std::move(token_file);
  if (const absl::Status status = CheckListen(options); !status.ok()) {
    return Fail(status.code() == absl::StatusCode::kInvalidArgument ? kExitUsage : kExitConfig,
                status.message());
  }
  if (!is_named) {
    const absl::Status made = MakeDirectoryOf(options.token_file);
    if (!made.ok()) return Fail(kExitConfig, made.message());
  }
  // Of an earlier start, perhaps killed: who waits for it may not take it for ours.
  if (!options.ready_file.empty()) unlink(options.ready_file.c_str());
  auto server = Server::Start(options, [] { return StopAsked(absl::ZeroDuration()); });
  if (server.status().code() == absl::StatusCode::kCancelled) return 0;
  if (!server.ok()) return Fail(ExitCodeOf(server.status()), server.status().message());
  const ReadyFiles ready_files(options, (*server)->addresses());
  const absl::Status served = ServeUntilStopped(**server, ready_files, options);
  (*server)->Stop();
  if (!served.ok()) return Fail(kExitConfig, served.message());
  return 0;
}

}  // namespace

int ServeMain(int argc, char** argv) {
  // Before any thread: they all inherit it, so that only the loop above sees the signals.
  const sigset_t signals = StopSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto environment = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  HideInArguments(argc, argv, ShownUrl);
  auto parsed = ParseOptions(arguments, environment, ReadWholeFile);
  if (const auto* error = std::get_if<UsageError>(&parsed)) {
    return Fail(error->exit_code, error->message);
  }
  const ParsedOptions& options = std::get<ParsedOptions>(parsed);
  // Also where it only looks at the database, or changes it, and ends.
  KeepSecrets(options.options);
  if (options.help) {
    std::fputs(HelpText().c_str(), stdout);
    return 0;
  }
  if (options.print_config) {
    std::fputs(PrintConfig(options.options).c_str(), stdout);
    return 0;
  }
  const absl::Status checked = CheckDataDirectory(options.options);
  if (!checked.ok()) return Fail(kExitConfig, checked.message());
  if (options.dry_run) return ListPendingMigrations(options.options);
  if (options.migrate_only) return ApplyMigrations(options.options);
  return Serve(options.options);
}

}  // namespace stepwell
