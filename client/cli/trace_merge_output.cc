#include "client/cli/trace_merge_output.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "base/trace/gzip_packer.h"
#include "client/cli/export_output.h"
#include "client/cli/terminal.h"
#include "client/cli/trace_words.h"
#include "client/cli/units.h"

namespace stepwell::cli {
namespace {

nlohmann::json JsonOf(const MergePlan& plan, const MergeCounts& counts) {
  nlohmann::json inputs = nlohmann::json::array();
  for (const PlacedInput& input : plan.inputs) {
    nlohmann::json one = {{"file", input.label},
                          {"rank", input.rank},
                          {"is_native", input.is_native},
                          {"shift_us", static_cast<double>(input.shift_ns) * 1e-3},
                          {"clock_error_us", nullptr}};
    if (input.error_ns.has_value())
      one["clock_error_us"] = static_cast<double>(*input.error_ns) * 1e-3;
    if (input.drift != 0) one["drift_us_per_s"] = input.drift * 1e6;
    inputs.push_back(std::move(one));
  }
  return {{"event_count", counts.written}, {"left_out_count", counts.left_out}, {"inputs", inputs}};
}

absl::StatusOr<MergeCounts> Write(const std::string& path, const WriteMerge& write,
                                  ExportOutput& output) {
  const auto take = [&](std::string_view bytes) { return output.Write(bytes); };
  absl::StatusOr<MergeCounts> counts;
  if (absl::EndsWith(path, ".gz")) {
    GzipPacker packer(take);
    counts = write([&](std::string_view bytes) { return packer.Feed(bytes); });
    const absl::Status packed = counts.ok() ? packer.Finish() : counts.status();
    if (!packed.ok()) return packed;
  } else {
    counts = write(take);
    if (!counts.ok()) return counts;
  }
  if (const absl::Status whole = output.Finish(); !whole.ok()) return whole;
  return counts;
}

void TellPlaces(const MergePlan& plan, const MergeCounts& counts, bool are_files,
                std::ostream& err) {
  for (const std::string& note : plan.notes) err << "stepwell: " << Printable(note) << "\n";
  if (counts.left_out > 0) {
    err << "stepwell: " << Plural(counts.left_out, "event")
        << " without a time or beyond a bound left out\n";
  }
  std::vector<std::pair<std::int32_t, std::optional<std::int64_t>>> errors;
  bool is_known = true;
  for (const PlacedInput& input : plan.inputs) {
    errors.emplace_back(input.rank, input.error_ns);
    is_known &= input.error_ns.has_value();
  }
  // Who has each begin where the first does has asked for no clock.
  if (plan.alignment == MergeAlignment::kStart) return;
  if (const std::string text = ClocksText(errors); !text.empty()) {
    err << "stepwell: " << text
        << (is_known || !are_files ? "\n"
                                   : "; files of one machine: --one-machine, or --machine\n");
  }
}

}  // namespace

int MergeFailed(const absl::Status& status, Streams streams) {
  // Whoever reads has had enough.
  if (absl::IsOutOfRange(status)) return kExitOk;
  streams.err << "stepwell: " << Printable(std::string(status.message())) << "\n";
  return absl::IsNotFound(status) ? kExitNoInput : kExitFailed;
}

int WriteMergeTo(const MergeOutput& output, const MergePlan& plan, const WriteMerge& write,
                 Streams streams) {
  absl::StatusOr<std::unique_ptr<ExportOutput>> file = ExportOutput::ToStream(streams.out);
  if (!output.path.empty()) file = ExportOutput::ToFile(output.path);
  if (!file.ok()) {
    streams.err << "stepwell: " << file.status().message() << "\n";
    return kExitFailed;
  }
  const absl::StatusOr<MergeCounts> counts = Write(output.path, write, **file);
  if (!counts.ok()) return MergeFailed(counts.status(), streams);
  TellPlaces(plan, *counts, output.noun == "file", streams.err);
  if (output.path.empty()) return kExitOk;
  const std::string inputs = Plural(std::ssize(plan.inputs), output.noun);
  if (output.is_json) {
    streams.out
        << JsonOf(plan, *counts).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
        << "\n";
  } else if (output.is_archive) {
    streams.err << inputs << " and their places are in " << output.path << "\n";
  } else {
    streams.err << Plural(counts->written, "event") << " of " << inputs << " are in " << output.path
                << "\n";
  }
  return kExitOk;
}

}  // namespace stepwell::cli
