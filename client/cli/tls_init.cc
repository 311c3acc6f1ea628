// stepwell tls init: a private CA for a lab, and certificates of a master and of its clients: what TLS needs
// where there is no other CA. Asks no master.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/machine_name.h"
#include "base/status_macros.h"
#include "base/tls/certificate_names.h"
#include "base/tls/tls_authority.h"
#include "client/cli/command.h"
#include "client/cli/options.h"
#include "nlohmann/json.hpp"

namespace stepwell::cli {
namespace {

constexpr char kExamples[] =
    "\nMakes DIR with ca.pem and ca.key, server.pem and server.key, client.pem and client.key; "
    "keys can\n"
    "be read by their owner alone. Nothing is written over: --renew makes new certificates of "
    "master\n"
    "and client by the CA that is there, which a running master takes by itself. ca.key is needed "
    "for\n"
    "that only, and belongs on no other machine; clients need ca.pem, and client.pem with "
    "client.key\n"
    "where the master asks for them. Where DIR has a CA, --client alone makes certificates of more "
    "clients.\n"
    "\nExamples:\n"
    "  stepwell tls init certs --name master.lab --name 10.0.0.7\n"
    "  stepwell serve --tls-cert certs/server.pem --tls-key certs/server.key \\\n"
    "      --tls-client-ca certs/ca.pem --token-file token\n"
    "  export STEPWELL_TOKEN=\"$(cat token)\"\n"
    "  stepwell trials --tls-ca certs/ca.pem --tls-cert certs/client.pem --tls-key "
    "certs/client.key\n"
    "  stepwell tls init certs --name master.lab --name 10.0.0.7 --renew\n"
    "  stepwell tls init certs --client agent-7.lab\n"
    "  stepwell token create agent-7 --certificate dns:agent-7.lab --grant write:vision\n";

constexpr std::int64_t kDaysDefault = 398;  // what browsers take of public ones
constexpr std::int64_t kDaysMax = 3650;
constexpr absl::Duration kDay = absl::Hours(24);
// Of machines whose clocks are a little behind.
constexpr absl::Duration kClockLeeway = absl::Hours(1);

struct Wish {
  std::string directory;
  std::vector<std::string> names;
  absl::Duration lasts;
  bool renews = false;
  std::vector<std::string> clients = {};
};

// As its common name and as its DNS name.
bool IsClientName(const std::string& name) {
  constexpr std::size_t kBytesMax = 64;
  return name.size() <= kBytesMax && CheckCertificateName("dns:" + name).ok() &&
         name.find_first_not_of("0123456789.") != std::string::npos;
}

// Whole or not at all, and never readable by others in between.
absl::Status WriteFile(const std::string& path, const std::string& text, mode_t mode) {
  const std::string made = path + ".new";
  unlink(made.c_str());
  const int fd = open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  const auto written = write(fd, text.data(), text.size());
  const bool is_whole = written == static_cast<ssize_t>(text.size()) && fsync(fd) == 0;
  const int error = errno;
  close(fd);
  if (!is_whole || rename(made.c_str(), path.c_str()) != 0) {
    const int failed = is_whole ? errno : error;
    unlink(made.c_str());
    return absl::ErrnoToStatus(failed, path);
  }
  return absl::OkStatus();
}

// The key first: who sees the new certificate finds its key there.
absl::Status WritePair(const std::string& directory, const std::string& name, const TlsPair& pair) {
  STEPWELL_RETURN_IF_ERROR(
      WriteFile(absl::StrCat(directory, "/", name, ".key"), pair.key_pem, 0600));
  return WriteFile(absl::StrCat(directory, "/", name, ".pem"), pair.cert_pem, 0644);
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool IsThere(const std::string& path) {
  struct stat found {};
  return lstat(path.c_str(), &found) == 0;
}

// By the CA that is there, for more clients and nobody else.
bool IsForClientsAlone(const Wish& wish) {
  return !wish.renews && !wish.clients.empty() && IsThere(wish.directory + "/ca.pem");
}

// Where there is no CA: what lies there is another one's.
absl::Status CheckEmpty(const Wish& wish) {
  std::vector<std::string> names = {"server", "client"};
  for (const std::string& name : wish.clients) names.push_back("client-" + name);
  for (const std::string& name : names) {
    for (const char* ending : {".pem", ".key"}) {
      if (!IsThere(absl::StrCat(wish.directory, "/", name, ending))) continue;
      return absl::AlreadyExistsError(
          absl::StrCat(wish.directory, " has ", name, ending,
                       " and no ca.pem: it would be written over; name an empty directory"));
    }
  }
  return absl::OkStatus();
}

// REQUIRES: who renews has one.
absl::StatusOr<TlsAuthority> FindOrMakeCa(const Wish& wish, absl::Time from) {
  const std::string cert = wish.directory + "/ca.pem";
  const std::string key = wish.directory + "/ca.key";
  const bool is_there = IsThere(cert) || IsThere(key);
  if (!is_there) STEPWELL_RETURN_IF_ERROR(CheckEmpty(wish));
  if (is_there && !wish.renews && !IsForClientsAlone(wish)) {
    return absl::AlreadyExistsError(
        absl::StrCat(wish.directory, " has a CA already; --renew makes new certificates by it"));
  }
  if (is_there) {
    auto ca = TlsAuthority::Of({ReadAll(cert), ReadAll(key)});
    return ca.ok() ? std::move(ca) : Annotate(ca.status(), absl::StrCat(cert, " and ca.key"));
  }
  const std::string subject = absl::StrCat("Stepwell CA of ", MachineName());
  STEPWELL_ASSIGN_OR_RETURN(TlsAuthority ca,
                            TlsAuthority::Make(subject, from, from + kDaysMax * kDay));
  STEPWELL_RETURN_IF_ERROR(WritePair(wish.directory, "ca", ca.own()));
  return ca;
}

absl::Status Make(const Wish& wish, absl::Time now) {
  const bool has_ca = IsThere(wish.directory + "/ca.pem") || IsThere(wish.directory + "/ca.key");
  if (wish.renews && !has_ca) {
    return absl::NotFoundError(
        absl::StrCat(wish.directory,
                     " has no ca.pem and ca.key to renew by; without --renew they "
                     "are made"));
  }
  if (mkdir(wish.directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(errno, wish.directory);
  }
  const absl::Time from = now - kClockLeeway;
  const bool clients_alone = IsForClientsAlone(wish);
  for (const std::string& name : wish.clients) {
    const std::string cert = absl::StrCat(wish.directory, "/client-", name, ".pem");
    if (clients_alone && IsThere(cert)) {
      return absl::AlreadyExistsError(
          absl::StrCat(cert, " is there already; --renew makes new certificates of all"));
    }
  }
  STEPWELL_ASSIGN_OR_RETURN(const TlsAuthority ca, FindOrMakeCa(wish, from));
  for (const std::string& name : wish.clients) {
    const TlsRequest named{TlsSide::kClient, name, {name}, from, now + wish.lasts};
    STEPWELL_ASSIGN_OR_RETURN(const TlsPair named_pair, ca.Sign(named));
    STEPWELL_RETURN_IF_ERROR(WritePair(wish.directory, "client-" + name, named_pair));
  }
  if (clients_alone) return absl::OkStatus();
  TlsRequest server{TlsSide::kServer, "stepwell master", wish.names, from, now + wish.lasts};
  STEPWELL_ASSIGN_OR_RETURN(const TlsPair server_pair, ca.Sign(server));
  TlsRequest client{TlsSide::kClient, "stepwell client", {}, from, now + wish.lasts};
  STEPWELL_ASSIGN_OR_RETURN(const TlsPair client_pair, ca.Sign(client));
  STEPWELL_RETURN_IF_ERROR(WritePair(wish.directory, "server", server_pair));
  return WritePair(wish.directory, "client", client_pair);
}

void TellClients(const Wish& wish, const std::string& end, std::ostream& out) {
  out << "Certificates in " << wish.directory << ", until " << end << ", of clients:";
  for (const std::string& name : wish.clients) out << " client-" << name << ".pem";
  out << ".\nGrants:  stepwell token create NAME --certificate dns:" << wish.clients.front()
      << " --grant GRANT\n";
}

void Tell(const Wish& wish, absl::Time until, bool as_json, std::ostream& out) {
  const std::string end = absl::FormatTime("%Y-%m-%d", until, absl::UTCTimeZone());
  if (as_json) {
    out << nlohmann::json{{"directory", wish.directory},
                          {"names", wish.names},
                          {"clients", wish.clients},
                          {"expires", end}}
               .dump()
        << "\n";
    return;
  }
  if (!wish.clients.empty()) TellClients(wish, end, out);
  if (wish.names.empty()) return;
  out << "Certificates in " << wish.directory << ", until " << end << ", of a master called";
  for (const std::string& name : wish.names) out << " " << name;
  out << ".\nMaster:  stepwell serve --tls-cert " << wish.directory << "/server.pem --tls-key "
      << wish.directory << "/server.key\n         and, to ask for certificates beside tokens, "
      << "--tls-client-ca " << wish.directory
      << "/ca.pem --token-file FILE\nClients: STEPWELL_TOKEN=TOKEN STEPWELL_TLS_CA="
      << wish.directory << "/ca.pem STEPWELL_TLS_CERT=" << wish.directory
      << "/client.pem STEPWELL_TLS_KEY=" << wish.directory
      << "/client.key\nKeep ca.key to yourself: who has it makes certificates that all of them "
         "take.\n";
}

void AddName(const std::string& name, std::vector<std::string>& names) {
  const bool is_new = std::find(names.begin(), names.end(), name) == names.end();
  if (is_new && TlsAuthority::IsName(name)) names.push_back(name);
}

}  // namespace

int RunTlsInit(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("tls init", "DIR", kExamples, CommandOptions::Asks::kNobody);
  options.List(
      "name", "NAME",
      "a name or address of the master, beside localhost and this machine's; may be given again");
  options.List(
      "client", "NAME",
      "a client with a certificate of its own, client-NAME.pem, which grants may be given to; "
      "may be given again");
  options.Value("days", "N",
                "how long the certificates last, 1 ... 3650 (398); the CA has ten years");
  options.Flag("renew",
               "new certificates by the CA in DIR; the master keeps the names that it has");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  const absl::StatusOr<std::int64_t> days = options.Integer("days", kDaysDefault, 1, kDaysMax);
  if (!days.ok()) return options.UsageError(days.status(), streams);
  Wish wish{
      options.argument(), {"localhost", "127.0.0.1", "::1"}, *days * kDay, options.Has("renew")};
  for (const std::string& name : options.Texts("name")) {
    if (!TlsAuthority::IsName(name)) {
      return options.UsageError(
          absl::InvalidArgumentError(absl::StrCat(
              "--name is '", name, "'; allowed: a machine's name, or an address in numbers")),
          streams);
    }
    AddName(name, wish.names);
  }
  for (const std::string& name : options.Texts("client")) {
    if (!IsClientName(name)) {
      return options.UsageError(
          absl::InvalidArgumentError(absl::StrCat(
              "--client is '", name, "'; allowed: 1 to 64 bytes of [A-Za-z0-9._-], no address")),
          streams);
    }
    wish.clients.push_back(name);
  }
  const absl::Time now = RealClock::Get().Now();
  if (wish.renews) {
    // Clients go on calling it by what they called it before.
    for (const std::string& name : ServerNames(ReadAll(wish.directory + "/server.pem"))) {
      AddName(name, wish.names);
    }
  }
  // A machine's own name may be anything; one that no certificate can have is left out.
  AddName(MachineName(), wish.names);
  if (IsForClientsAlone(wish)) wish.names.clear();
  const absl::Status made = Make(wish, now);
  if (!made.ok()) {
    streams.err << "stepwell tls init: " << made.message() << "\n";
    return kExitFailed;
  }
  Tell(wish, now + wish.lasts, options.json(), streams.out);
  return kExitOk;
}

}  // namespace stepwell::cli
