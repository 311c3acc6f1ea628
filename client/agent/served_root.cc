#include "client/agent/served_root.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/status_macros.h"
#include "client/agent/ring_folder.h"
#include "client/agent/server_address.h"

namespace stepwell::agent {
namespace {

constexpr absl::Duration kBoundInterval = absl::Seconds(5);
constexpr absl::Duration kServeAgainInterval = absl::Seconds(10);   // a full disk, no descriptors
constexpr std::int64_t kUserSegmentsMax = Spool::kSegmentCountMax;  // of all his writers
constexpr std::size_t kSamplersMax = 32;  // each has a thread and a set of sensors
// Where more wait than there are places: so often some of those that cannot be delivered change with
// others, for which a master may have come.
constexpr absl::Duration kRotateInterval = absl::Minutes(1);
constexpr std::size_t kPlacesFreedMax = 32;  // each takes a millisecond, and others wait

// 5 % of what is free, but never so little that nothing could be kept.
std::int64_t FreeShare(int directory) {
  struct statvfs found {};
  if (fstatvfs(directory, &found) != 0) return INT64_MAX;
  const double free_bytes =
      static_cast<double>(found.f_bavail) * static_cast<double>(found.f_frsize);
  return std::max(static_cast<std::int64_t>(free_bytes * 0.05), std::int64_t{1} << 20);
}

// None: nobody can tell.
std::optional<nlink_t> LinkCount(int directory) {
  struct stat status {};
  if (fstat(directory, &status) != 0) return std::nullopt;
  return status.st_nlink;
}

}  // namespace

ServedRoot::ServedRoot(const AgentOptions& options, Place place, AgentFace face, const Clock& clock,
                       Callbacks callbacks)
    : options_(options),
      format_directory_(std::move(place.format_directory)),
      has_link_count_(LinkCount(format_directory_.get()).value_or(0) > 0),
      owner_(place.owner),
      lock_(std::move(place.lock)),
      captures_(std::move(place.captures)),
      face_(std::move(face)),
      clock_(clock),
      on_ticks_(std::move(callbacks.on_ticks)),
      processes_(clock),
      tokens_(TokenOptions(callbacks.on_answer),
              options.tls == nullptr || options.upload ? nullptr : MakeTokenCalls(options.tls),
              clock),
      links_({.server = options.server,
              .server_for_all = options.upload,
              .tls = options.tls,
              .token = [this](const std::string& server) { return tokens_.StreamFor(server); },
              .stream_count_max = place.stream_count_max},
             clock, std::move(callbacks.on_answer)),
      traces_owner_(owner_ ? std::optional(Oneself()) : std::nullopt),
      link_note_(format_directory_.get(), options.server),
      rings_(place.ring_count_max),
      capture_room_(std::make_shared<CaptureRoom>(CaptureRoom::kBytesMax, place.capture_room)),
      finder_(format_directory_.get(), owner_ ? owner_->uid : geteuid(), place.writer_count_max) {
  spool_.sync_before_send = options_.sync_before_send;
  // What a person uploads is wanted however old it is.
  if (!options_.upload) spool_.unacked_age_max = options_.spool_age_max;
  if (owner_) spool_.segments = std::make_shared<SegmentBudget>(kUserSegmentsMax);
  traces_ = MakeTraces();
  // Below a system root none lie in shared memory.
  if (!owner_) (void)SweepRings(RingHome(geteuid()), format_directory_.get(), geteuid());
  if (options_.trial.empty() || options_.upload) return;
  // Asked for by hand, whether or not the trial records.
  TrialSampler::Options sampler;
  sampler.key = {links_.Resolve(""), options_.project, options_.trial};
  sampler.stays = true;
  sampler.attempt_key = options_.attempt_key;
  sampler.placement = options_.placement;
  AddSampler(std::move(sampler));
}

// What ends writes its last acks, as the user whose files they are.
ServedRoot::~ServedRoot() {
  StopStreams();
  const ActAs acting(owner_);
  samplers_.clear();
  ended_ = EndedSamplers();
  ranks_.clear();
}

std::shared_ptr<TrialToken> ServedRoot::TokenFor(const WriterIdentity& writer) {
  const std::string to = links_.Resolve(writer.server);
  // What a writer brings is shown as it is, but for one that was fetched.
  const bool is_as_it_is = !writer.token.empty() && !writer.renews_token;
  if (to == kOffline || is_as_it_is) return nullptr;
  return tokens_.For(to, writer.project, writer.trial, writer.token);
}

void ServedRoot::VisitWriters() {
  const ActAs acting(owner_);
  ServeNew();
  ShareSpool();
  for (const auto& [name, rank] : ranks_) {
    rank.writer->Visit(SelectionFor(rank));
  }
  CollectLive();
}

const SensorSelection* ServedRoot::SelectionFor(const Rank& rank) const {
  if (!rank.writer->identity().sampling.on) return nullptr;
  const auto sampler = samplers_.find(rank.key);
  return sampler == samplers_.end() ? nullptr : sampler->second->selection();
}

void ServedRoot::ServeNew() {
  if (!roomless_.empty() && clock_.Monotonic() - roomless_at_ >= kServeAgainInterval) {
    for (const std::string& name : std::exchange(roomless_, {})) finder_.Forget(name);
  }
  MakeRoom();
  finder_.Refill();
  FindNew();
  for (FoundWriter& found : std::exchange(arrived_, {})) {
    // Nobody renewed it since: a person's own is what an upload shows.
    if (options_.upload && found.identity.renews_token &&
        !tokens_.OwnFor(links_.Resolve(found.identity.server)).empty()) {
      found.identity.token.clear();
    }
    if (found.identity.is_sampler) NoteEnded(found);
    if (ServedWriter::WasDone(found.directory.get())) {
      LeaveDone(found);
      continue;
    }
    if (!found.is_back) {
      ++found_count_;
      log::Info("writer_found", {{"writer", found.name},
                                 {"trial", found.identity.trial},
                                 {"sampler", found.identity.is_sampler},
                                 {"rank", found.identity.rank}});
    }
    if (found.identity.is_sampler) {
      samplers_found_.push_back(std::move(found));
    } else {
      ServeRank(std::move(found));
    }
  }
}

bool ServedRoot::FindNew() {
  std::vector<FoundWriter> all = finder_.FindNew();
  for (FoundWriter& found : all) arrived_.push_back(std::move(found));
  return !all.empty();
}

void ServedRoot::OnArrival() { hurry_.OnArrival(clock_.Monotonic()); }

bool ServedRoot::LookInHurry() {
  if (!hurry_.IsDue(clock_.Monotonic())) return false;
  const ActAs acting(owner_);
  // What arrived may lie in another root.
  const bool may_have_new = finder_.MayHaveNew();
  const bool any_new = may_have_new && FindNew();
  using Seen = LookHurry::Seen;
  hurry_.Looked(any_new        ? Seen::kWriters
                : may_have_new ? Seen::kNothing
                               : Seen::kNoChange,
                clock_.Monotonic());
  return any_new;
}

// Its time runs since an earlier agent saw it done.
void ServedRoot::LeaveDone(const FoundWriter& found) {
  const absl::Time done = ServedWriter::DoneTime(found.directory.get());
  const absl::Duration age = std::max(clock_.Now() - done, absl::ZeroDuration());
  left_since_[found.name] = clock_.Monotonic() - age;
  finder_.SetAside(found.name, {.state = AsideWriter::State::kDelivered});
}

void ServedRoot::MakeRoom() {
  std::size_t count = PlacesToFree();
  if (count == 0) return;
  std::vector<std::pair<std::string, const ServedWriter*>> may_wait = ended_.ThatMayWait();
  for (const auto& [name, rank] : ranks_) {
    const ServedWriter& served = rank.writer->served();
    if (!rank.writer->live() && served.may_wait()) may_wait.emplace_back(name, &served);
  }
  count = std::min(count, may_wait.size());
  // What was delivered has no use for its place; of the others, the one that had it longest.
  const auto before = [](const auto& a, const auto& b) {
    return std::make_pair(!a.second->done(), a.second->closed_at()) <
           std::make_pair(!b.second->done(), b.second->closed_at());
  };
  std::partial_sort(may_wait.begin(), may_wait.begin() + static_cast<std::ptrdiff_t>(count),
                    may_wait.end(), before);
  may_wait.resize(count);
  for (const auto& [name, served] : may_wait) SetAside(name, *served);
}

std::size_t ServedRoot::PlacesToFree() {
  if (!finder_.is_full()) return 0;
  const absl::Duration now = clock_.Monotonic();
  std::size_t wanted = finder_.places_wanted();
  if (wanted == 0 && finder_.waiting().count() > 0 && now - rotated_at_ >= kRotateInterval) {
    wanted = std::min(finder_.waiting().count(), finder_.count_max() / 2 + 1);
  }
  if (wanted > 0) rotated_at_ = now;
  return std::min(wanted, kPlacesFreedMax);
}

void ServedRoot::SetAside(const std::string& name, const ServedWriter& served) {
  const AsideWriter aside = served.Aside();
  if (aside.state == AsideWriter::State::kDelivered) left_since_[name] = clock_.Monotonic();
  ended_.Remove(name);
  ranks_.erase(name);
  finder_.SetAside(name, aside);
}

void ServedRoot::ServeRank(FoundWriter found) {
  any_seen_ = true;
  // A path of another user's may lead anywhere, to a file server that hangs too.
  if (owner_) found.identity.rings.clear();
  const TrialKey key = KeyOf(found.identity);
  const std::string& asked = found.identity.server;
  if (key.server == kOffline && !asked.empty() && asked != kOffline) {
    log::Warning("writer_server_unusable",
                 {{"writer", found.name},
                  {"server", asked},
                  {"allowed", kServerAllowed},
                  {"why", "it stays in the spool; `stepwell upload` sends it to another"}});
  }
  absl::StatusOr<std::unique_ptr<RankWriter>> writer = RankWriter::Open(
      std::move(found.directory), std::move(found.identity), ContextFor(key.server));
  if (writer.ok()) {
    ranks_[found.name] = {key, *std::move(writer)};
    return;
  }
  log::Warning("writer_unservable",
               {{"writer", found.name}, {"why", std::string(writer.status().message())}});
  NoteUnserved(found.name, writer.status());
}

void ServedRoot::NoteUnserved(const std::string& name, const absl::Status& why) {
  if (!absl::IsResourceExhausted(why)) return;
  roomless_.push_back(name);
  roomless_at_ = clock_.Monotonic();
}

void ServedRoot::CollectLive() {
  live_.clear();
  LiveMark mark;
  for (const auto& [name, rank] : ranks_) {
    if (!rank.writer->live() && !rank.writer->ended_just_now()) continue;
    const RankWriter& writer = *rank.writer;
    live_[rank.key].Add({&writer.identity(), writer.last_batch(), writer.pid()});
    ++mark.rank_count;
    mark.newest_opened_us = std::max(mark.newest_opened_us, writer.identity().opened_time_us);
  }
  if (mark != std::exchange(live_mark_, mark)) has_live_changed_ = true;
}

void ServedRoot::CollectTrials(std::set<TrialKey>& live) const {
  for (const auto& [key, ranks] : live_) live.insert(key);
}

const LiveTrial& ServedRoot::LiveOf(const TrialKey& key) const {
  static const LiveTrial none;
  const auto found = live_.find(key);
  return found == live_.end() ? none : found->second;
}

void ServedRoot::VisitSamplers(const std::set<TrialKey>& live) {
  has_live_changed_ = false;
  const ActAs acting(owner_);
  if (options_.auto_sampling && !options_.upload && !sampling_ended_) {
    for (const auto& [key, ranks] : live_) {
      if (ranks.NewestThatSamples() != nullptr && samplers_.count(key) == 0) {
        MakeSampler(key, ranks);
      }
    }
  }
  TellEnded();
  ServeFoundSamplers();
  for (const auto& [key, sampler] : samplers_) {
    // What an earlier agent left and found no room comes first.
    if (sampler->selection() == nullptr && !roomless_.empty()) continue;
    const std::size_t others = live.size() - live.count(key);
    sampler->Visit(LiveOf(key), static_cast<int>(others) + 1);
  }
  std::erase_if(samplers_, [&](const auto& entry) {
    return entry.second->ended() && LiveOf(entry.first).NewestThatSamples() == nullptr;
  });
}

void ServedRoot::TendLinks() {
  const ActAs acting(owner_);
  ended_.Tend(clock_.Monotonic());
  RemoveOlder(spool_.acked_age_max);
  links_.Tend();
  if (traces_ != nullptr) {
    const ActAs keeping(traces_owner_);
    traces_->Tend();
  }
  // An upload tells by itself.
  if (!options_.upload) link_note_.Follow(links_.troubles());
}

void ServedRoot::MakeSampler(const TrialKey& key, const LiveTrial& live) {
  if (samplers_.size() >= kSamplersMax) {
    if (clock_.Monotonic() - crowded_logged_ < absl::Minutes(1)) return;
    crowded_logged_ = clock_.Monotonic();
    log::Warning("trials_too_many",
                 {{"sampled", samplers_.size()},
                  {"trial", key.trial},
                  {"why", "this machine is sampled for it once another trial has ended"}});
    return;
  }
  TrialSampler::Options sampler;
  sampler.key = key;
  sampler.server = live.NewestThatSamples()->server;
  AddSampler(std::move(sampler));
}

void ServedRoot::AddSampler(TrialSampler::Options sampler) {
  // Ours is for the master that we were told of, and for nobody's file but our own.
  if (sampler.stays || (sampler.server.empty() && !owner_)) sampler.token = options_.token;
  sampler.selection = options_.selection;
  sampler.of_processes = options_.system;
  SamplerHome home = {format_directory_.get(), finder_, ended_,
                      [this](const std::string& server) { return ContextFor(server); }};
  const TrialKey key = sampler.key;
  samplers_[key] = std::make_unique<TrialSampler>(std::move(sampler), std::move(home));
}

void ServedRoot::NoteEnded(const FoundWriter& found) {
  const std::optional<EndedTicks> ticks = SamplerWriter::ReadEnded(found.directory.get());
  if (!ticks) return;
  samplers_ended_.push_back({KeyOf(found.identity), found.identity.attempt_key, *ticks});
}

void ServedRoot::TellEnded() {
  for (const EndedSampler& ended : std::exchange(samplers_ended_, {})) {
    const auto sampler = samplers_.find(ended.key);
    if (sampler != samplers_.end()) sampler->second->NoteEnded(ended.attempt_key, ended.ticks);
  }
}

void ServedRoot::ServeFoundSamplers() {
  for (FoundWriter& found : std::exchange(samplers_found_, {})) {
    const std::string name = found.name;
    const absl::Status served = ServeSampler(std::move(found));
    if (served.ok()) continue;
    log::Warning("sampler_unservable", {{"writer", name}, {"why", std::string(served.message())}});
    NoteUnserved(name, served);
  }
}

// One that an agent left by a crash is taken up again; one that ended in order only lacks its Close.
absl::Status ServedRoot::ServeSampler(FoundWriter found) {
  const TrialKey key = KeyOf(found.identity);
  const auto sampler = samplers_.find(key);
  if (sampler != samplers_.end() && sampler->second->TakesUp(found, LiveOf(key))) {
    return sampler->second->TakeUp(std::move(found), LiveOf(key));
  }
  STEPWELL_ASSIGN_OR_RETURN(std::unique_ptr<ServedWriter> ended,
                            ServedWriter::Open(std::move(found.directory),
                                               std::move(found.identity), ContextFor(key.server)));
  ended->Close(/*died=*/false);
  ended_.Add(found.name, std::move(ended));
  return absl::OkStatus();
}

std::vector<ServedWriter*> ServedRoot::AllServed() const {
  std::vector<ServedWriter*> all = ended_.all();
  for (const auto& [name, rank] : ranks_) all.push_back(&rank.writer->served());
  for (const auto& [key, sampler] : samplers_) {
    if (sampler->served() != nullptr) all.push_back(sampler->served());
  }
  return all;
}

// At each visit: a share says what others hold now.
void ServedRoot::ShareSpool() {
  const absl::Duration now = clock_.Monotonic();
  if (now - bound_read_at_ >= kBoundInterval) {
    bound_read_at_ = now;
    // An upload records nothing new: what is there has the room that it takes, however full the disk.
    const std::int64_t share = options_.upload ? INT64_MAX : FreeShare(format_directory_.get());
    spool_bytes_max_ = std::min(options_.spool_bytes_max, share);
  }
  const std::vector<ServedWriter*> all = AllServed();
  std::vector<std::int64_t> unacked_bytes;
  for (const ServedWriter* served : all) unacked_bytes.push_back(served->unacked_bytes());
  // What waits takes room, too, but never most of it from those that record.
  const std::int64_t left =
      std::max(spool_bytes_max_ - finder_.waiting().unacked_bytes(), spool_bytes_max_ / 2);
  const std::vector<SpoolBounds> shares = ShareBound(left, unacked_bytes);
  for (std::size_t i = 0; i < all.size(); ++i) all[i]->SetBounds(shares[i]);
}

// A closed writer stays as long as its acked tail would: a master that comes back older is told
// again.
void ServedRoot::RemoveOlder(absl::Duration age) {
  const absl::Duration now = clock_.Monotonic();
  const auto remove = [&](const std::string& name) {
    RemoveWriter(format_directory_.get(), name);
    finder_.Drop(name);
  };
  std::erase_if(ranks_, [&](auto& entry) {
    const RankWriter& writer = *entry.second.writer;
    if (!writer.done() || now - writer.done_at() < age) return false;
    remove(entry.first);
    return true;
  });
  for (const std::string& name : ended_.TakeOld(now, age)) remove(name);
  std::erase_if(left_since_, [&](const auto& left) {
    if (now - left.second < age) return false;
    remove(left.first);
    return true;
  });
}

void ServedRoot::RemoveDone() {
  const ActAs acting(owner_);
  RemoveOlder(absl::ZeroDuration());
}

// What cannot be looked at is there.
bool ServedRoot::gone() const {
  return has_link_count_ && LinkCount(format_directory_.get()) == nlink_t{0};
}

void ServedRoot::SettleClosing() {
  const ActAs acting(owner_);
  for (const auto& [name, rank] : ranks_) rank.writer->SettleClosing();
}

void ServedRoot::EndSampling() {
  sampling_ended_ = true;
  for (const auto& [key, sampler] : samplers_) sampler->End();
  for (const auto& [name, rank] : ranks_) rank.writer->EndSampling();
}

void ServedRoot::StopStreams() {
  tokens_.Stop();
  links_.Stop();
  if (traces_ != nullptr) traces_->Stop();
}

void ServedRoot::TendAll() {
  const ActAs acting(owner_);
  for (ServedWriter* served : AllServed()) {
    served->Tend();
    served->Sync();
  }
}

void ServedRoot::SyncSpools() {
  const ActAs acting(owner_);
  const absl::Duration now = clock_.Monotonic();
  for (ServedWriter* served : AllServed()) {
    served->TendSync(now);
  }
}

}  // namespace stepwell::agent
