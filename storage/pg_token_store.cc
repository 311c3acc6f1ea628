#include "storage/pg_token_store.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "storage/pg_array.h"

namespace stepwell {
namespace {

// A door that waits longer is of no use to who stands before it.
constexpr absl::Duration kStatementMax = absl::Seconds(5);
constexpr absl::Duration kReplyMax = absl::Seconds(8);
constexpr absl::Duration kTurnPatience = absl::Seconds(5);
constexpr absl::Duration kFetchPatience = absl::Seconds(2);
// Who waits for news of tokens has others to tell meanwhile.
constexpr absl::Duration kWatchMax = absl::Seconds(2);

// No grant holds a line break.
#define STEPWELL_TOKEN_COLUMNS                                                                    \
  "token_id, secret_sha256, name, array_to_string(grants, chr(10)), created_time, expires_time, " \
  "used_time, revoked_time, coalesce(certificate, ''), coalesce(made_by, ''), "                   \
  "coalesce(family, '') "

// Of what was fetched. A maker in a file is not here.
#define STEPWELL_MAKER_LIVES                                              \
  "(made_by like 'admin:%' or made_by in (select m.token_id "             \
  "from stepwell.tokens m where m.made_by is null and m.revoked_time is " \
  "null and (m.expires_time is null or m.expires_time > now())))"

constexpr char kRaiseChange[] = "update stepwell.token_changes set change_no = change_no + 1";
// Under the lock of kRaiseChange: nobody makes one meanwhile.
constexpr char kCountLiving[] =
    "select count(*) from stepwell.tokens "
    "where made_by is null and revoked_time is null "
    "and (expires_time is null or expires_time > now())";
// As kCountLiving.
constexpr char kFindCertificate[] =
    "select token_id from stepwell.tokens where made_by is null and certificate = $1 "
    "and revoked_time is null and (expires_time is null or expires_time > now())";
constexpr char kForgetEnded[] =
    "delete from stepwell.tokens "
    "where made_by is null and least(revoked_time, expires_time) < now() - interval '30 days'";
constexpr char kCreate[] =
    "insert into stepwell.tokens (token_id, secret_sha256, name, grants, expires_time, "
    "certificate) "
    "values ($1, $2, $3, $4, $5, nullif($6, '')) "
    "returning " STEPWELL_TOKEN_COLUMNS;
constexpr char kList[] = "select " STEPWELL_TOKEN_COLUMNS R"(
from stepwell.tokens
where ($1 or (revoked_time is null and (expires_time is null or expires_time > now())
              and (made_by is null or )" STEPWELL_MAKER_LIVES R"()))
  and (created_time, token_id collate "C") < ($2, $3)
  and ($5 or made_by is null)
order by created_time desc, token_id collate "C" desc limit $4)";
constexpr char kRevoke[] =
    "update stepwell.tokens set revoked_time = coalesce(revoked_time, now()) "
    "where token_id = $1 returning " STEPWELL_TOKEN_COLUMNS;
// What a maker made ends with it without a word here: there may be many (STEPWELL_MAKER_LIVES).
constexpr char kRevokeFamily[] =
    "update stepwell.tokens set revoked_time = now() where made_by is not null and family = $1 "
    "and revoked_time is null and expires_time > now()";
constexpr char kRaiseFetch[] =
    "update stepwell.token_changes set fetch_no = fetch_no + 1 returning fetch_no";
// Under the lock of kRaiseFetch. Each call takes away more than it adds. The ended ones of a family that lives
// stay, the latest of them: who finds the text of one revokes the family by it.
constexpr char kForgetFetched[] = R"(
delete from stepwell.tokens where token_id in (
  select token_id from stepwell.tokens e
  where e.made_by is not null and e.expires_time < now() - interval '10 minutes'
    and not exists (select from stepwell.tokens l
                    where l.made_by is not null and l.family = e.family and l.expires_time > now())
  order by e.expires_time limit 100))";
constexpr char kForgetOfFamily[] = R"(
delete from stepwell.tokens where token_id in (
  select token_id from stepwell.tokens
  where made_by is not null and family = $1 and expires_time <= now()
  order by expires_time desc offset 4096))";
