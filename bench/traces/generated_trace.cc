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

void AppendOperators(int index, std::string& out) {
  const std::int64_t begin = LaunchNs(index);
  absl::StrAppend(&out, index == 0 ? "\n" : ",\n",
                  R"({"ph":"X","cat":"cpu_op","name":"aten::linear_)", index % 211,
                  R"(","pid":4711,"tid":)", 4711 + index % 2, R"(,"ts":)", Us(begin), R"(,"dur":)",
                  Us(15'000 + index % 900), R"(,"args":{"External id":)", 2 * index + 1,
                  R"(,"Record function id":0,"Ev Idx":)", 2 * index, "}}");
  absl::StrAppend(&out, ",\n", R"({"ph":"X","cat":"cpu_op","name":"aten::addmm","pid":4711,"tid":)",
                  4711 + index % 2, R"(,"ts":)", Us(begin + 2'000), R"(,"dur":)",
                  Us(11'000 + index % 700), R"(,"args":{"External id":)", 2 * index + 2,
                  R"(,"Record function id":0,"Ev Idx":)", 2 * index + 1, "}}");
}

void AppendRuntime(int index, std::string& out) {
  absl::StrAppend(&out, ",\n",
                  R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":4711,"tid":)",
                  4711 + index % 2, R"(,"ts":)", Us(LaunchNs(index) + 5'000), R"(,"dur":)",
                  Us(4'000 + index % 500), R"(,"args":{"External id":)", 2 * index + 2,
                  R"(,"cbid":211,"correlation":)", index + 1, "}}");
}

void AppendKernel(int index, std::string& out) {
  const std::int64_t begin = LaunchNs(index) + 300'000;
  absl::StrAppend(&out, ",\n", R"({"ph":"X","cat":"kernel","name":"void gemm_kernel<float, )",
                  index % 61, R"x(>(float const*, float*, int)","pid":0,"tid":7,"ts":)x", Us(begin),
                  R"(,"dur":)", Us(18'000 + index % 1'500), R"(,"args":{"External id":)",
                  2 * index + 2, R"(,"device":0,"stream":7,"correlation":)", index + 1,
                  R"(,"registers per thread":90,"grid":[128,4,1],"block":[256,1,1]}})");
  absl::StrAppend(&out, ",\n", R"({"ph":"s","id":)", index + 1, R"(,"pid":4711,"tid":)",
                  4711 + index % 2, R"(,"ts":)", Us(LaunchNs(index) + 5'000),
                  R"(,"cat":"ac2g","name":"ac2g"})");
  absl::StrAppend(&out, ",\n", R"({"ph":"f","bp":"e","id":)", index + 1,
                  R"(,"pid":0,"tid":7,"ts":)", Us(begin), R"(,"cat":"ac2g","name":"ac2g"})");
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
