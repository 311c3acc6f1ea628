// TracesFixture: files that are traces, and what a master lists of a trial's. Header only.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/e2e/commands.h"

namespace stepwell::testing {

inline constexpr char kTwoEvents[] =
    R"({"traceEvents":[{"ph":"X","name":"a","ts":10,"dur":5,"pid":1,"tid":1},)"
    R"({"ph":"X","name":"b","ts":20,"dur":5,"pid":1,"tid":1}]})";

class TracesFixture : public CommandsTest {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = scratch_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  static std::string ReadWhole(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  // Text of which packing leaves several parts.
  static std::string LongText(std::size_t bytes) {
    std::mt19937_64 random(4711);
    std::string text;
    while (text.size() < bytes) absl::StrAppend(&text, random(), "\n");
    return text;
  }
  nlohmann::json List(const std::string& trial) {
    const Ran ran = Command({"trace", "list", trial, "--json"});
    EXPECT_EQ(ran.ending, "exit 0") << ran.output;
    return nlohmann::json::parse(ran.output, nullptr, false);
  }
};

}  // namespace stepwell::testing
