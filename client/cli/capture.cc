// stepwell capture: the next steps of running ranks as traces, without a word in the training's code.
#include <algorithm>
#include <ostream>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/command.h"
#include "client/cli/not_found.h"
#include "client/cli/options.h"
#include "client/cli/proto_json.h"
#include "client/cli/table.h"
#include "client/cli/terminal.h"
#include "client/cli/units.h"

namespace stepwell::cli {
namespace {

constexpr std::size_t kRanksMax = 256;
constexpr std::int64_t kStepsMax = 1000;

constexpr char kExamples[] =
    "\nThe agents of the ranks record it: nothing is asked of the training, which goes on as "
    "before.\n"
    "All ranks have the same steps. Exit code 1: some rank gave none; its line says why.\n"
    "With --native torch.profiler sees the same steps, in processes that record by the Python "
    "package;\nit costs what it costs, and the steps begin a second later.\n"
    "\nExamples:\n"
    "  stepwell capture my-run\n"
    "  stepwell capture my-run --ranks 0,3 --steps 5\n"
    "  stepwell capture my-run --ranks 0-7 --steps 20 --timeout 5m --json\n"
    "  stepwell capture my-run --native\n"
    "  stepwell capture my-run && stepwell trace open my-run\n";

absl::Status BadRanks(const std::string& text) {
  return absl::InvalidArgumentError(
      absl::StrCat("--ranks is '", text, "'; allowed: numbers from 0 and ranges, as 0,3 or 0-7, ",
                   kRanksMax, " ranks at most, each once"));
}

// "0,3-5" -> 0 3 4 5; empty = all.
absl::StatusOr<std::vector<std::int32_t>> ParseRanks(const std::string& text) {
  std::vector<std::int32_t> ranks;
  if (text.empty()) return ranks;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(part, absl::MaxSplits('-', 1));
    std::int32_t first = 0;
    std::int32_t last = 0;
    const bool is_range = part.find('-') != absl::string_view::npos;
    if (!absl::SimpleAtoi(ends.first, &first) || first < 0) return BadRanks(text);
    if (!absl::SimpleAtoi(is_range ? ends.second : ends.first, &last) || last < first) {
      return BadRanks(text);
    }
    if (ranks.size() + static_cast<std::size_t>(last - first) >= kRanksMax) return BadRanks(text);
    for (std::int64_t rank = first; rank <= last; ++rank) {
      ranks.push_back(static_cast<std::int32_t>(rank));
    }
  }
  std::sort(ranks.begin(), ranks.end());
  if (std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end()) return BadRanks(text);
  return ranks;
}

std::string StepsText(const v1::CaptureTraceResponse& news) {
  std::int64_t last = std::int64_t{news.first_batch()} + news.step_count() - 1;
  // Once it is over, by the rank that has the most: of a call that gave up waiting those that were over by then.
  std::int64_t most = 0;
  for (const v1::CapturedRank& rank : news.ranks()) {
    most = std::max<std::int64_t>(most, rank.step_count());
  }
  if (news.is_over() && most > 0) last = std::int64_t{news.first_batch()} + most - 1;
  return last == news.first_batch() ? absl::StrCat("batch ", news.first_batch())
                                    : absl::StrCat("batches ", news.first_batch(), " to ", last);
}

// Of a rank's trace, or of its native one.
template <typename Captured>
std::string StateText(const Captured& rank) {
  switch (rank.state()) {
    case v1::CAPTURE_STATE_ASKED:
      return "its agent is asked";
    case v1::CAPTURE_STATE_RECORDING:
      return "waits for the steps, or records them";
    case v1::CAPTURE_STATE_UPLOADING:
      return "recorded, is uploaded";
    case v1::CAPTURE_STATE_STORED:
      return absl::StrCat("stored as trace ", rank.trace_no());
    case v1::CAPTURE_STATE_FAILED:
      return absl::StrCat(Printable(rank.reason()), ": ", Printable(rank.message()));
    default:
      return "unknown";
  }
}

// What is new since the answer before, a line for each rank.
void TellNews(const v1::CaptureTraceResponse& before, const v1::CaptureTraceResponse& news,
              std::ostream& out) {
  if (news.has_first_batch() && !before.has_first_batch()) {
    out << "all ranks: " << StepsText(news) << "\n";
  }
  for (int i = 0; i < news.ranks_size(); ++i) {
    const v1::CapturedRank& rank = news.ranks(i);
    if (i < before.ranks_size() && before.ranks(i).state() == rank.state()) continue;
    // Where the steps are not known there is nothing that waits for them.
    if (rank.state() == v1::CAPTURE_STATE_RECORDING && !news.has_first_batch()) continue;
    out << "rank " << rank.rank() << ": " << StateText(rank) << "\n";
  }
  for (int i = 0; i < news.ranks_size(); ++i) {
    const v1::CapturedNative& native = news.ranks(i).native();
    const bool is_known = i < before.ranks_size();
    if (is_known && before.ranks(i).native().state() == native.state()) continue;
    if (native.state() < v1::CAPTURE_STATE_UPLOADING) continue;
    out << "rank " << news.ranks(i).rank() << ", torch.profiler: " << StateText(native) << "\n";
  }
  out.flush();
}

std::string StoredText(const v1::CapturedRank& rank) {
  return rank.message().empty()
             ? Printable(rank.name())
             : absl::StrCat(Printable(rank.name()), " (", Printable(rank.message()), ")");
}

void AddNative(const v1::CapturedRank& rank, Table& table) {
  const v1::CapturedNative& native = rank.native();
  const bool is_stored = native.state() == v1::CAPTURE_STATE_STORED;
  table.Add(
      {absl::StrCat(rank.rank()), is_stored ? absl::StrCat(native.step_count()) : "", "", "",
       is_stored ? absl::StrCat(native.trace_no()) : "",
       absl::StrCat("torch.profiler: ", is_stored ? Printable(native.name()) : StateText(native))});
  table.Tint(5, is_stored ? Tone::kGood : Tone::kBad);
}

bool IsStored(const v1::CapturedRank& rank) {
  return rank.state() == v1::CAPTURE_STATE_STORED &&
         (!rank.has_native() || rank.native().state() == v1::CAPTURE_STATE_STORED);
}

std::string OutcomeText(const v1::CaptureTraceResponse& news, const std::string& trial,
                        const Paint& paint) {
  Table table({{"RANK", Align::kRight},
               {"STEPS", Align::kRight},
               {"SPANS", Align::kRight},
               {"LEFT OUT", Align::kRight},
               {"TRACE", Align::kRight},
               {"OUTCOME"}});
  int stored_count = 0;
  for (const v1::CapturedRank& rank : news.ranks()) {
    const bool is_stored = rank.state() == v1::CAPTURE_STATE_STORED;
    stored_count += is_stored ? 1 : 0;
    table.Add({absl::StrCat(rank.rank()), is_stored ? absl::StrCat(rank.step_count()) : "",
               is_stored ? CountText(rank.span_count()) : "",
               rank.left_out_count() > 0 ? CountText(rank.left_out_count()) : "",
               is_stored ? absl::StrCat(rank.trace_no()) : "",
               is_stored ? StoredText(rank) : StateText(rank)});
    table.Tint(5, is_stored ? Tone::kGood : Tone::kBad);
    if (rank.has_native()) AddNative(rank, table);
  }
  std::string text = table.Text(paint);
  if (stored_count > 0) {
    absl::StrAppend(&text, "\n", StepsText(news), " of ", Plural(stored_count, "rank"),
                    ": 'stepwell trace open ", Printable(trial), "' shows them.\n");
  }
  return text;
}

absl::StatusOr<v1::CaptureTraceRequest> RequestOf(const CommandOptions& options) {
  v1::CaptureTraceRequest request;
  auto trial = ParseTrialRef(options.argument(), options.project());
  if (!trial.ok()) return trial.status();
  *request.mutable_trial() = *std::move(trial);
  const auto ranks = ParseRanks(options.Text("ranks"));
  if (!ranks.ok()) return ranks.status();
  request.mutable_ranks()->Add(ranks->begin(), ranks->end());
  const auto steps = options.Integer("steps", 5, 1, kStepsMax);
  if (!steps.ok()) return steps.status();
  request.set_step_count(static_cast<std::int32_t>(*steps));
  const auto timeout =
      options.Duration("timeout", absl::Seconds(60), absl::Seconds(1), absl::Minutes(10));
  if (!timeout.ok()) return timeout.status();
  request.set_native(options.Has("native"));
  request.set_timeout_seconds(static_cast<std::int32_t>(absl::ToInt64Seconds(*timeout)));
  return request;
}

}  // namespace