// Of one that must live for another to be made.
constexpr char kFindMaker[] =
    "select expires_time, family_time from stepwell.tokens where token_id = $1 "
    "and revoked_time is null and (expires_time is null or expires_time > now())";
constexpr char kCountFetched[] =
    "select count(*) from stepwell.tokens where made_by = $1 and grants[1] = $2 "
    "and expires_time > now() and revoked_time is null";
constexpr char kCountFamily[] =
    "select count(*) from stepwell.tokens where made_by is not null and family = $1 "
    "and expires_time > now() and revoked_time is null";
// Those that ended too, for they are rows.
constexpr char kCountRows[] =
    "select count(*) from (select from stepwell.tokens where made_by = $1 limit $2) rows";
constexpr char kFetch[] =
    "insert into stepwell.tokens (token_id, secret_sha256, name, grants, expires_time, made_by, "
    "family, fetch_no, family_time) "
    "values ($1, $2, $3, array[$4], "
    "least(now() + $5::bigint * interval '1 microsecond', $6::timestamptz, "
    "$10::timestamptz + $11::bigint * interval '1 microsecond'), "
    "$7, $8, $9, coalesce($10::timestamptz, now())) "
    "returning " STEPWELL_TOKEN_COLUMNS;
constexpr char kReadChange[] = "select change_no, fetch_no from stepwell.token_changes";
constexpr char kReadLiving[] = "select " STEPWELL_TOKEN_COLUMNS R"(
from stepwell.tokens
where made_by is null and revoked_time is null and (expires_time is null or expires_time > now())
union all
select )" STEPWELL_TOKEN_COLUMNS R"(
from stepwell.tokens
where made_by is not null and revoked_time is null and expires_time > now()
  and )" STEPWELL_MAKER_LIVES;
// What a dead maker made ended with it; when is not told here.
constexpr char kReadEnded[] = "select " STEPWELL_TOKEN_COLUMNS R"(
from (select *, least(revoked_time, expires_time) as end_time from stepwell.tokens
      where secret_sha256 is not null
        and (revoked_time is not null or expires_time <= now()
             or (made_by is not null and not )" STEPWELL_MAKER_LIVES R"())
      order by end_time desc nulls first limit $1) ended
order by end_time nulls last)";
constexpr char kReadFetched[] = "select " STEPWELL_TOKEN_COLUMNS R"(
from stepwell.tokens
where made_by is not null and fetch_no > $1 and revoked_time is null and expires_time > now()
  and )" STEPWELL_MAKER_LIVES;
constexpr char kNoteUsed[] = R"(
update stepwell.tokens t set used_time = u.time
from (select id, to_timestamp(us / 1e6) as time
      from unnest($1::text[], $2::bigint[]) as given (id, us)) u
where t.token_id = u.id and (t.used_time is null or t.used_time < u.time))";
#define STEPWELL_PLACE                                      \
  "select t.trial_id, p.name, coalesce(t.external_id, '') " \
  "from stepwell.trials t join stepwell.projects p on p.project_id = t.project_id where "
constexpr char kPlaceById[] = STEPWELL_PLACE "t.trial_id = $1";
constexpr char kPlaceByName[] = STEPWELL_PLACE "p.name = $1 and t.external_id = $2";

PgConnection::Options ConnectionOptions(const PgTokenStore::Options& options) {
  PgConnection::Options connection;
  connection.url = options.url;
  connection.application_name = "stepwell-tokens";
  connection.statement_timeout = kStatementMax;
  connection.reply_timeout = kReplyMax;
  connection.cut = options.cut;
  // One that stands still within a transaction holds the row that all changes go through.
  connection.idle_in_transaction_timeout = kStatementMax;
  return connection;
}

PgConnection::Options WatchOptions(const PgTokenStore::Options& options) {
  PgConnection::Options connection = ConnectionOptions(options);
  connection.connect_timeout = kWatchMax;
  connection.statement_timeout = kWatchMax - absl::Milliseconds(500);
  connection.reply_timeout = kWatchMax;
  return connection;
}

std::int64_t TimeAt(const PgResult& result, int row, int column) {
  return result.IsNull(row, column) ? 0 : result.TimestampUs(row, column);
}

