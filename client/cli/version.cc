// stepwell version: which release this is.
#include <ostream>

#include "client/cli/options.h"
#include "nlohmann/json.hpp"

namespace stepwell::cli {

int RunVersion(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("version", "", "\nExample:\n  stepwell version --json\n",
                         CommandOptions::Asks::kNobody);
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  if (options.json()) {
    streams.out << nlohmann::ordered_json{{"version", STEPWELL_VERSION}}.dump() << "\n";
  } else {
    streams.out << "stepwell " << STEPWELL_VERSION << "\n";
  }
  return kExitOk;
}

}  // namespace stepwell::cli