int RunCapture(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("capture", "TRIAL", kExamples);
  options.Value("project", "P", "the project of TRIAL (default)");
  options.Value("ranks", "R,R-R", "whose steps (all that run)");
  options.Value("steps", "N", "so many steps of each rank, 1 to 1000 (5)");
  options.Flag("native", "what torch.profiler sees of them, too, as a trace of its own");
  options.Value("timeout", "T", "give up on steps that are not over by then, 1s to 10m (60s)");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  const auto request = RequestOf(options);
  if (!request.ok()) return options.UsageError(request.status(), streams);
  MasterClient master(options.master());
  v1::CaptureTraceResponse last;
  const absl::Status captured =
      master.CaptureTrace(*request, [&](const v1::CaptureTraceResponse& news) {
        TellNews(last, news, streams.err);
        last = news;
        return true;
      });
  if (!captured.ok()) {
    return ReportTrialFailure(captured, request->trial(), master, options.server(), streams);
  }
  streams.out << (options.json() ? ToJson(last).dump(2) + "\n"
                                 : OutcomeText(last, options.argument(), PaintFor(streams.out)));
  const bool are_all_stored = std::all_of(last.ranks().begin(), last.ranks().end(), &IsStored);
  return are_all_stored ? kExitOk : kExitFailed;
}

}  // namespace stepwell::cli