TokenRecord TokenAt(const PgResult& result, int row) {
  TokenRecord token;
  token.id = std::string(result.Text(row, 0));
  if (!result.IsNull(row, 1)) token.digest = std::string(result.Bytes(row, 1));
  token.name = std::string(result.Text(row, 2));
  token.grants = absl::StrSplit(std::string(result.Text(row, 3)), '\n');
  token.created_time_us = TimeAt(result, row, 4);
  token.expires_time_us = TimeAt(result, row, 5);
  token.used_time_us = TimeAt(result, row, 6);
  token.revoked_time_us = TimeAt(result, row, 7);
  token.certificate = std::string(result.Text(row, 8));
  token.made_by = std::string(result.Text(row, 9));
  token.family = std::string(result.Text(row, 10));
  return token;
}

std::vector<TokenRecord> TokensOf(const PgResult& result) {
  std::vector<TokenRecord> tokens;
  for (int row = 0; row < result.row_count(); ++row) tokens.push_back(TokenAt(result, row));
  return tokens;
}

absl::Status CertificateTaken(const TokenRecord& token, std::string_view by) {
  absl::Status taken = absl::AlreadyExistsError(
      absl::StrCat("grants are given to ", token.certificate, " already, as ",
                   absl::string_view(by.data(), by.size()), "; revoke that one first"));
  taken.SetPayload("stepwell/reason", absl::Cord("CERTIFICATE"));
  return taken;
}

absl::StatusOr<TokenNumbers> NumbersOn(PgConnection& connection) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult row, connection.Exec(kReadChange));
  if (row.row_count() != 1) return absl::DataLossError("token_changes: not one row");
  return TokenNumbers{row.Int64(0, 0), row.Int64(0, 1)};
}

}  // namespace

PgTokenStore::PgTokenStore(const Options& options)
    : fetched_per_trial_max_(options.fetched_per_trial_max),
      fetched_per_maker_max_(options.fetched_per_maker_max),
      family_living_max_(options.family_living_max),
      watch_(WatchOptions(options), 1),
      shelf_(ConnectionOptions(options), options.connections_max),
      fetches_(ConnectionOptions(options), 1) {}

absl::StatusOr<TokenRecord> PgTokenStore::Create(const TokenRecord& token) {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, shelf_.Borrow(kTurnPatience));
  TokenRecord created;
  const absl::Status made = connection->InTransaction([&]() -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(connection->Exec(kRaiseChange).status());
    STEPWELL_RETURN_IF_ERROR(connection->Exec(kForgetEnded).status());
    STEPWELL_ASSIGN_OR_RETURN(const PgResult living, connection->Exec(kCountLiving));
    if (living.Int64(0, 0) >= kTokensLivingMax) {
      absl::Status full = absl::ResourceExhaustedError(
          absl::StrCat("there are ", living.Int64(0, 0), " tokens that live, limit ",
                       kTokensLivingMax, "; revoke some, or let them expire"));
      full.SetPayload("stepwell/reason", absl::Cord("TOKEN_LIMIT"));
      return full;
    }
    if (!token.certificate.empty()) {
      STEPWELL_ASSIGN_OR_RETURN(const PgResult same,
                                connection->Exec(kFindCertificate, {token.certificate}));
      if (same.row_count() > 0) return CertificateTaken(token, same.Text(0, 0));
    }
    const PgParam digest =
        token.digest.empty() ? PgParam::Null(PgOid::kBytea) : PgParam(PgBytes{token.digest});
    const PgParam expires = token.expires_time_us == 0
                                ? PgParam::Null(PgOid::kTimestamptz)
                                : PgParam(PgTimestamp{token.expires_time_us});
    STEPWELL_ASSIGN_OR_RETURN(
        const PgResult row,
        connection->Exec(kCreate, {token.id, digest, token.name, PgArray(token.grants), expires,
                                   token.certificate}));
    created = TokenAt(row, 0);
    return absl::OkStatus();
  });
  STEPWELL_RETURN_IF_ERROR(ComeAgainIfUnknown(made));
  return created;
}

