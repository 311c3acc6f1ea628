#include "server/options.h"

#include <gtest/gtest.h>

#include <map>

#include "server/host_port.h"
#include "server/listen_socket.h"

namespace stepwell {
namespace {

struct Given {
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment = {};
  std::string file = {};
};

std::variant<ParsedOptions, UsageError> Parse(const Given& given) {
  return ParseOptions(
      given.arguments,
      [&](const std::string& name) -> std::optional<std::string> {
        const auto place = given.environment.find(name);
        return place == given.environment.end() ? std::nullopt : std::optional(place->second);
      },
      [&](const std::string&) -> absl::StatusOr<std::string> { return given.file; });
}

TEST(OptionsTest, FlagBeatsEnvironmentBeatsFileBeatsDefault) {
  Given given{{"--config", "c"}, {}, "# a comment\nfold-interval = \"20s\" # why\n"};
  const auto linger = [&] { return std::get<ParsedOptions>(Parse(given)).options.fold_interval; };
  EXPECT_EQ(std::get<ParsedOptions>(Parse({{}})).options.fold_interval, absl::Seconds(10));
  EXPECT_EQ(linger(), absl::Seconds(20));
  given.environment["STEPWELL_FOLD_INTERVAL"] = "30s";
  EXPECT_EQ(linger(), absl::Seconds(30));
  given.arguments.push_back("--fold-interval=40s");
  EXPECT_EQ(linger(), absl::Seconds(40));
}

TEST(OptionsTest, WrongUseIsNamed) {
  struct Row {
    Given given;
    int exit_code;
    const char* message;
  };
  for (const Row& row : {
           Row{{{"--fold-intervall", "1s"}},
               64,
               "unknown flag '--fold-intervall'; did you mean '--fold-interval'?"},
           Row{{{"--xyzzyxyzzy"}}, 64, "unknown flag '--xyzzyxyzzy'"},
           Row{{{"data"}}, 64, "unexpected argument 'data'; settings are given as --name value"},
           Row{{{"--group-linger", "2h"}},
               64,
               "--group-linger is '2h', allowed are durations from 0 to 1s, written as 500ms, 10s "
               "or 5m"},
           Row{{{"--streams-max", "0"}}, 64, "--streams-max is '0', allowed are 1 to 4096"},
           Row{{{"--minimum-agent-version", "new"}},
               64,
               "--minimum-agent-version is 'new', allowed are versions as 0.1.0"},
           Row{{{"--log-format", "xml"}}, 64, "--log-format is 'xml', allowed are text, json"},
           Row{{{}, {{"STEPWELL_STREAMS_MAX", "many"}}},
               78,
               "STEPWELL_STREAMS_MAX is 'many', allowed are 1 to 4096"},
           Row{{{"--config", "c"}, {}, "\ngrpc_listen = x\n"},
               78,
               "c:2: unknown key 'grpc_listen'; did you mean 'grpc-listen'?"},
           Row{{{"--config", "c"}, {}, "\n\nstreams-max = 0\n"},
               78,
               "c:3: streams-max is '0', allowed are 1 to 4096"},
           Row{{{"--config", "c"}, {}, "nonsense\n"}, 78, "c:1: 'nonsense' is not key = value"},
       }) {
    const auto parsed = Parse(row.given);
    ASSERT_TRUE(std::holds_alternative<UsageError>(parsed)) << row.message;
    EXPECT_EQ(std::get<UsageError>(parsed).exit_code, row.exit_code) << row.message;
    EXPECT_EQ(std::get<UsageError>(parsed).message, row.message);
  }
}

TEST(OptionsTest, BytesTakeUnits) {
  const Given given{{"--config", "c", "--queue-bytes", "128MiB", "--disk-low-bytes=1.5GB"},
                    {{"STEPWELL_READ_BYTES_PER_SECOND", "1GiB"}},
                    "fold-bytes = 2097152\nlatest-bytes = 64KiB\n"};
  const auto parsed = Parse(given);
  ASSERT_TRUE(std::holds_alternative<ParsedOptions>(parsed))
      << std::get<UsageError>(parsed).message;
  const ServeOptions& options = std::get<ParsedOptions>(parsed).options;
  EXPECT_EQ(options.queue_bytes, 128 << 20);
  EXPECT_EQ(options.disk_low_bytes, 1'500'000'000);
  EXPECT_EQ(options.read_bytes_per_second, 1 << 30);
  EXPECT_EQ(options.fold_bytes, 2 << 20);
  EXPECT_EQ(options.latest_bytes, 64 << 10);
  EXPECT_EQ(std::get<ParsedOptions>(Parse({{"--disk-low-bytes", "0"}})).options.disk_low_bytes, 0);
  for (const char* wrong : {"5GiB", "1", "64MB64", "64 MiB", "64mib", "-1MiB", "MiB", "", "none"}) {
    const auto refused = Parse({{"--queue-bytes", wrong}});
    ASSERT_TRUE(std::holds_alternative<UsageError>(refused)) << wrong;
    EXPECT_EQ(std::get<UsageError>(refused).message,
              std::string("--queue-bytes is '") + wrong +
                  "', allowed are 0, and bytes from 1MiB to 4GiB, written as 64MiB, 1.5GB or "
                  "67108864");
  }
  // A unit is no number of streams.
  EXPECT_TRUE(std::holds_alternative<UsageError>(Parse({{"--streams-max", "1KiB"}})));
}

TEST(OptionsTest, WhatIsPrintedIsRead) {
  const Given changed{{"--fold-interval", "3s", "--insecure-allow-remote", "--master-id", "a b"}};
  const ServeOptions options = std::get<ParsedOptions>(Parse(changed)).options;
  const std::string text = PrintConfig(options);
  const auto again = Parse({{"--config", "c"}, {}, text});
  ASSERT_TRUE(std::holds_alternative<ParsedOptions>(again))
      << std::get<UsageError>(again).message << text;
  ServeOptions read = std::get<ParsedOptions>(again).options;
  EXPECT_EQ(read.fold_interval, absl::Seconds(3));
  EXPECT_TRUE(read.insecure_allow_remote);
  EXPECT_EQ(read.master_id, "a b");
  read.config.clear();
  EXPECT_EQ(PrintConfig(read), text);
}

TEST(OptionsTest, HelpNamesEverySetting) {
  for (const Setting& setting : Settings()) {
    EXPECT_NE(HelpText().find(std::string("--") + setting.name), std::string::npos);
  }
}

TEST(HostPortTest, IsReadAndWritten) {
  EXPECT_EQ(ParseHostPort("127.0.0.1:80")->port, 80);
  EXPECT_EQ(ParseHostPort("[::1]:0")->host, "::1");
  EXPECT_EQ(HostPortText("::1", 0), "[::1]:0");
  EXPECT_EQ(HostPortText("localhost", 80), "localhost:80");
  for (const char* wrong : {"", "127.0.0.1", ":80", "a:b", "::1:80", "a:65536", "a:-1", "[]:80",
                            "[a]:80", "[[::1]]:80", "[::1:80"}) {
    EXPECT_EQ(ParseHostPort(wrong).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

TEST(ListenSocketTest, KnowsWhatIsLoopback) {
  EXPECT_TRUE(IsLoopback("127.1.2.3"));
  EXPECT_FALSE(IsLoopback("0.0.0.0"));
  EXPECT_FALSE(IsLoopback("::"));
}

TEST(ListenSocketTest, APortInUseIsNamed) {
  const auto first = ListenSocket::Open("127.0.0.1", 0);
  ASSERT_TRUE(first.ok());
  const auto second = ListenSocket::Open("127.0.0.1", first->port());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(second.status().message(),
            "cannot listen on " + HostPortText("127.0.0.1", first->port()) +
                ": the port is in use by another process; choose another, or 0");
}

}  // namespace
}  // namespace stepwell
