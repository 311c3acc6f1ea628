// Machine: a machine made of files, proc and sys below a directory of its own, and a clock that a
// test moves. What sensors read from it comes back as texts: "disk_util{mount=/}".
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "client/agent/sensors/kernel_text.h"
#include "client/agent/sensors/sensor.h"

namespace stepwell::agent {

using Values = std::map<std::string, double>;

inline std::string TextOf(const SensedSeries& series) {
  std::string text = series.name;
  char separator = '{';
  for (const auto& [label, value] : series.labels) {
    text += separator + label + "=" + value;
    separator = ',';
  }
  return series.labels.empty() ? text : text + "}";
}

inline Values ValuesOf(const Reading& reading) {
  Values values;
  for (const SensedSample& sample : reading.samples()) {
    values[TextOf(*sample.series)] = sample.value;
  }
  return values;
}

// "cpu failed /proc/stat: no cpu line"
inline std::vector<std::string> AbsencesOf(const Reading& reading) {
  static const std::map<AbsenceKind, std::string> kKinds = {
      {AbsenceKind::kUnsupported, "unsupported"},
      {AbsenceKind::kNoPermission, "no permission"},
      {AbsenceKind::kFailed, "failed"},
      {AbsenceKind::kLate, "late"},
      {AbsenceKind::kNoRoom, "no room"}};
  std::vector<std::string> texts;
  for (const Absence& absence : reading.absences()) {
    texts.push_back(absence.metric_group + " " + kKinds.at(absence.kind) + " " + absence.reason);
  }
  return texts;
}

class Machine {
 public:
  Machine() {
    char pattern[] = "/tmp/stepwell-machine-XXXXXX";
    root_ = mkdtemp(pattern);
  }
  ~Machine() { std::filesystem::remove_all(root_); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  void Write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::trunc) << text;
  }
  void Remove(const std::string& path) const { std::filesystem::remove_all(root_ / path); }
  KernelText kernel() const { return KernelText(root_); }
  const std::filesystem::path& root() const { return root_; }

  void Advance(absl::Duration by) { clock_.Advance(by); }
  const Clock& clock() const { return clock_; }
  void Select(const SensorSelection::Texts& texts) {
    context_.selection = std::make_shared<SensorSelection>(SensorSelection::Parse(texts).value());
  }
  Reading Read(Sensor& sensor) {
    Reading reading(context_);
    sensor.Read(reading);
    return reading;
  }
  Values ReadValues(Sensor& sensor) { return ValuesOf(Read(sensor)); }

 private:
  std::filesystem::path root_;
  FakeClock clock_;
  ReadingContext context_{std::make_shared<SeriesPool>(), std::make_shared<SensorSelection>(),
                          &clock_};
};

}  // namespace stepwell::agent
