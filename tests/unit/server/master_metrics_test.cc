#include "server/master_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepwell {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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
  EXPECT_THAT(text, Not(HasSubstr("stepwell_disk_"))) << "of a database elsewhere nothing is known";
  EXPECT_THAT(text, Not(HasSubstr("stepwell_queue_"))) << "there is none before it serves";
  EXPECT_THAT(text, Not(HasSubstr("stepwell_rejected_")));
  reading.state.disk_error = "full";
  EXPECT_THAT(MetricsText(reading), HasSubstr("\nstepwell_ready 0\n"));
}

TEST(MasterMetricsTest, WhatLacksAndHowLongItTookIsTold) {
  IngestStats stats;
  stats.ack_latency.Observe(absl::Milliseconds(7));
  stats.ack_latency.Observe(absl::Seconds(100));
  stats.commit_duration.Observe(absl::Microseconds(400));
  Gap gap;
  gap.cause = GapCause::kRingFull;
  gap.sample_count = 40;
  stats.missing.AddGaps({gap});
  stats.missing.AddRejected("UNKNOWN_REF", 12);
  stats.missing.AddRejected("BODY_MALFORMED", 0);
  MasterReading reading{"1.2.3", {}, stats};
  reading.queue_bytes = 1024;
  reading.queue_limit_bytes = 4096;
  reading.swept_samples = 77;
  reading.memory_limit_bytes = 1 << 30;
  reading.memory_resident_bytes = 4096;
  reading.state.data_disk = {.free_bytes = 5'000, .total_bytes = 10'000};
  reading.state.wal_disk = {.free_bytes = 300, .total_bytes = 20'000};
  EXPECT_EQ(reading.state.disk_free_bytes(), 300);
  const std::string text = MetricsText(reading);
  for (const char* line :
       {"# TYPE stepwell_ack_latency_seconds histogram\nstepwell_ack_latency_seconds_count 2\n"
        "stepwell_ack_latency_seconds_sum 100.007\n",
        "\nstepwell_ack_latency_seconds_bucket{le=\"0.0005\"} 0\n",
        "\nstepwell_ack_latency_seconds_bucket{le=\"0.005\"} 0\n"
        "stepwell_ack_latency_seconds_bucket{le=\"0.01\"} 1\n",
        "\nstepwell_ack_latency_seconds_bucket{le=\"30\"} 1\n"
        "stepwell_ack_latency_seconds_bucket{le=\"+Inf\"} 2\n",
        "\nstepwell_commit_seconds_bucket{le=\"0.0005\"} 1\n",
        "\nstepwell_gaps_total{cause=\"ring_full\"} 1\n",
        "\nstepwell_gaps_total{cause=\"restored\"} 0\n",
        "\nstepwell_gap_samples_total{cause=\"ring_full\"} 40\n",
        "\nstepwell_rejected_chunks_total{reason=\"BODY_MALFORMED\"} 1\n",
        "\nstepwell_rejected_samples_total{reason=\"BODY_MALFORMED\"} 0\n",
        "\nstepwell_rejected_samples_total{reason=\"UNKNOWN_REF\"} 12\n",
        "\nstepwell_swept_samples_total 77\n", "\nstepwell_queue_bytes 1024\n",
        "\nstepwell_memory_limit_bytes 1073741824\n", "\nstepwell_memory_resident_bytes 4096\n",
        "\nstepwell_queue_limit_bytes 4096\n", "\nstepwell_disk_free_bytes{holds=\"data\"} 5000\n",
        "\nstepwell_disk_free_bytes{holds=\"wal\"} 300\n",
        "\nstepwell_disk_size_bytes{holds=\"data\"} 10000\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

}  // namespace
}  // namespace stepwell
