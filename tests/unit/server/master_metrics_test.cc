#include "server/master_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepwell {
namespace {

using ::testing::HasSubstr;

std::string MetricsText(const MasterReading& reading) {
  MetricFamilies families;
  AddMasterMetrics(reading, families);
  return families.Text();
}

TEST(MasterMetricsTest, EachIsWrittenAsPrometheusReadsIt) {
  IngestStats stats;
  stats.chunks_committed = 7;
  stats.chunks_rejected = 2;
  stats.samples_committed = 12'345'678;
  stats.streams_open = 3;
  MasterReading reading{"1.2.3", {}, stats};
  reading.state.role = MasterRole::kOwner;
  reading.state.epoch = 4;
  reading.state.database_up = true;
  reading.writers_open = 5;
  reading.unfolded_bytes = 4096;
  const std::string text = MetricsText(reading);
  for (const char* line :
       {"# HELP stepwell_ingest_chunks_total Chunks that were answered, by what became of them.\n"
        "# TYPE stepwell_ingest_chunks_total counter\n"
        "stepwell_ingest_chunks_total{result=\"committed\"} 7\n"
        "stepwell_ingest_chunks_total{result=\"rejected\"} 2\n"
        "stepwell_ingest_chunks_total{result=\"repeated\"} 0\n",
        "\nstepwell_ingest_samples_total 12345678\n", "stepwell_build_info{version=\"1.2.3\"} 1\n",
        "\nstepwell_ready 1\n", "\nstepwell_owner 1\n", "\nstepwell_pg_up 1\n",
        "\nstepwell_streams 3\n", "\nstepwell_writers 5\n", "\nstepwell_unfolded_bytes 4096\n",
        "# TYPE stepwell_unfolded_bytes gauge\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  reading.state.disk_error = "full";
  EXPECT_THAT(MetricsText(reading), HasSubstr("\nstepwell_ready 0\n"));
}

}  // namespace
}  // namespace stepwell
