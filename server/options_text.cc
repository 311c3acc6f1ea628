// What `stepwell serve` prints about its settings.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "server/options.h"

namespace stepwell {
namespace {

std::string About(const Setting& setting) {
  if (setting.words.empty()) return setting.help;
  return absl::StrCat(setting.help, ", of: ", absl::StrJoin(setting.words, ", "));
}

}  // namespace

std::string PrintConfig(const ServeOptions& options) {
  std::string text = "# stepwell serve: every setting and its value. A file for --config.\n";
  for (const Setting& setting : Settings()) {
    const bool is_config = std::string(setting.name) == "config";
    absl::StrAppend(&text, "# ", About(setting), "\n", is_config ? "# " : "", setting.name, " = ",
                    ValueText(setting, options), "\n");
  }
  return text;
}

std::string HelpText() {
  std::string text =
      "Usage: stepwell serve [--name value]...\n"
      "Starts the master: a private PostgreSQL unless --database-url is given, gRPC and HTTP.\n\n"
      "Each setting may also stand in the environment or in the file of --config.\n\n";
  for (const Setting& setting : Settings()) {
    absl::StrAppendFormat(&text, "  --%-28s %s%s\n", setting.name, About(setting),
                          *setting.initial == '\0' ? "" : absl::StrCat(" (", setting.initial, ")"));
  }
  absl::StrAppend(
      &text,
      "  --print-config                 print every setting and its value, and exit\n"
      "  --dry-run                      list the migrations a start would apply, and exit\n"
      "  --migrate-only                 apply them, by a role that may, and exit\n"
      "  --help                         this text\n\n"
      "Examples:\n"
      "  stepwell serve\n"
      "  stepwell serve --data-dir /srv/stepwell --grpc-listen 127.0.0.1:0\n"
      "  stepwell serve --database-url postgresql://stepwell@db/stepwell\n\n"
      "Exit status: 0 stopped as asked, 64 wrong use, 70 internal error,\n"
      "78 something must be put right first (the message says what).\n");
  return text;
}

}  // namespace stepwell
