// What the files of several kernels say, and what all sensors of a machine make of them: one text
// file for each, in kernels/, with the files of two moments that lie two seconds apart, and the
// samples and absences that are expected of the second.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/agent/sensors/machine_sensors.h"
#include "tests/support/places/places.h"
#include "tests/unit/agent/sensors/machine.h"

namespace stepwell::agent {
namespace {

// "-- before proc/stat --": what follows, up to the next such line, is that file's text then.
struct Section {
  std::string moment;
  std::string path;
  std::string text;
};

std::vector<Section> Parse(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<Section> sections;
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, "-- ") && absl::EndsWith(line, " --")) {
      const std::string head = line.substr(3, line.size() - 6);
      const std::size_t blank = std::min(head.find(' '), head.size());
      sections.push_back(
          {head.substr(0, blank), head.substr(std::min(blank + 1, head.size())), ""});
    } else if (!sections.empty()) {
      absl::StrAppend(&sections.back().text, line, "\n");
    }
  }
  return sections;
}

// How full the disks of the machine are that runs the test is not for a fixture to say.
std::string TextOf(const std::string& metric, double value) {
  if (absl::StartsWith(metric, "disk_util{")) return metric + " *";
  std::ostringstream text;
  text.precision(15);
  text << metric << " " << value;
  return text.str();
}

class Kernel {
 public:
  explicit Kernel(const std::filesystem::path& path) : sections_(Parse(path)) {
    for (const Section& section : sections_) {
      if (section.moment == "directory") {
        std::filesystem::create_directories(machine_.root() / section.path);
      } else if (section.moment == "expected") {
        expected_ = absl::StrSplit(section.text, '\n', absl::SkipEmpty());
      }
    }
    Show("before");
    MachineOptions options{.root = machine_.root(), .nvml_path = "/nowhere"};
    options.amd_paths = {"/nowhere", "/nowhere"};
    // Nothing hangs here, however busy the machine is.
    options.set = {absl::Seconds(20), absl::Seconds(20), absl::Seconds(20), absl::Seconds(20)};
    set_ = MakeMachineSensors(options, clock_);
  }
  // At the second moment.
  std::vector<std::string> Read() {
    ReadAll();
    clock_.Advance(absl::Seconds(2));
    Show("after");
    return ReadAll();
  }
  const std::vector<std::string>& expected() const { return expected_; }

 private:
  void Show(const std::string& moment) {
    for (const Section& section : sections_) {
      if (section.moment == moment) machine_.Write(section.path, section.text);
    }
  }
  std::vector<std::string> ReadAll() {
    SensorSelection selection;
    selection.SetInterval(absl::Minutes(1));
    const auto shared = std::make_shared<SensorSelection>(selection);
    std::vector<std::string> texts;
    for (const Cadence cadence : set_->cadences()) {
      const Reading reading = set_->Read(cadence, shared);
      for (const auto& [metric, value] : ValuesOf(reading)) texts.push_back(TextOf(metric, value));
      for (const std::string& absence : AbsencesOf(reading)) texts.push_back("absent: " + absence);
    }
    std::sort(texts.begin(), texts.end());
    return texts;
  }

  const std::vector<Section> sections_;
  std::vector<std::string> expected_;
  Machine machine_;
  FakeClock clock_;
  std::unique_ptr<SensorSet> set_;
};

TEST(KernelsTest, AgentRule16_EachKernelsFilesMakeTheSameMetrics) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(SourcePlace("tests/unit/agent/sensors/kernels")))
    paths.push_back(entry);
  std::sort(paths.begin(), paths.end());
  ASSERT_GE(paths.size(), 6u);
  for (const std::filesystem::path& path : paths) {
    SCOPED_TRACE(path.filename().string());
    Kernel kernel(path);
    const std::vector<std::string> texts = kernel.Read();
    EXPECT_EQ(texts, kernel.expected()) << absl::StrJoin(texts, "\n");
  }
}

}  // namespace
}  // namespace stepwell::agent