absl::StatusOr<std::vector<TokenRecord>> PgTokenStore::List(const TokenPage& page) {
  // Beyond every token.
  TokenPage::After after{INT64_C(4'000'000'000'000'000), "g"};
  if (page.after) after = *page.after;
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, shelf_.Borrow(kTurnPatience));
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult rows,
      connection->Exec(kList, {page.with_ended, PgTimestamp{after.created_time_us}, after.id,
                               std::int64_t{page.limit}, page.with_fetched}));
  return TokensOf(rows);
}

absl::Status PgTokenStore::CheckRoom(PgConnection& connection, const TokenFetch& fetch) const {
  const auto full = [](absl::Status status) {
    status.SetPayload("stepwell/reason", absl::Cord("TOKEN_LIMIT"));
    return status;
  };
  if (!fetch.family.empty()) {
    STEPWELL_RETURN_IF_ERROR(connection.Exec(kForgetOfFamily, {fetch.family}).status());
    STEPWELL_ASSIGN_OR_RETURN(const PgResult kin, connection.Exec(kCountFamily, {fetch.family}));
    if (kin.Int64(0, 0) >= family_living_max_) {
      return full(absl::ResourceExhaustedError(
          absl::StrCat("of those that were renewed one from the other ", kin.Int64(0, 0),
                       " live, limit ", family_living_max_, "; use the newest of them")));
    }
  }
  STEPWELL_ASSIGN_OR_RETURN(const PgResult living,
                            connection.Exec(kCountFetched, {fetch.made_by, fetch.grant}));
  if (living.Int64(0, 0) >= fetched_per_trial_max_) {
    return full(absl::ResourceExhaustedError(absl::StrCat(
        "of ", fetch.grant, " ", living.Int64(0, 0), " tokens live that ", fetch.made_by,
        " made, limit ", fetched_per_trial_max_, "; let them expire, or ask for shorter ones")));
  }
  STEPWELL_ASSIGN_OR_RETURN(const PgResult rows,
                            connection.Exec(kCountRows, {fetch.made_by, fetched_per_maker_max_}));
  if (rows.Int64(0, 0) < fetched_per_maker_max_) return absl::OkStatus();
  return full(absl::ResourceExhaustedError(
      absl::StrCat(fetch.made_by, " made ", rows.Int64(0, 0),
                   " tokens that live or ended within ten minutes, limit ", fetched_per_maker_max_,
                   "; use those that live, or ask for longer ones")));
}

absl::StatusOr<TokenRecord> PgTokenStore::Fetch(const TokenFetch& fetch) {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, fetches_.Borrow(kFetchPatience));
  TokenRecord fetched;
  const absl::Status made = connection->InTransaction([&]() -> absl::Status {
    // First: who revokes one of them holds the same row, before or after.
    STEPWELL_ASSIGN_OR_RETURN(const PgResult number, connection->Exec(kRaiseFetch));
    if (number.row_count() != 1) return absl::DataLossError("token_changes: not one row");
    STEPWELL_RETURN_IF_ERROR(connection->Exec(kForgetFetched).status());
    PgParam ends = PgParam::Null(PgOid::kTimestamptz);
    PgParam family_time = PgParam::Null(PgOid::kTimestamptz);
    for (const std::string& id : {fetch.shown_id, fetch.made_by}) {
      // The one in a file is not here.
      if (id.empty() || absl::StrContains(id, ':')) continue;
      STEPWELL_ASSIGN_OR_RETURN(const PgResult maker, connection->Exec(kFindMaker, {id}));
      if (maker.row_count() == 0) {
        return absl::UnauthenticatedError(
            "the token of this call has been revoked, or has expired");
      }
      // A renewal may outlive what it renews, and not who made both.
      const bool is_maker = id == fetch.made_by;
      if (is_maker && !maker.IsNull(0, 0)) ends = PgTimestamp{maker.TimestampUs(0, 0)};
      if (!is_maker && !maker.IsNull(0, 1)) family_time = PgTimestamp{maker.TimestampUs(0, 1)};
    }
    STEPWELL_RETURN_IF_ERROR(CheckRoom(*connection, fetch));
    STEPWELL_ASSIGN_OR_RETURN(
        const PgResult row,
        connection->Exec(kFetch,
                         {fetch.id, PgBytes{fetch.digest}, fetch.name, fetch.grant,
                          absl::ToInt64Microseconds(fetch.lifetime), ends, fetch.made_by,
                          fetch.family.empty() ? fetch.id : fetch.family, number.Int64(0, 0),
                          family_time, absl::ToInt64Microseconds(kFamilyAgeMax)}));
    fetched = TokenAt(row, 0);
    if (fetched.expires_time_us <= fetched.created_time_us) {
      return absl::UnauthenticatedError(absl::StrCat(
          "the token of this call has been renewed for ", absl::ToInt64Hours(kFamilyAgeMax) / 24,
          " days, and no longer is: show one that was not fetched"));
    }
    return absl::OkStatus();
  });
  STEPWELL_RETURN_IF_ERROR(ComeAgainIfUnknown(made));
  return fetched;
}

