#include "server/chunk_check.h"

#include <algorithm>
#include <limits>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "google/protobuf/arena.h"
#include "server/limits.h"
#include "server/text_check.h"
#include "server/time_spread.h"
#include "storage/advance_rules.h"

namespace stepwell {
namespace {

constexpr auto kBigintMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

// Causes that a client may state; the others are the master's to find.
bool IsClientCause(pb::GapCause cause) {
  switch (cause) {
    case pb::GAP_CAUSE_RING_FULL:
    case pb::GAP_CAUSE_SENSOR_FAILED:
    case pb::GAP_CAUSE_LATE:
    case pb::GAP_CAUSE_UNSUPPORTED:
    case pb::GAP_CAUSE_NO_PERMISSION:
    case pb::GAP_CAUSE_SPOOL_FULL:
    case pb::GAP_CAUSE_SPOOL_CORRUPT:
    case pb::GAP_CAUSE_SPOOL_LOST:
    case pb::GAP_CAUSE_REJECTED:
    case pb::GAP_CAUSE_CAP:
    case pb::GAP_CAUSE_CUT_OFF:
    case pb::GAP_CAUSE_RESTORED:
      return true;
    default:  // proto3 enums are open: any number may come
      return false;
  }
}

MaybeComplaint CheckHole(absl::string_view path, pb::GapCause cause, std::uint64_t sample_count,
                         std::int64_t first_time_us, std::int64_t last_time_us,
                         const std::string& reason, Gap& out) {
  if (!IsClientCause(cause)) {
    return Invalid("GAP_CAUSE", absl::StrCat(path, ".cause is ", static_cast<int>(cause),
                                             ", allowed are 1 to 9 and 11 to 13 (see GapCause)"));
  }
  if (sample_count > kBigintMax) {
    return Invalid("SAMPLE_COUNT", absl::StrCat(path, ".sample_count is ", sample_count,
                                                ", allowed is below 2^63"));
  }
  if (first_time_us < kTimeUsMin || last_time_us < kTimeUsMin || first_time_us > last_time_us) {
    return Invalid("TIME_RANGE",
                   absl::StrCat(path, " is from ", first_time_us, " to ", last_time_us,
                                ", allowed is first <= last, from 4713 BC"));
  }
  STEPWELL_RETURN_IF_COMPLAINT(
      CheckText(absl::StrCat(path, ".reason"), reason, {0, kReasonBytesMax}, "REASON"));
  out.cause = static_cast<GapCause>(cause);
  out.sample_count = static_cast<std::int64_t>(sample_count);
  out.first_time_us = first_time_us;
  out.last_time_us = last_time_us;
  out.reason = reason;
  return std::nullopt;
}

MaybeComplaint CheckLoss(const pb::Loss& loss, const std::string& path, const RefTable& refs,
                         Gap& out) {
  STEPWELL_RETURN_IF_COMPLAINT(CheckHole(path, loss.cause(), loss.sample_count(),
                                         loss.first_time_us(), loss.last_time_us(), loss.reason(),
                                         out));
  STEPWELL_RETURN_IF_COMPLAINT(CheckText(path + ".metric_group", loss.metric_group(),
                                         {0, kMetricGroupBytesMax}, "METRIC_GROUP"));
  out.metric_group = loss.metric_group();
  if (loss.ref() == 0) return std::nullopt;
  const auto ref = refs.find(loss.ref());
  if (ref == refs.end()) {
    return Invalid("UNKNOWN_REF", absl::StrCat(path, ".ref ", loss.ref(),
                                               " is not defined for this writer; allowed are refs"
                                               " that Definitions named before"));
  }
  if (out.metric_group.empty()) out.metric_group = ref->second.metric_group;
  return std::nullopt;
}

// Whether column `c` is the first of its ref. `seen` are those of the columns before; empty = not looked at yet.
bool NoteRef(const pb::Table& table, int c, absl::flat_hash_set<std::uint32_t>& seen) {
  if (seen.empty()) {
    for (int before = 0; before < c; ++before) seen.insert(table.columns(before).ref());
  }
  return seen.insert(table.columns(c).ref()).second;
}

// Looks up each column's ref. Sums up what the table claims to hold.
MaybeComplaint ResolveTable(const pb::Table& table, const std::string& path, const RefTable& refs,
                            TableTarget& out, std::int64_t& sample_count, std::string& dropped) {
  if (table.columns_size() == 0) {
    return Invalid("COLUMN_COUNT", absl::StrCat(path, " has no columns, allowed is one or more"));
  }
  out.tick_group = table.tick_group();
  out.columns.reserve(static_cast<std::size_t>(table.columns_size()));
  std::uint32_t last_ref = 0;
  absl::flat_hash_set<std::uint32_t> seen;  // empty while refs ascend
  for (int c = 0; c < table.columns_size(); ++c) {
    const pb::Column& column = table.columns(c);
    const auto ref = refs.find(column.ref());
    if (ref == refs.end()) {
      return Invalid("UNKNOWN_REF",
                     absl::StrCat(path, ".columns[", c, "].ref ", column.ref(),
                                  " is not defined for this writer; allowed are refs that"
                                  " Definitions named before"));
    }
    // Where all ascend, as they mostly do, none stands twice.
    if (column.ref() > last_ref && seen.empty()) {
      last_ref = column.ref();
    } else if (!NoteRef(table, c, seen)) {
      return Invalid("COLUMN_REPEATED", absl::StrCat(path, ".columns[", c, "].ref ", column.ref(),
                                                     " stands in this table twice, allowed is"
                                                     " once"));
    }
    if (!ref->second.refused_reason.empty()) {
      dropped = ref->second.refused_reason;
    } else if (ref->second.tick_group != table.tick_group()) {
      return Invalid(
          "TICK_GROUP",
          absl::StrCat(path, ".tick_group is ", table.tick_group(), ", but ref ", column.ref(),
                       " was defined for tick group ", ref->second.tick_group));
    }
    out.columns.push_back({ref->second.series_no, ref->second.divisor});
    sample_count += column.doubles_size() + column.integers_size();
  }
  return std::nullopt;
}

MaybeComplaint CheckCounts(const pb::ChunkBody& body) {
  if (body.tables_size() > kChunkTablesMax) {
    return Invalid("TABLE_COUNT", absl::StrCat("body has ", body.tables_size(),
                                               " tables, allowed are at most ", kChunkTablesMax));
  }
  if (body.losses_size() > kChunkLossesMax) {
    return Invalid("LOSS_COUNT", absl::StrCat("body has ", body.losses_size(),
                                              " losses, allowed are at most ", kChunkLossesMax));
  }
  std::int64_t tick_count = 0;
  for (const pb::Table& table : body.tables()) tick_count += table.time_deltas_us_size() + 1;
  if (tick_count > kChunkSamplesMax) {
    return Invalid("TICK_COUNT", absl::StrCat("body has ", tick_count,
                                              " ticks, allowed are at most ", kChunkSamplesMax));
  }
  return std::nullopt;
}

// Samples over a day from the chunk's sealed time are kept and flagged.
void FlagAbsurdClock(const DecodedChunk& decoded, std::int64_t sealed_time_us,
                     std::vector<Gap>& gaps) {
  std::int64_t tick_count = 0;
  Gap gap;
  for (const TickTable& table : decoded.tables) {
    for (const std::int64_t time_us : table.times_us) {
      std::int64_t apart = 0;
      const bool far = __builtin_sub_overflow(time_us, sealed_time_us, &apart) || apart > kDayUs ||
                       apart < -kDayUs;
      if (!far) continue;
      gap.first_time_us = tick_count == 0 ? time_us : std::min(gap.first_time_us, time_us);
      gap.last_time_us = tick_count == 0 ? time_us : std::max(gap.last_time_us, time_us);
      ++tick_count;
    }
  }
  if (tick_count == 0) return;
  gap.cause = GapCause::kClock;
  gap.reason = "times over a day from when the client sealed them";
  gaps.push_back(std::move(gap));
}

// How many samples a chunk claims, for the record of what was rejected; 0 = unreadable.
std::int64_t ClaimedSamples(const pb::ChunkBody& body) {
  std::int64_t count = 0;
  for (const pb::Table& table : body.tables()) {
    for (const pb::Column& column : table.columns()) {
      count += column.doubles_size() + column.integers_size();
    }
  }
  return count;
}

MaybeComplaint CheckBody(const pb::ChunkBody& body, const RefTable& refs, ChunkContent& out,
                         std::string& dropped) {
  STEPWELL_RETURN_IF_COMPLAINT(CheckCounts(body));
  std::vector<TableTarget> targets(static_cast<std::size_t>(body.tables_size()));
  std::int64_t sample_count = 0;
  for (int t = 0; t < body.tables_size(); ++t) {
    STEPWELL_RETURN_IF_COMPLAINT(ResolveTable(body.tables(t), absl::StrCat("tables[", t, "]"), refs,
                                              targets[static_cast<std::size_t>(t)], sample_count,
                                              dropped));
  }
  if (sample_count > kChunkSamplesMax) {
    return Invalid("SAMPLE_COUNT",
                   absl::StrCat("body has ", sample_count, " samples, allowed are at most ",
                                kChunkSamplesMax));
  }
  STEPWELL_RETURN_IF_COMPLAINT(DecodeChunk(body, targets, out.decoded));
  STEPWELL_RETURN_IF_COMPLAINT(CheckTimeSpread(out.decoded.tables));
  out.gaps.reserve(static_cast<std::size_t>(body.losses_size()));
  for (int l = 0; l < body.losses_size(); ++l) {
    Gap gap;
    STEPWELL_RETURN_IF_COMPLAINT(
        CheckLoss(body.losses(l), absl::StrCat("losses[", l, "]"), refs, gap));
    out.gaps.push_back(std::move(gap));
  }
  return std::nullopt;
}

Gap RejectedGap(const Rejected& rejected, std::uint64_t sequence) {
  Gap gap;
  gap.cause = GapCause::kRejected;
  gap.sample_count = rejected.sample_count;
  gap.first_sequence = sequence;
  gap.last_sequence = sequence;
  gap.reason = Shortened(absl::StrCat(rejected.complaint.reason, ": ", rejected.complaint.message),
                         kReasonBytesMax);
  return gap;
}

}  // namespace

MaybeComplaint CheckChunkFrame(const pb::Chunk& chunk) {
  if (chunk.sequence() == 0 || chunk.sequence() > kSequenceMax) {
    return Invalid("SEQUENCE_RANGE", absl::StrCat("chunk.sequence is ", chunk.sequence(),
                                                  ", allowed are 1 to 2^63 - 2"));
  }
  const std::uint32_t crc32c = ChunkCrc32c(chunk.sequence(), chunk.sealed_time_us(), chunk.body());
  if (crc32c != chunk.crc32c()) {
    return Complaint{absl::StatusCode::kDataLoss, "CHECKSUM",
                     absl::StrCat("chunk.crc32c is ", chunk.crc32c(), ", its bytes have ", crc32c,
                                  "; send the chunk again")};
  }
  return std::nullopt;
}

ChunkContent CheckChunkContent(const pb::Chunk& chunk, const RefTable& refs, WriterNo writer_no,
                               ChunkScratch& scratch) {
  ChunkContent content;
  google::protobuf::Arena arena(scratch.ArenaFor(chunk.body().size()));
  pb::ChunkBody& body = *google::protobuf::Arena::CreateMessage<pb::ChunkBody>(&arena);
  std::string dropped;
  MaybeComplaint complaint;
  if (static_cast<std::int64_t>(chunk.body().size()) > kChunkBytesMax) {
    complaint =
        Invalid("CHUNK_BYTES", absl::StrCat("chunk.body has ", chunk.body().size(),
                                            " bytes, allowed are at most ", kChunkBytesMax));
  } else if (!body.ParseFromString(chunk.body())) {
    complaint =
        Invalid("BODY_MALFORMED", "chunk.body is no serialised ChunkBody with valid UTF-8 text");
  } else {
    complaint = CheckBody(body, refs, content, dropped);
  }
  if (complaint) {
    content = {};
    content.whole_rejected = true;
    content.rejected = Rejected{*std::move(complaint), ClaimedSamples(body)};
  } else {
    FlagAbsurdClock(content.decoded, chunk.sealed_time_us(), content.gaps);
    if (content.decoded.dropped_count > 0) {
      content.rejected =
          Rejected{Invalid(dropped, "the definition of the samples' ref was refused"),
                   content.decoded.dropped_count};
    }
  }
  if (content.rejected) content.gaps.push_back(RejectedGap(*content.rejected, chunk.sequence()));
  for (Gap& gap : content.gaps) gap.writer_no = writer_no;
  return content;
}

MaybeComplaint CheckGapRange(const pb::GapRange& range, WriterNo writer_no, Gap& out) {
  if (range.first_sequence() == 0 || range.first_sequence() > range.last_sequence() ||
      range.last_sequence() > kSequenceMax) {
    return Invalid("SEQUENCE_RANGE", absl::StrCat("gap is from ", range.first_sequence(), " to ",
                                                  range.last_sequence(),
                                                  ", allowed is 1 <= first <= last <= 2^63 - 2"));
  }
  STEPWELL_RETURN_IF_COMPLAINT(CheckHole("gap", range.cause(), range.sample_count(),
                                         range.first_time_us(), range.last_time_us(),
                                         range.reason(), out));
  out.writer_no = writer_no;
  out.first_sequence = range.first_sequence();
  out.last_sequence = range.last_sequence();
  return std::nullopt;
}

}  // namespace stepwell
