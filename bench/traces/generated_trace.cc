#include "bench/traces/generated_trace.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace stepwell::bench {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;

// About 270 bytes each, as Kineto writes them.
void AppendEvent(int index, std::string& out) {
  absl::StrAppend(&out, index == 0 ? "\n" : ",\n",
                  R"({"ph":"X","cat":"cpu_op","name":"aten::layer_norm_)", index % 97,
                  R"(","pid":4711,"tid":)", 4711 + index % 4, R"(,"ts":)", index * 3, ".",
                  100 + index % 900, R"(,"dur":2.125,"args":{"External id":)", index,
                  R"(,"Record function id":0,"Ev Idx":)", index,
                  R"(,"Input Dims":[[32,512,1024],[1024],[1024],[]]}})");
}

std::string Us(std::int64_t ns) {
  return absl::StrCat(ns / 1000, ".", absl::Dec(ns % 1000, absl::kZeroPad3));
}

// A launch each 20 us; its kernel runs 300 us later.
std::int64_t LaunchNs(int index) { return std::int64_t{20'000} * index; }

// As Kineto lays it out: `row` is its process and thread.
struct Activity {
  std::string kind;
  std::string name;
  std::string row;
  std::int64_t begin_ns = 0;
  std::int64_t duration_ns = 0;
  std::string args;
};

std::string Row(int pid, int tid) { return absl::StrCat(R"("pid": )", pid, R"(, "tid": )", tid); }

void AppendActivity(const Activity& activity, std::string& out) {
  absl::StrAppend(&out, out.ends_with('[') ? "" : ",", "\n  {\n    ", R"("ph": "X", "cat": ")",
                  activity.kind, R"(", "name": ")", activity.name, R"(", )", activity.row,
                  ",\n    ", R"("ts": )", Us(activity.begin_ns), R"(, "dur": )",
                  Us(activity.duration_ns), ",\n    ", R"("args": {)", "\n      ", activity.args,
                  "\n    }\n  }");
}

// What stands behind an activity that has a flow: its own end of it.
void AppendFlow(const char* phase, int index, const Activity& activity, std::string& out) {
  absl::StrAppend(&out, ",\n  {\n    ", R"("ph": ")", phase, R"(", "id": )", index + 1, ", ",
                  activity.row, R"(, "ts": )", Us(activity.begin_ns), ",\n    ",
                  R"("cat": "ac2g", "name": "ac2g")", *phase == 'f' ? R"(, "bp": "e")" : "",
                  "\n  }");
}

void AppendOperators(int index, std::string& out) {
  const std::int64_t begin = LaunchNs(index);
  const auto args = [&](int which) {
    return absl::StrCat(R"("External id": )", 2 * index + which + 1,
                        R"(,"Record function id": 0, "Ev Idx": )", 2 * index + which);
  };
  AppendActivity({"cpu_op", absl::StrCat("aten::linear_", index % 211), Row(4711, 4711 + index % 2),
                  begin, 15'000 + index % 900, args(0)},
                 out);
  AppendActivity({"cpu_op", "aten::addmm", Row(4711, 4711 + index % 2), begin + 2'000,
                  11'000 + index % 700, args(1)},
                 out);
}

void AppendRuntime(int index, std::string& out) {
  const Activity launch = {"cuda_runtime",
                           "cudaLaunchKernel",
                           Row(4711, 4711 + index % 2),
                           LaunchNs(index) + 5'000,
                           4'000 + index % 500,
                           absl::StrCat(R"("External id": )", 2 * index + 2,
                                        R"(,"cbid": 211, "correlation": )", index + 1)};
  AppendActivity(launch, out);
  AppendFlow("s", index, launch, out);
}

void AppendKernel(int index, std::string& out) {
  const Activity kernel = {
      "kernel",
      absl::StrCat("void gemm_kernel<float, ", index % 61, ">(float const*, float*, int)"),
      Row(0, 7),
      LaunchNs(index) + 300'000,
      18'000 + index % 1'500,
      absl::StrCat(R"("External id": )", 2 * index + 2,
                   R"(,"queued": 0, "device": 0, "context": 1,
      "stream": 7, "correlation": )",
                   index + 1, R"(,
      "registers per thread": 90,
      "grid": [128, 4, 1],
      "block": [256, 1, 1])")};
  AppendActivity(kernel, out);
  AppendFlow("f", index, kernel, out);
}

using Append = void (*)(int index, std::string& out);

// All that one appends for each index, then all of the next.
TraceSource Made(int rank, std::vector<Append> appends, int count) {
  return [rank, appends = std::move(appends), count](const TakeBytes& take) -> absl::Status {
    std::string piece =
        absl::StrCat(R"({"schemaVersion":1,"distributedInfo":{"rank":)", rank,
                     R"(},"baseTimeNanoseconds":1735611996000000000,"traceEvents":[)");
    for (const Append append : appends) {
      for (int i = 0; i < count; ++i) {
        append(i, piece);
        if (piece.size() < kPieceBytes) continue;
        if (absl::Status taken = take(piece); !taken.ok()) return taken;
        piece.clear();
      }
    }
    return take(piece + "\n]}\n");
  };
}

}  // namespace

TraceSource Generated(int rank, int event_count) { return Made(rank, {AppendEvent}, event_count); }

TraceSource GeneratedProfile(int rank, int launch_count) {
  return Made(rank, {AppendOperators, AppendRuntime, AppendKernel}, launch_count);
}

}  // namespace stepwell::bench
