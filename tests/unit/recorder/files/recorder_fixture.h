// RecorderTest: what tests of the C ABI share: a spool directory of their own, and what stands in it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "stepwell/recorder.h"
#include "tests/unit/recorder/files/spool_files.h"

namespace stepwell::recorder {

class RecorderTest : public testing::Test {
 protected:
  stepwell_state Open() {
    stepwell_options options;
    stepwell_options_init(&options);
    options.spool_dir = directory_.path().c_str();
    options.trial = "t";
    return stepwell_open(&options);
  }
  std::filesystem::path WriterPath() {
    const auto writers = FindWriters(directory_.path());
    EXPECT_EQ(writers.size(), 1u);
    return writers.empty() ? std::filesystem::path() : writers[0];
  }
  std::vector<std::string> Lines() { return SpoolFiles(WriterPath()).Lines(); }

  TemporaryDirectory directory_;
};

inline void Scoped(const char* name) {
  stepwell_scope scope;
  stepwell_scope_begin(&scope, stepwell_define_scope(name));
  stepwell_scope_end(&scope);
}

}  // namespace stepwell::recorder
