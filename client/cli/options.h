// CommandOptions: the command line of one subcommand: the options that all share (--json, --help,
// --server where a master is asked), its own, and its positional arguments. Wraps cxxopts, whose
// exceptions end here. Confined to one thread.
//
//   CommandOptions options("report", "TRIAL", kExamples);
//   options.Flag("all-ranks", "show every rank");
//   options.Value("rank", "R", "only this rank");
//   if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/command.h"
#include "client/cli/master_place.h"

namespace stepwell::cli {

class CommandOptions {
 public:
  // `positional` names the arguments ("TRIAL", "TRIAL on|off"; a last one as "[TRIAL]" may be left out),
  // or is empty. A last one as "[TRIAL...]" takes any number. `examples` ends the help.
  enum class Asks { kMaster, kNobody };
  CommandOptions(std::string command, std::string positional, std::string examples,
                 Asks asks = Asks::kMaster);
  ~CommandOptions();

  void Flag(const std::string& name, const std::string& help);
  void Value(const std::string& name, const std::string& placeholder, const std::string& help);
  // May be given several times.
  void List(const std::string& name, const std::string& placeholder, const std::string& help);

  // An exit code when there is nothing more to do: help was printed, or the use is wrong.
  std::optional<int> Parse(const std::vector<std::string>& args, Streams streams);
  // Prints `status` as a usage error and returns its exit code.
  int UsageError(const absl::Status& status, Streams streams) const;

  bool Has(const std::string& name) const;
  std::string Text(const std::string& name) const;  // empty if not given
  const std::vector<std::string>& Texts(const std::string& name) const;
  // REQUIRES: min <= max. `fallback` if not given; kInvalidArgument says what is allowed.
  absl::StatusOr<std::int64_t> Integer(const std::string& name, std::int64_t fallback,
                                       std::int64_t min, std::int64_t max) const;
  // As "250ms". REQUIRES: min <= max. Otherwise as above.
  absl::StatusOr<absl::Duration> Duration(const std::string& name, absl::Duration fallback,
                                          absl::Duration min, absl::Duration max) const;

  // REQUIRES: Parse went well, and `index` is that of a positional. Empty where one was left out.
  const std::string& argument(std::size_t index = 0) const { return arguments_[index]; }
  // All that were given, where the last positional takes any number.
  const std::vector<std::string>& arguments() const { return arguments_; }
  // --server, else STEPWELL_SERVER, else the loopback default.
  std::string server() const;
  // With --tls-ca, --tls-cert and --tls-key, else STEPWELL_TLS_CA and so on; read by Parse.
  const MasterPlace& master() const { return master_; }
  bool json() const { return Has("json"); }
  std::string project() const { return Text("project"); }

 private:
  // Of a command that asks a master.
  absl::Status ReadMaster();
  struct Parser;  // defined in options.cc, wraps cxxopts
  std::string command_;
  std::string positional_;
  std::string examples_;
  std::unique_ptr<Parser> parser_;
  std::vector<std::string> arguments_;
  Asks asks_;
  MasterPlace master_;
};

// The port that `stepwell serve` listens on when not told otherwise.
inline constexpr int kDefaultGrpcPort = 7817;

}  // namespace stepwell::cli
