// ConnectFollow: FollowSamples over the HTTP port as a stream of the Connect protocol, by curl, which writes what comes into a file.
//
//   ConnectFollow follow({"https://127.0.0.1:7818", ca, token}, "default", "run", scratch / "followed");
//   ASSERT_TRUE(follow.WaitFor("\"values\":[0.5]"));
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {

class ConnectFollow {
 public:
  struct Door {
    std::string url;
    std::string ca_file;
    std::string token = {};
    std::vector<std::string> more = {};  // words for curl
  };
  // Writes FILE, FILE.asked and FILE.log.
  ConnectFollow(const Door& door, const std::string& project, const std::string& trial,
                const std::string& file)
      : file_(file) {
    const std::string json =
        absl::StrCat("{\"trial\":{\"project\":\"", project, "\",\"externalId\":\"", trial, "\"}}");
    // An envelope: no flags, four bytes of length.
    std::string envelope(5, '\0');
    envelope[3] = static_cast<char>(json.size() >> 8);
    envelope[4] = static_cast<char>(json.size() & 0xff);
    std::ofstream(file + ".asked", std::ios::binary) << envelope << json;
    std::vector<std::string> words = {"/usr/bin/curl", "--silent",
                                      "--show-error",  "--no-buffer",
                                      "--cacert",      door.ca_file,
                                      "--header",      "Content-Type: application/connect+json",
                                      "--data-binary", "@" + file + ".asked",
                                      "--output",      file};
    if (!door.token.empty()) words.insert(words.end(), {"--oauth2-bearer", door.token});
    words.insert(words.end(), door.more.begin(), door.more.end());
    words.push_back(door.url + "/stepwell.v1.QueryService/FollowSamples");
    curl_.Start(words, {}, file + ".log");
  }

  // What came so far, envelopes and all.
  std::string text() const { return Read(file_); }
  // What curl itself said.
  std::string complaint() const { return Read(file_ + ".log"); }
  bool WaitFor(const std::string& text_wanted, absl::Duration patience = absl::Seconds(20)) {
    return Eventually([&] { return text().find(text_wanted) != std::string::npos; }, patience);
  }
  bool running() { return curl_.running(); }
  // How curl ended.
  std::string Wait(absl::Duration patience) { return curl_.Wait(patience); }
  // Hangs up.
  void Kill() { curl_.Kill(); }

 private:
  static std::string Read(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  const std::string file_;
  ChildProcess curl_;
};

}  // namespace stepwell::testing
