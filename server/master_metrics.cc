#include "server/master_metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <utility>
#include <vector>

namespace stepwell {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

class Families {
 public:
  // Of one name, one after the other.
  void Counter(const char* name, const char* help, double value, Labels labels = {}) {
    ClientMetric metric;
    metric.label = std::move(labels);
    metric.counter.value = value;
    Add(name, help, MetricType::Counter, std::move(metric));
  }
  void Gauge(const char* name, const char* help, double value, Labels labels = {}) {
    ClientMetric metric;
    metric.label = std::move(labels);
    metric.gauge.value = value;
    Add(name, help, MetricType::Gauge, std::move(metric));
  }
  std::string Text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  void Add(const char* name, const char* help, MetricType type, ClientMetric metric) {
    if (families_.empty() || families_.back().name != name) {
      families_.push_back({name, help, type, {}});
    }
    families_.back().metric.push_back(std::move(metric));
  }

  std::vector<MetricFamily> families_;
};

double Number(const std::atomic<std::uint64_t>& count) {
  return static_cast<double>(count.load(std::memory_order_relaxed));
}

void AddIngest(const IngestStats& stats, Families& families) {
  const char* chunks = "stepwell_ingest_chunks_total";
  const char* chunks_help = "Chunks that were answered, by what became of them.";
  families.Counter(chunks, chunks_help, Number(stats.chunks_committed), {{"result", "committed"}});
  families.Counter(chunks, chunks_help, Number(stats.chunks_repeated), {{"result", "repeated"}});
  families.Counter(chunks, chunks_help, Number(stats.chunks_rejected), {{"result", "rejected"}});
  families.Counter("stepwell_ingest_samples_total", "Samples committed.",
                   Number(stats.samples_committed));
  families.Counter("stepwell_commit_groups_total", "Transactions that stored chunks.",
                   Number(stats.commit_groups));
  families.Counter("stepwell_commits_in_doubt_total",
                   "Commits whose outcome was unknown and was read back.",
                   Number(stats.commits_in_doubt));
  families.Counter("stepwell_replayed_samples_total",
                   "Samples read from the journal after a start.", Number(stats.samples_replayed));
  families.Counter("stepwell_lost_sequences_total",
                   "Acked chunks that a replay did not find; each is in a gap.",
                   Number(stats.sequences_lost));
}

}  // namespace

std::string MetricsText(const MasterReading& reading) {
  Families families;
  families.Gauge("stepwell_build_info", "1; its label is the version.", 1,
                 {{"version", reading.version}});
  families.Gauge("stepwell_ready", "1 while samples are taken.", reading.state.accepting() ? 1 : 0);
  families.Gauge("stepwell_owner", "1 while this master owns its database.",
                 reading.state.epoch > 0 ? 1 : 0);
  families.Gauge("stepwell_pg_up", "1 while the database answers.",
                 reading.state.database_up ? 1 : 0);
  families.Gauge("stepwell_streams", "Ingest streams that are open.",
                 static_cast<double>(reading.stats.streams_open.load(std::memory_order_relaxed)));
  families.Gauge("stepwell_writers", "Writers that are open.",
                 static_cast<double>(reading.writers_open));
  families.Gauge("stepwell_unfolded_bytes",
                 "Memory of committed samples that SQL does not see yet.",
                 static_cast<double>(reading.unfolded_bytes));
  AddIngest(reading.stats, families);
  return families.Text();
}

}  // namespace stepwell
