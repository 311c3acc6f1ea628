// stepwell token create | list | revoke: who else may ask a master, and for what.
#include <ostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/cli/cap_units.h"
#include "client/cli/master_client.h"
#include "client/cli/options.h"
#include "client/cli/proto_json.h"
#include "client/cli/table.h"
#include "client/cli/terminal.h"
#include "client/cli/units.h"

namespace stepwell::cli {
namespace {

constexpr char kCreateExamples[] =
    "\nA grant is one of\n"
    "  read:PROJECT          to read the trials of a project; read:* for all of them, and the "
    "master's state\n"
    "  write:PROJECT         to read, ingest, archive and delete them, and their traces\n"
    "  ingest:PROJECT/TRIAL  to ingest one trial, which need not be there yet (ingest:id:7 by its "
    "number)\n"
    "  admin                 everything\n"
    "The token goes to standard output and is told this once: the master keeps its SHA-256 alone. "
    "Clients\nshow it in STEPWELL_TOKEN, browsers as password.\n"
    "With --certificate no token is made: a master with --tls-client-ca knows such clients by "
    "their\ncertificate, by one of its alternative names (dns:, uri:) or its common name (cn:).\n"
    "\nExamples:\n"
    "  stepwell token create grafana --grant 'read:*' --expires 1y\n"
    "  stepwell token create ci --grant write:vision --grant read:speech\n"
    "  stepwell token create agent-7 --certificate dns:agent-7.lab --grant write:vision\n"
    "  STEPWELL_TOKEN=$(stepwell token create run-7 --grant ingest:vision/run-7 --expires 2d)\n";
constexpr char kListExamples[] =
    "\nFetched tokens are those that agents and launchers get for one trial each; their maker's "
    "end\nis theirs.\n"
    "\nExamples:\n"
    "  stepwell token list\n"
    "  stepwell token list --ended --json\n";
constexpr char kRevokeExamples[] =
    "\nThe master refuses the token from now on, others of its database within five seconds; what "
    "is\nopen with it ends, and so do the tokens that were fetched with it. Agents keep what they "
    "have, and go on with another token.\n"
    "\nExample:\n  stepwell token revoke 5f0c21d3a9be\n";

std::string ExpiryText(const v1::Token& token) {
  return token.expires_time_us() == 0 ? "never" : TimeText(token.expires_time_us());
}

std::string StateText(const v1::Token& token, std::int64_t now_us) {
  if (token.revoked_time_us() != 0) return "revoked";
  const bool is_over = token.expires_time_us() != 0 && token.expires_time_us() <= now_us;
  return is_over ? "expired" : "";
}

absl::StatusOr<v1::ListTokensResponse> ReadTokens(MasterClient& master,
                                                  const CommandOptions& options) {
  v1::ListTokensResponse all;
  v1::ListTokensRequest request;
  request.set_with_ended(options.Has("ended"));
  request.set_with_fetched(options.Has("fetched"));
  request.set_page_size(1000);
  do {
    absl::StatusOr<v1::ListTokensResponse> page = master.ListTokens(request);
    if (!page.ok()) return page;
    for (v1::Token& token : *page->mutable_tokens()) all.add_tokens()->Swap(&token);
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return all;
}

std::string TokensText(const v1::ListTokensResponse& tokens, const Paint& paint) {
  if (tokens.tokens().empty()) return "There is no token but the one in the master's file.\n";
  const std::int64_t now_us = absl::ToUnixMicros(absl::Now());
  Table table({{"id"},
               {"name"},
               {"made by"},
               {"certificate"},
               {"grants"},
               {"created"},
               {"expires"},
               {"last used"},
               {"ended"}});
  for (const v1::Token& token : tokens.tokens()) {
    table.Add({Printable(token.token_id()), Printable(token.name()), Printable(token.made_by()),
               Printable(token.certificate()), Printable(absl::StrJoin(token.grants(), " ")),
               TimeText(token.created_time_us()), ExpiryText(token), TimeText(token.used_time_us()),
               StateText(token, now_us)});
  }
  return table.Text(paint);
}

}  // namespace

int RunTokenCreate(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("token create", "NAME", kCreateExamples);
  options.List("grant", "GRANT", "what it may do, as below; may be given again");
  options.Value(
      "certificate", "NAME",
      "no secret, but clients whose certificate has this name: dns:NAME, uri:URI, cn:NAME");
  options.Value("expires", "AGE", "how long it lasts: 2d, 1y (for ever)");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  v1::CreateTokenRequest request;
  request.set_name(options.argument());
  request.set_certificate(options.Text("certificate"));
  for (const std::string& grant : options.Texts("grant")) request.add_grants(grant);
  if (request.grants().empty()) {
    return options.UsageError(
        absl::InvalidArgumentError("--grant is missing; allowed: read:PROJECT, write:PROJECT, "
                                   "ingest:PROJECT/TRIAL, admin"),
        streams);
  }
  if (options.Has("expires")) {
    const absl::StatusOr<std::int64_t> seconds = ParseAge("--expires", options.Text("expires"));
    if (!seconds.ok()) return options.UsageError(seconds.status(), streams);
    request.set_expires_after_seconds(*seconds);
  }
  MasterClient master(options.master());
  const absl::StatusOr<v1::CreateTokenResponse> response = master.CreateToken(request);
  if (!response.ok()) return ReportFailure(response.status(), options.server(), streams);
  if (options.json()) {
    streams.out << ToJson(*response).dump(2) << "\n";
    return kExitOk;
  }
  const v1::Token& token = response->token();
  if (!token.certificate().empty()) {
    streams.err << "Clients with the certificate " << Printable(token.certificate()) << " have "
                << Printable(absl::StrJoin(token.grants(), ", ")) << ", expires "
                << ExpiryText(token) << ". Revoke " << Printable(token.token_id())
                << " to end that.\n";
    return kExitOk;
  }
  streams.out << Printable(response->text()) << "\n";
  streams.err << "Token " << Printable(token.token_id()) << " ("
              << Printable(absl::StrJoin(token.grants(), ", ")) << "), expires "
              << ExpiryText(token) << ". It is told this once: keep it.\n";
  return kExitOk;
}

int RunTokenList(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("token list", "", kListExamples);
  options.Flag("ended", "those that were revoked or expired within 30 days, too");
  options.Flag("fetched", "those that were fetched for one trial, too");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  MasterClient master(options.master());
  const absl::StatusOr<v1::ListTokensResponse> tokens = ReadTokens(master, options);
  if (!tokens.ok()) return ReportFailure(tokens.status(), options.server(), streams);
  streams.out << (options.json() ? ToJson(*tokens).dump(2) + "\n"
                                 : TokensText(*tokens, PaintFor(streams.out)));
  return kExitOk;
}

int RunTokenRevoke(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("token revoke", "ID", kRevokeExamples);
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  v1::RevokeTokenRequest request;
  request.set_token_id(options.argument());
  MasterClient master(options.master());
  const absl::StatusOr<v1::RevokeTokenResponse> response = master.RevokeToken(request);
  if (!response.ok()) return ReportFailure(response.status(), options.server(), streams);
  const v1::Token& token = response->token();
  streams.out << (options.json() ? ToJson(*response).dump(2) + "\n"
                                 : absl::StrCat(Printable(token.name()), " (",
                                                Printable(token.token_id()), ") is revoked.\n"));
  return kExitOk;
}

}  // namespace stepwell::cli
