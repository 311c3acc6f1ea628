// Trials as tests and pictures want them: several machines with a gap, names that would harm a careless page, many
// small ones. Each ended a moment ago, or is not closed and runs for a minute yet.
import { causes, duration } from "./raw_writer.mjs";

const secondUs = 1_000_000;
const startOf = (seconds) => Math.floor(Date.now() / 1000 - seconds) * secondUs;

export const clusterSeconds = 180;
export const nodes = ["node-1", "node-2", "node-3"];
/** Of which node-2 did not measure its processors, in seconds since the trial's start. */
export const clusterGap = { from: 60, to: 99.9, count: 400 };
/** What a node's processors do: the mean, and how far each sample is from it. */
export const cpuOf = (node) => ({ mean: 30 + 25 * node, swing: 10 });

/** Between -1 and 1, the same each time: of a tick and whose it is. */
function noise(tick, whose) {
  let bits = Math.imul(tick + 1, 0x9e3779b1) ^ Math.imul(whose + 1, 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 15), 0x2c1b3c6d);
  bits = Math.imul(bits ^ (bits >>> 12), 0x297a2d39);
  return ((bits ^ (bits >>> 15)) >>> 0) / 2 ** 31 - 1;
}

/** As noise, but that it wanders: neighbours are alike over about `ticks`. */
function wander(tick, whose, ticks) {
  const [at, part] = [Math.floor(tick / ticks), (tick % ticks) / ticks];
  const smooth = part * part * (3 - 2 * part);
  return noise(at, whose) * (1 - smooth) + noise(at + 1, whose) * smooth;
}

/** What a node reads, writes and sends. */
function disksAndNetwork(node) {
  const uneven = (tick, whose) => 0.7 * wander(tick, 10 * whose + node, 45) + 0.3 * noise(tick, 10 * whose + node);
  return [
    { group: "disk", name: "disk_iops", unit: "1/s", value: (tick) => 420 + 90 * node + 140 * uneven(tick, 1) },
    { group: "disk", name: "disk_throughput_read", unit: "bytes/s", value: (tick) => (180 + 25 * node + 70 * uneven(tick, 2)) * 1e6 },
    { group: "disk", name: "disk_throughput_write", unit: "bytes/s", value: (tick) => (tick % 300 < 40 ? 240 + 30 * noise(tick, 30 + node) : 6 + node + noise(tick, 40 + node)) * 1e6 },
    { group: "network", name: "net_throughput_sent", unit: "bytes/s", value: (tick) => (310 + 12 * node + 50 * uneven(tick, 5)) * 1e6 },
    { group: "network", name: "net_throughput_recv", unit: "bytes/s", value: (tick) => (305 + 9 * node + 50 * uneven(tick, 6)) * 1e6 },
  ];
}

/** Three machines with two GPUs each, sampled ten times a second, four ranks that train on them, in steps that
 *  take `pace` times as long; with `isWhole` none of the nine metrics is missing. */
export async function writeCluster(raw, trial = "cluster", { pace = 1, isWhole = false } = {}) {
  const startUs = startOf(clusterSeconds + 5);
  const clock = { trial, startUs, stepUs: secondUs / 10, ticks: clusterSeconds * 10 };
  const inGap = (tick) => tick >= clusterGap.from * 10 && tick <= clusterGap.to * 10;
  // Tests know each value: now all of the swing up, now down.
  const processors = (tick, node) => (isWhole ? 0.6 * wander(tick, 90 + node, 40) + 0.4 * noise(tick, 90 + node) : tick % 2 ? 1 : -1);
  for (const [node, agent] of nodes.entries()) {
    const { mean, swing } = cpuOf(node);
    const gap = node === 1;
    await raw.write({
      ...clock, agent,
      series: [
        { group: "cpu", name: "cpu_util_simple", unit: "percent", value: (tick) => (gap && inGap(tick) ? null : mean + swing * processors(tick, node)) },
        ...(isWhole ? disksAndNetwork(node) : []),
        { group: "memory", name: "memory_free", unit: "bytes", value: (tick) => (48 - 8 * node) * 2 ** 30 - tick * 2 ** 21 + wander(tick, 95 + node, 90) * 2 ** 30 },
        ...["0", "1"].flatMap((device) => [
          { group: "gpu", name: "gpu_util", unit: "percent", labels: { device }, value: (tick) => 66 + 7 * Number(device) + 6 * node + 5 * wander(tick, 2 * node + Number(device), 60) + 6 * noise(tick, 2 * node + Number(device)) },
          { group: "gpu", name: "gpu_free_memory", unit: "bytes", labels: { device }, value: (tick) => (12 + 2 * node + Number(device)) * 2 ** 30 - ((tick + 70 * node) % 300) * 2 ** 22 },
        ]),
      ],
      losses: gap ? [{ cause: causes.sensorFailed, metricGroup: "cpu", sampleCount: BigInt(clusterGap.count), reason: "the kernel did not answer",
        firstTimeUs: BigInt(startUs + clusterGap.from * secondUs), lastTimeUs: BigInt(startUs + clusterGap.to * secondUs) }] : [],
    });
  }
  const ranks = [0, 1, 2, 3].map((rank) => seriesOfRank(rank, pace));
  const stepUs = togetherUs(ranks.map(([step]) => step.value));
  let trialId;
  for (const [rank, series] of ranks.entries()) trialId = await raw.write({ trial, rank, startUs, stepUs, ticks: stepUs.length, firstBatch: 0, series, agent: nodes[rank % nodes.length] });
  return { trialId, startUs, steps: stepUs.length };
}