absl::StatusOr<TokenRecord> PgTokenStore::Revoke(const std::string& id) {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, shelf_.Borrow(kTurnPatience));
  TokenRecord revoked;
  const absl::Status done = connection->InTransaction([&]() -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(connection->Exec(kRaiseChange).status());
    STEPWELL_ASSIGN_OR_RETURN(const PgResult row, connection->Exec(kRevoke, {id}));
    if (row.row_count() == 0) {
      return absl::NotFoundError(absl::StrCat("there is no token ", id));
    }
    revoked = TokenAt(row, 0);
    if (revoked.family.empty()) return absl::OkStatus();
    return connection->Exec(kRevokeFamily, {revoked.family}).status();
  });
  STEPWELL_RETURN_IF_ERROR(ComeAgainIfUnknown(done));
  return revoked;
}

absl::StatusOr<TokenNumbers> PgTokenStore::ReadNumbers() {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, watch_.Borrow(kWatchMax));
  return NumbersOn(*connection);
}

absl::StatusOr<LivingTokens> PgTokenStore::ReadLiving() {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, watch_.Borrow(kWatchMax));
  LivingTokens living;
  // The numbers first: what changes in between is read, and read once more with the next number.
  STEPWELL_ASSIGN_OR_RETURN(living.numbers, NumbersOn(*connection));
  STEPWELL_ASSIGN_OR_RETURN(const PgResult rows, connection->Exec(kReadLiving));
  living.tokens = TokensOf(rows);
  return living;
}

absl::StatusOr<std::vector<TokenRecord>> PgTokenStore::ReadEnded(int limit) {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, watch_.Borrow(kWatchMax));
  STEPWELL_ASSIGN_OR_RETURN(const PgResult rows,
                            connection->Exec(kReadEnded, {std::int64_t{limit}}));
  return TokensOf(rows);
}

absl::StatusOr<LivingTokens> PgTokenStore::ReadFetched(std::int64_t fetch_no) {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, watch_.Borrow(kWatchMax));
  LivingTokens living;
  STEPWELL_ASSIGN_OR_RETURN(living.numbers, NumbersOn(*connection));
  STEPWELL_ASSIGN_OR_RETURN(const PgResult rows, connection->Exec(kReadFetched, {fetch_no}));
  living.tokens = TokensOf(rows);
  return living;
}

absl::Status PgTokenStore::NoteUsed(const std::vector<std::pair<std::string, std::int64_t>>& used) {
  std::vector<std::string> ids;
  std::vector<std::int64_t> times_us;
  for (const auto& [id, time_us] : used) {
    ids.push_back(id);
    times_us.push_back(time_us);
  }
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, watch_.Borrow(kWatchMax));
  return connection->Exec(kNoteUsed, {PgArray(ids), PgArray(times_us)}).status();
}

absl::StatusOr<TrialPlace> PgTokenStore::FindPlace(const TrialSelector& trial) {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, shelf_.Borrow(kTurnPatience));
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult row, trial.trial_id != 0
                              ? connection->Exec(kPlaceById, {trial.trial_id})
                              : connection->Exec(kPlaceByName, {trial.project, trial.external_id}));
  if (row.row_count() == 0) return NoSuchTrial(trial);
  return TrialPlace{row.Int64(0, 0), std::string(row.Text(0, 1)), std::string(row.Text(0, 2))};
}

}  // namespace stepwell
