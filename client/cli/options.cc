#include "client/cli/options.h"

#include <algorithm>
#include <cstdlib>
#include <cxxopts.hpp>
#include <exception>
#include <filesystem>
#include <map>
#include <ostream>
#include <set>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/server_address.h"
#include "base/status_macros.h"
#include "client/cli/nearest.h"

namespace stepwell::cli {

struct CommandOptions::Parser {
  explicit Parser(const std::string& title) : options(title) {}
  cxxopts::Options options;
  std::optional<cxxopts::ParseResult> result;
  std::map<std::string, std::vector<std::string>> lists;
  std::set<std::string> names;  // with their dashes
};

namespace {

// `error` of cxxopts names the option between its quotes, without dashes.
std::string UnknownOptionText(const std::string& error, const std::set<std::string>& names) {
  constexpr std::string_view kBegin = "‘";
  constexpr std::string_view kEnd = "’";
  const std::size_t begin = error.find(kBegin);
  const std::size_t end = error.rfind(kEnd);
  if (begin == std::string::npos || end == std::string::npos) return error;
  const std::string word = error.substr(begin + kBegin.size(), end - begin - kBegin.size());
  const std::string name = absl::StrCat(word.size() == 1 ? "-" : "--", word);
  const std::string meant = MeantText(name, names);
  return absl::StrCat("there is no option '", name, meant.empty() ? "'" : "'; ", meant);
}

// `given` lacks the one at its end of `names`, and those behind it.
std::string MissingText(const std::vector<std::string>& names,
                        const std::vector<std::string>& given) {
  const std::string& missing = names[given.size()];
  const auto wanted = std::count(names.begin(), names.end(), missing);
  if (wanted == 1) return absl::StrCat(missing, " is missing");
  return absl::StrCat(
      given.empty() ? "" : "another ", missing, " is missing: ", wanted, " are wanted, and ",
      given.empty() ? "none is given"
                    : absl::StrCat("only '", absl::StrJoin(given, "', '"),
                                   given.size() == 1 ? "' is given" : "' are given"));
}

}  // namespace

CommandOptions::CommandOptions(std::string command, std::string positional, std::string examples,
                               Asks asks)
    : command_(std::move(command)),
      positional_(std::move(positional)),
      examples_(std::move(examples)),
      parser_(std::make_unique<Parser>(absl::StrCat("stepwell ", command_))),
      asks_(asks) {
  parser_->options.set_width(100);
  // Another program's arguments end the options.
  const bool is_last = absl::EndsWith(positional_, "[ARGS...]");
  const std::string place = positional_.empty() || is_last ? "" : absl::StrCat(positional_, " ");
  parser_->options.custom_help(
      absl::StrCat(place, "[OPTION...]", is_last ? absl::StrCat(" [--] ", positional_) : ""));
  parser_->options.positional_help("");
  Flag("json", "print JSON with stable keys instead of text");
  if (asks == Asks::kMaster) {
    Value("server", "HOST:PORT",
          absl::StrCat("the master (STEPWELL_SERVER, else 127.0.0.1:", kDefaultGrpcPort, ")"));
    Value("tls-ca", "FILE", "speak TLS; the CAs of masters' certificates (STEPWELL_TLS_CA)");
    Value("tls-cert", "FILE", "a certificate of one's own (STEPWELL_TLS_CERT)");
    Value("tls-key", "FILE", "its key (STEPWELL_TLS_KEY)");
  }
  Flag("h,help", "this text");
}

CommandOptions::~CommandOptions() = default;

void CommandOptions::Flag(const std::string& name, const std::string& help) {
  parser_->names.insert("--" + name.substr(name.find(',') + 1));
  parser_->options.add_options()(name, help);
}

void CommandOptions::Value(const std::string& name, const std::string& placeholder,
                           const std::string& help) {
  parser_->names.insert("--" + name);
  parser_->options.add_options()(name, help, cxxopts::value<std::string>(), placeholder);
}

void CommandOptions::List(const std::string& name, const std::string& placeholder,
                          const std::string& help) {
  Value(name, placeholder, help);
}

std::optional<int> CommandOptions::Parse(const std::vector<std::string>& args, Streams streams) {
  std::vector<const char*> argv = {"stepwell"};
  for (const std::string& arg : args) argv.push_back(arg.c_str());
  try {
    parser_->result = parser_->options.parse(static_cast<int>(argv.size()), argv.data());
    for (const cxxopts::KeyValue& pair : parser_->result->arguments()) {
      parser_->lists[pair.key()].push_back(pair.value());
    }
    if (Has("help")) {
      streams.out << parser_->options.help() << examples_;
      return kExitOk;
    }
  } catch (const cxxopts::exceptions::no_such_option& error) {
    return UsageError(absl::InvalidArgumentError(UnknownOptionText(error.what(), parser_->names)),
                      streams);
  } catch (const std::exception& error) {
    return UsageError(absl::InvalidArgumentError(error.what()), streams);
  }
  const std::vector<std::string>& left = parser_->result->unmatched();
  const std::vector<std::string> names = absl::StrSplit(positional_, ' ', absl::SkipEmpty());
  if (left.size() < names.size() && names[left.size()][0] != '[') {
    return UsageError(absl::InvalidArgumentError(MissingText(names, left)), streams);
  }
  const bool takes_more = !names.empty() && absl::EndsWith(names.back(), "...]");
  if (left.size() > names.size() && !takes_more) {
    return UsageError(
        absl::InvalidArgumentError(absl::StrCat("unexpected argument '", left[names.size()], "'")),
        streams);
  }
  arguments_ = left;
  if (!takes_more) arguments_.resize(names.size());
  if (const absl::Status read = ReadMaster(); !read.ok()) return UsageError(read, streams);
  return std::nullopt;
}

absl::Status CommandOptions::ReadMaster() {
  if (asks_ != Asks::kMaster) return absl::OkStatus();
  master_.address = server();
  // What asks no master may be called where recorders ask none either.
  if (master_.address != kOfflineServer && !IsServerAddress(master_.address)) {
    return absl::InvalidArgumentError(
        absl::StrCat(Has("server") ? "--server" : "STEPWELL_SERVER", " is '", master_.address,
                     "'; allowed: HOST:PORT, for example 127.0.0.1:", kDefaultGrpcPort));
  }
  master_.tls = ClientTls({Text("tls-ca"), Text("tls-cert"), Text("tls-key")});
  STEPWELL_RETURN_IF_ERROR(CheckClientTls(master_.tls));
  // A command may go to another directory.
  for (std::string* file : {&master_.tls.ca, &master_.tls.cert, &master_.tls.key}) {
    if (!file->empty()) *file = std::filesystem::absolute(*file).string();
  }
  STEPWELL_ASSIGN_OR_RETURN(master_.own, ReadTls(master_.tls, TlsSide::kClient));
  return absl::OkStatus();
}

int CommandOptions::UsageError(const absl::Status& status, Streams streams) const {
  streams.err << "stepwell " << command_ << ": " << status.message() << "\nTry 'stepwell "
              << command_ << " --help'.\n";
  return kExitUsage;
}

bool CommandOptions::Has(const std::string& name) const {
  return parser_->lists.contains(name) || parser_->result->count(name) > 0;
}

std::string CommandOptions::Text(const std::string& name) const {
  const std::vector<std::string>& texts = Texts(name);
  return texts.empty() ? std::string() : texts.back();
}

const std::vector<std::string>& CommandOptions::Texts(const std::string& name) const {
  static const std::vector<std::string> none;
  const auto given = parser_->lists.find(name);
  return given == parser_->lists.end() ? none : given->second;
}

absl::StatusOr<std::int64_t> CommandOptions::Integer(const std::string& name, std::int64_t fallback,
                                                     std::int64_t min, std::int64_t max) const {
  const std::string text = Text(name);
  if (text.empty()) return fallback;
  std::int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < min || value > max) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", name, " is '", text, "'; allowed: ", min, " ... ", max));
  }
  return value;
}

absl::StatusOr<absl::Duration> CommandOptions::Duration(const std::string& name,
                                                        absl::Duration fallback, absl::Duration min,
                                                        absl::Duration max) const {
  const std::string text = Text(name);
  if (text.empty()) return fallback;
  absl::Duration value;
  if (!absl::ParseDuration(text, &value) || value < min || value > max) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", name, " is '", text, "'; allowed: a duration such as 250ms, ",
                     absl::FormatDuration(min), " ... ", absl::FormatDuration(max)));
  }
  return value;
}

std::string CommandOptions::server() const {
  if (std::string given = Text("server"); !given.empty()) return given;
  if (const char* named = std::getenv("STEPWELL_SERVER"); named != nullptr && *named != '\0') {
    return named;
  }
  return absl::StrCat("127.0.0.1:", kDefaultGrpcPort);
}

}  // namespace stepwell::cli