/** Of each step that ends within the trial: what it takes with the slowest rank, for which the others wait. */
function togetherUs(ranks) {
  const all = [];
  for (let tick = 0, left = clusterSeconds * secondUs; ; ++tick) {
    const us = Math.ceil(Math.max(...ranks.map((seconds) => seconds(tick))) * secondUs);
    left -= us;
    if (left < 0) return all;
    all.push(us);
  }
}

/** A step of half a second, as scopes divide it; `pace` is how much longer it takes. The step is the first. */
function seriesOfRank(rank, pace) {
  const slow = pace * (rank === 2 ? 1.25 : 1);
  // Now and then one waits for its storage: a step in some forty, of a rank by itself.
  const stalls = (tick) => (noise(tick, 70 + rank) > 0.95 ? 0.6 : 0);
  const uneven = (tick) => 1 + 0.05 * wander(tick, 60 + rank, 25) + 0.05 * noise(tick, 60 + rank);
  // What a scope takes of its step goes up and down; together they stay below it.
  const seconds = (share, whose = 0) => (tick) => 0.5 * slow * uneven(tick) * share * (whose === 0 ? 1 : 0.85 + 0.08 * wander(tick, whose + rank, 15) + 0.07 * noise(tick, whose + rank));
  const scopes = {
    "dataloader_next": (tick) => seconds(0.16, 100)(tick) + 0.5 * slow * stalls(tick), "to_device": seconds(0.03, 110), "train_batch": seconds(0.78),
    "train_batch/forward": seconds(0.27, 120), "train_batch/backward": seconds(0.39, 130), "train_batch/optimizer": seconds(0.1, 140),
  };
  return [
    { group: "timing", name: "step", unit: "seconds", kind: duration, value: (tick) => 0.5 * slow * (uneven(tick) + stalls(tick)) },
    ...Object.entries(scopes).map(([name, value]) => ({ group: "timing", name, unit: "seconds", kind: duration, value })),
    { group: "training", name: "loss", value: (tick) => (2.3 + 0.12 * rank) * Math.exp(-tick / ((150 - 12 * rank) * pace)) + 0.09 * noise(tick, 80 + rank) + 0.4 + 0.12 * rank },
  ];
}

/** As many bytes of UTF-8, whatever it begins with. */
const padded = (text, bytes) => text + "w".repeat(bytes - Buffer.byteLength(text));
export const nasty = `<script>window.harmed=1</script><img src=x onerror="window.harmed=1">\u202e\u2066"'&lt;b&gt; שלום `;
/** Each as long as the contract lets it be. */
export const hostile = {
  // The contract lets a project have no other letters.
  project: padded("..-__proto__.constructor-", 128), step: `ProfilerStep#${padded(nasty, 180)}`, event: `aten::${padded(nasty, 180)}`,
  trial: padded(nasty, 256), agent: padded(nasty, 128), group: padded(nasty, 128), metric: padded(nasty, 256), label: padded(nasty, 1024),
  unit: padded("<b>\u202e", 64), reason: padded(nasty, 256), version: padded("<i>x/", 128), file: `${padded(nasty.replaceAll("/", "|"), 200)}.json`,
};

export async function writeHostile(raw) {
  const startUs = startOf(40);
  const { group, metric, label, unit } = hostile;
  const value = (tick) => tick % 7;
  const clock = { trial: hostile.trial, project: hostile.project, startUs, stepUs: secondUs, ticks: 30, firstBatch: 0 };
  await raw.write({
    ...clock, agent: hostile.agent, rank: 0, labels: { [padded("<u>\u202e", 128)]: label },
    series: [
      { group, name: metric, unit, labels: { shard: label }, value }, { group, name: metric, unit, labels: { shard: label.slice(0, -1) }, value },
      { group: "timing", name: "step", unit: "seconds", kind: duration, value: () => 0.5 },
      { group: "timing", name: `${nasty.replaceAll("/", "|")}${"w".repeat(100)}`, unit: "seconds", kind: duration, labels: { loader: label }, value: () => 0.3 },
      { group: "training", name: metric, unit, value },
    ],
    losses: [{ cause: causes.ringFull, metricGroup: group, sampleCount: 3n, reason: hostile.reason, firstTimeUs: BigInt(startUs), lastTimeUs: BigInt(startUs + 5 * secondUs) }],
  });
  return raw.write({ ...clock, agent: `${hostile.agent.slice(0, -1)}v`, series: [{ group: "cpu", name: "cpu_util_simple", unit: "percent", labels: { device: label }, value }] });
}
