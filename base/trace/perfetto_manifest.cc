#include "base/trace/perfetto_manifest.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/trace/tar_bytes.h"
#include "base/trace/trace_event.h"

namespace stepwell {
namespace {

// What a clock has drifted by the middle of its file: the form has one offset for all of it, which is off by as much at both
// ends.
std::int64_t DriftToMiddle(const PlacedInput& input) {
  const double length =
      static_cast<double>(input.window.end) - static_cast<double>(input.window.begin);
  return std::llround(length / 2 * input.drift);
}

// What its own times lack to be on the common time line. Each lies within what a plan allows.
std::int64_t AddedOf(const PlacedInput& input) {
  return input.base_time_ns + input.shift_ns + DriftToMiddle(input);
}

std::size_t ReferenceOf(const MergePlan& plan) {
  std::size_t reference = 0;
  for (std::size_t i = 1; i < plan.inputs.size(); ++i) {
    if (AddedOf(plan.inputs[i]) < AddedOf(plan.inputs[reference])) reference = i;
  }
  return reference;
}

void AppendMember(const char* name, const std::string& text, std::string& json) {
  absl::StrAppend(&json, "\"", name, "\":");
  AppendJsonText(text, json);
}

void AppendClocks(const ArchivedFile& file, const ArchivedFile& reference, std::int64_t offset_ns,
                  std::string& json) {
  json += ",\"clocks\":{";
  if (!file.clock.empty()) {
    AppendMember("clock", file.clock, json);
    json += ',';
  }
  json += "\"sync_to\":{";
  AppendMember("file", reference.path, json);
  if (!reference.clock.empty()) {
    json += ',';
    AppendMember("clock", reference.clock, json);
  }
  absl::StrAppend(&json, "},\"offset_ns\":", offset_ns, "}");
}

// Those of one name that are of several kernels have their boot ids, too.
std::string MachineOf(const MergePlan& plan, const std::vector<ArchivedFile>& files,
                      std::size_t index) {
  const PlacedInput& input = plan.inputs[index];
  const std::string& name = files[index].machine;
  if (name.empty()) return absl::StrCat("rank ", input.rank);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string& other = plan.inputs[i].boot_id;
    if (files[i].machine == name && !input.boot_id.empty() && !other.empty() &&
        other != input.boot_id) {
      return absl::StrCat(name, " ", input.boot_id);
    }
  }
  return name;
}

}  // namespace

std::string ManifestOf(const MergePlan& plan, const std::vector<ArchivedFile>& files) {
  STEPWELL_CHECK(files.size() == plan.inputs.size());
  std::string json = "{\"perfetto_manifest\":{\"version\":1,\"files\":[";
  const std::size_t reference = files.empty() ? 0 : ReferenceOf(plan);
  for (std::size_t i = 0; i < files.size(); ++i) {
    json += i == 0 ? "\n{" : ",\n{";
    AppendMember("path", files[i].path, json);
    json += ",\"machine\":{";
    AppendMember("name", MachineOf(plan, files, i), json);
    json += '}';
    if (i != reference) {
      AppendClocks(files[i], files[reference],
                   AddedOf(plan.inputs[i]) - AddedOf(plan.inputs[reference]), json);
    }
    json += '}';
  }
  json += "],\n\"attributes\":{\"stepwell.merged_by\":\"stepwell\"";
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::optional<std::int64_t> error = plan.inputs[i].error_ns;
    if (error && plan.inputs[i].drift != 0) *error += std::abs(DriftToMiddle(plan.inputs[i])) + 1;
    absl::StrAppend(&json, ",\n\"stepwell.rank.", i, "\":", plan.inputs[i].rank,
                    ",\"stepwell.clock_error_ns.", i, "\":");
    json += error ? absl::StrCat(*error) : "\"unknown\"";
  }
  json += "}}}\n";
  return json;
}

std::string ArchivedName(std::size_t index, const std::string& path) {
  std::string name = absl::StrCat(index, "-");
  for (const char c : path.substr(path.rfind('/') + 1)) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
    name += is_plain ? c : '_';
  }
  // Its end tells the form.
  if (name.size() > kTarNameBytesMax) {
    const std::string number = absl::StrCat(index, "-");
    name = number + name.substr(name.size() - (kTarNameBytesMax - number.size()));
  }
  return name;
}

}  // namespace stepwell
