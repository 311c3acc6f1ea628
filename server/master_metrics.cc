#include "server/master_metrics.h"

#include <array>

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

// In the order of RateKind.
constexpr std::array<const char*, kRateKinds> kRateNames = {"ingest_bytes", "ingest_samples",
                                                            "series", "opens", "calls"};

void AddRates(const RateCounts& rates, MetricFamilies& families) {
  const char* refused = "stepwell_limit_refusals_total";
  const char* refused_help = "Calls and connections refused, by the limit that was reached.";
  const char* slowed = "stepwell_limit_slowed_seconds_total";
  const char* slowed_help = "Time for which agents' streams were slowed, by the limit, of all.";
  for (std::size_t at = 0; at < kRateKinds; ++at) {
    Counter(families, refused, refused_help, static_cast<double>(rates.refused[at]),
            {{"limit", kRateNames[at]}});
  }
  Counter(families, refused, refused_help, static_cast<double>(rates.wrong_tokens),
          {{"limit", "wrong_tokens"}});
  Counter(families, refused, refused_help, static_cast<double>(rates.connections),
          {{"limit", "connections"}});
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
  AddIngest(reading.stats, families);
  AddRates(reading.rates, families);
}

}  // namespace stepwell
