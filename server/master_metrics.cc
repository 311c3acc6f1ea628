#include "server/master_metrics.h"

#include <array>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "stepwell/v1/model.pb.h"

namespace stepwell {
namespace {

void Gauge(MetricFamilies& families, const char* name, const char* help, double value,
           const MetricLabels& labels = {}) {
  families.Add({name, help, MetricType::kGauge}, value, labels);
}

void Counter(MetricFamilies& families, const char* name, const char* help, double value,
             const MetricLabels& labels = {}) {
  families.Add({name, help, MetricType::kCounter}, value, labels);
}

void Histogram(MetricFamilies& families, const char* name, const char* help,
               const LatencyHistogram& latency) {
  const LatencyHistogram::Reading reading = latency.Read();
  MetricHistogram histogram;
  for (const std::int64_t bound_us : LatencyHistogram::kBoundsUs) {
    histogram.bounds.push_back(static_cast<double>(bound_us) / 1e6);
  }
  histogram.counts.assign(reading.counts.begin(), reading.counts.end());
  histogram.sum = reading.sum_seconds;
  families.AddHistogram({name, help, MetricType::kHistogram}, std::move(histogram));
}

double Number(const std::atomic<std::uint64_t>& count) {
  return static_cast<double>(count.load(std::memory_order_relaxed));
}

void AddIngest(const IngestStats& stats, MetricFamilies& families) {
  const char* chunks = "stepwell_ingest_chunks_total";
  const char* chunks_help = "Chunks that were answered, by what became of them.";
  Counter(families, chunks, chunks_help, Number(stats.chunks_committed), {{"result", "committed"}});
  Counter(families, chunks, chunks_help, Number(stats.chunks_repeated), {{"result", "repeated"}});
  Counter(families, chunks, chunks_help, Number(stats.chunks_rejected), {{"result", "rejected"}});
  Counter(families, "stepwell_ingest_samples_total", "Samples committed.",
          Number(stats.samples_committed));
  Histogram(families, "stepwell_ack_latency_seconds",
            "From when a chunk was checked until its ack was handed to its stream.",
            stats.ack_latency);
  Histogram(families, "stepwell_commit_seconds",
            "How long the database took for each transaction that stored chunks.",
            stats.commit_duration);
  Counter(families, "stepwell_commit_groups_total", "Transactions that stored chunks.",
          Number(stats.commit_groups));
  Counter(families, "stepwell_commits_in_doubt_total",
          "Commits whose outcome was unknown and was read back.", Number(stats.commits_in_doubt));
  Counter(families, "stepwell_replayed_samples_total",
          "Samples read from the journal after a start.", Number(stats.samples_replayed));
  Counter(families, "stepwell_lost_sequences_total",
          "Acked chunks that a replay did not find; each is in a gap.",
          Number(stats.sequences_lost));
}

// As the contract names it, without its prefix.
std::string CauseWord(GapCause cause) {
  const std::string name = v1::GapCause_Name(static_cast<v1::GapCause>(cause));
  return absl::AsciiStrToLower(absl::StripPrefix(name, "GAP_CAUSE_"));
}

// Each cause from the start on, so that an increase is seen of the first one.
void AddMissing(const MissingCounts& missing, MetricFamilies& families) {
  for (std::size_t at = 1; at <= MissingCounts::kCauseMax; ++at) {
    const auto cause = static_cast<GapCause>(at);
    const MissingCounts::Count gaps = missing.Gaps(cause);
    const MetricLabels labels = {{"cause", CauseWord(cause)}};
    Counter(families, "stepwell_gaps_total", "Gaps that came with what was committed, by cause.",
            static_cast<double>(gaps.count), labels);
    Counter(families, "stepwell_gap_samples_total",
            "Samples that these gaps say are missing; some do not know how many.",
            static_cast<double>(gaps.sample_count), labels);
  }
  for (const auto& [reason, rejected] : missing.Rejected()) {
    Counter(families, "stepwell_rejected_chunks_total",
            "Chunks that were rejected, as a whole or in part, by reason.",
            static_cast<double>(rejected.count), {{"reason", reason}});
    Counter(families, "stepwell_rejected_samples_total",
            "Samples of rejected chunks, by reason; of those that could be counted.",
            static_cast<double>(rejected.sample_count), {{"reason", reason}});
  }
}

void AddDisk(const char* holds, const DiskRoom& disk, MetricFamilies& families) {
  if (disk.total_bytes == 0) return;
  Gauge(families, "stepwell_disk_free_bytes",
        "Free for an unprivileged process, of the disk that holds this of the database.",
        static_cast<double>(disk.free_bytes), {{"holds", holds}});
  Gauge(families, "stepwell_disk_size_bytes", "Size of that disk.",
        static_cast<double>(disk.total_bytes), {{"holds", holds}});
}

// In the order of RateKind.
constexpr std::array<const char*, kRateKinds> kRateNames = {
    "ingest_bytes", "ingest_samples", "series", "opens", "calls", "read_bytes"};

void AddRates(const RateCounts& rates, MetricFamilies& families) {
  const char* refused = "stepwell_limit_refusals_total";
  const char* refused_help = "Calls and connections refused, by the limit that was reached.";
  const char* slowed = "stepwell_limit_slowed_seconds_total";
  const char* slowed_help = "Time for which streams were slowed, by the limit, of all.";
  for (std::size_t at = 0; at < kRateKinds; ++at) {
    Counter(families, refused, refused_help, static_cast<double>(rates.refused[at]),
            {{"limit", kRateNames[at]}});
  }
  Counter(families, refused, refused_help, static_cast<double>(rates.wrong_tokens),
          {{"limit", "wrong_tokens"}});
  Counter(families, refused, refused_help, static_cast<double>(rates.connections),
          {{"limit", "connections"}});
  Counter(families, refused, refused_help, static_cast<double>(rates.strangers),
          {{"limit", "strangers"}});
  for (std::size_t at = 0; at < kRateKinds; ++at) {
    Counter(families, slowed, slowed_help, rates.slowed_seconds[at], {{"limit", kRateNames[at]}});
  }
}

}  // namespace

void AddMasterMetrics(const MasterReading& reading, MetricFamilies& families) {
  Gauge(families, "stepwell_build_info", "1; its label is the version.", 1,
        {{"version", reading.version}});
  Gauge(families, "stepwell_ready", "1 while samples are taken.",
        reading.state.accepting() ? 1 : 0);
  Gauge(families, "stepwell_owner", "1 while this master owns its database.",
        reading.state.epoch > 0 ? 1 : 0);
  Gauge(families, "stepwell_pg_up", "1 while the database answers.",
        reading.state.database_up ? 1 : 0);
  Gauge(families, "stepwell_streams", "Ingest streams that are open.",
        static_cast<double>(reading.stats.streams_open.load(std::memory_order_relaxed)));
  Gauge(families, "stepwell_writers", "Writers that are open.",
        static_cast<double>(reading.writers_open));
  Gauge(families, "stepwell_unfolded_bytes",
        "Memory of committed samples that SQL does not see yet.",
        static_cast<double>(reading.unfolded_bytes));
  if (reading.queue_limit_bytes > 0) {
    Gauge(families, "stepwell_queue_bytes", "Memory of checked chunks that wait for a commit.",
          static_cast<double>(reading.queue_bytes));
    Gauge(families, "stepwell_queue_limit_bytes",
          "What that queue holds at most; then streams are not read.",
          static_cast<double>(reading.queue_limit_bytes));
  }
  Gauge(families, "stepwell_memory_limit_bytes", "What this master may take, by --memory-bytes.",
        static_cast<double>(reading.memory_limit_bytes));
  if (reading.memory_resident_bytes >= 0) {
    Gauge(families, "stepwell_memory_resident_bytes",
          "What is resident of this process, without its PostgreSQL.",
          static_cast<double>(reading.memory_resident_bytes));
  }
  AddDisk("data", reading.state.data_disk, families);
  AddDisk("wal", reading.state.wal_disk, families);
  Counter(families, "stepwell_swept_samples_total", "Samples that sweeps removed, as caps say.",
          static_cast<double>(reading.swept_samples));
  AddIngest(reading.stats, families);
  AddMissing(reading.stats.missing, families);
  AddRates(reading.rates, families);
}

}  // namespace stepwell
