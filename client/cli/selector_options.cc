#include "client/cli/selector_options.h"

#include "client/cli/words.h"

namespace stepwell::cli {

void AddSelectorOptions(CommandOptions& options) {
  options.Value("group", "G", "only series of this metric group: timing, cpu, training, ...");
  options.Value("name", "NAME", "only series of exactly this name");
  options.List("label", "NAME=VALUE", "only series with this label (repeatable)");
}

absl::StatusOr<v1::SeriesSelector> SelectorOf(const CommandOptions& options) {
  v1::SeriesSelector selector;
  selector.set_metric_group(options.Text("group"));
  selector.set_name(options.Text("name"));
  for (const std::string& label : options.Texts("label")) {
    if (absl::Status parsed = ParseLabel(label, selector); !parsed.ok()) return parsed;
  }
  return selector;
}

}  // namespace stepwell::cli
