// Writes whole trials by the wire contract itself, IngestService.WriteChunks, in one call each: series, gaps and
// names that no recorder and no agent would send, as if they had been sampled a while ago.
//
//   const raw = new RawWriters(stand.ports.grpc);
//   await raw.write({ trial: "cluster", agent: "node-1", startUs, stepUs: 1e6, ticks: 180,
//                     series: [{ group: "cpu", name: "cpu_util_simple", unit: "percent", value: (tick) => 30 }] });
import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import http2 from "node:http2";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const fromWeb = createRequire(join(root, "client/web/package.json"));
const { create, createFileRegistry, fromBinary, toBinary } = fromWeb("@bufbuild/protobuf");
const { FileDescriptorSetSchema } = fromWeb("@bufbuild/protobuf/wkt");

export const gauge = 1;
export const duration = 3;
/** Of stepwell.v1.GapCause. */
export const causes = { ringFull: 1, sensorFailed: 2, noPermission: 5 };

function readContract() {
  const folder = mkdtempSync(join(tmpdir(), "stepwell-contract-"));
  const file = join(folder, "set.binpb");
  try {
    execFileSync("protoc", [`-I${join(root, "proto")}`, "--include_imports", `--descriptor_set_out=${file}`, "stepwell/v1/ingest.proto", "stepwell/v1/query.proto", "stepwell/v1/admin.proto"]);
    return createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(file)));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const contract = readContract();
/** A message of the contract by its name within stepwell.v1. */
export const schema = (name) => contract.getMessage(`stepwell.v1.${name}`);
export const encode = (name, fields) => toBinary(schema(name), create(schema(name), fields));
export const decode = (name, bytes) => fromBinary(schema(name), bytes);

const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; ++bit) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  return crc;
});
function crc32c(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = crcTable[(crc ^ byte) & 0xff] ^ (crc >>> 8);
  return ~crc >>> 0;
}

function chunk(writer, body) {
  const sealedTimeUs = BigInt(Date.now()) * 1000n;
  const head = Buffer.alloc(16);
  head.writeBigUInt64LE(1n, 0);
  head.writeBigInt64LE(sealedTimeUs, 8);
  return { message: { case: "chunk", value: { writer, sequence: 1n, sealedTimeUs, body, crc32c: crc32c(Buffer.concat([head, body])) } } };
}

/** All series have one clock, whose `stepUs` is a number, or a list of each tick's; where `value` gives null there is no sample. */
function table({ series, startUs, stepUs, ticks, firstBatch = -1 }) {
  const columns = series.map(({ value }, at) => {
    const values = Array.from({ length: ticks }, (_, tick) => value(tick));
    const doubles = values.filter((one) => one !== null);
    const presence = new Uint8Array(doubles.length === ticks ? 0 : Math.ceil(ticks / 8));
    if (presence.length > 0) values.forEach((one, tick) => { if (one !== null) presence[tick >> 3] |= 1 << (tick & 7); });
    return { ref: at + 1, doubles, presence };
  });
  return {
    tickGroup: 1, firstTimeUs: BigInt(startUs), timeDeltasUs: Array.from({ length: ticks - 1 }, (_, at) => BigInt(stepUs[at] ?? stepUs)),
    firstBatch, batchDeltas: firstBatch < 0 ? [] : Array(ticks - 1).fill(1), columns,
  };
}

export class RawWriters {
  /** Of a master that speaks TLS: by which CA, and with which token. */
  constructor(port, { ca = null, token = "" } = {}) {
    this.session = http2.connect(`${ca ? "https" : "http"}://127.0.0.1:${port}`, ca ? { ca } : {});
    this.headers = token ? { authorization: `Bearer ${token}` } : {};
    this.streams = new Set();
  }

  /** `rank` undefined = a machine's sampler; `open`: it is not closed, so that its trial runs for a minute yet;
   *  `died`: its process did, before it closed. */
  async write(asked) {
    const { writer = randomBytes(16), trial, project = "", agent = "node-1", rank, labels = {}, series = [], losses = [], open = false, died = false } = asked;
    const messages = [{ message: { case: "open", value: {
      writer, externalId: trial, project, agentId: agent, machine: createHash("md5").update(agent).digest("hex"), attemptKey: "one", isSampler: rank === undefined, rank: rank ?? 0, labels,
      recorderVersion: "raw/1", sentTimeUs: BigInt(Date.now()) * 1000n,
    } } }];
    if (series.length > 0) {
      messages.push({ message: { case: "definitions", value: { writer, definitions: series.map(({ group, name, unit = "", labels = {}, kind = gauge }, at) => (
        { ref: at + 1, tickGroup: 1, metricGroup: group, name, unit, labels, kind })) } } });
      messages.push(chunk(writer, encode("ChunkBody", { tables: [table(asked)], losses })));
    }
    if (!open) messages.push({ message: { case: "close", value: { writer, finalSequence: series.length > 0 ? 1n : 0n, died } } });
    const answer = decode("WriteChunksResponse", await this.call("WriteChunks", encode("WriteChunksRequest", { messages })));
    const kinds = answer.messages.map(({ message }) => message);
    const refused = kinds.find((one) => one.case === "refused" || (one.case === "ack" && one.value.rejections.length > 0));
    if (refused) throw new Error(`${trial}: ${JSON.stringify(refused.value, (_, value) => (typeof value === "bigint" ? String(value) : value))}`);
    return kinds.find((one) => one.case === "opened").value.trialId;
  }

  /** For one that writes, stays open and is closed later. */
  static newWriter() {
    return randomBytes(16);
  }

  /** One that was left open: as its agent comes again and closes it. */
  async closeWriter({ trial, agent = "node-1", rank, writer, finalSequence }) {
    const messages = [
      { message: { case: "open", value: {
        writer, externalId: trial, agentId: agent, machine: createHash("md5").update(agent).digest("hex"), attemptKey: "one", isSampler: rank === undefined, rank: rank ?? 0,
        recorderVersion: "raw/1", sentTimeUs: BigInt(Date.now()) * 1000n,
      } } },
      { message: { case: "close", value: { writer, finalSequence } } },
    ];
    const answer = decode("WriteChunksResponse", await this.call("WriteChunks", encode("WriteChunksRequest", { messages })));
    const refused = answer.messages.map(({ message }) => message).find((one) => one.case === "refused");
    if (refused) throw new Error(`${trial}: ${refused.value.reason} ${refused.value.message ?? ""}`);
  }

  /** Opens a writer on a stream that stays, as an agent's does. */
  connect({ trial, agent, version }) {
    const request = this.request("StreamChunks");
    request.on("error", () => {});
    request.resume();
    this.streams.add(request);
    request.write(framed(encode("StreamChunksRequest", { message: { case: "open", value: {
      writer: randomBytes(16), externalId: trial, agentId: agent, machine: "m", rank: 0, recorderVersion: "raw/1", agentVersion: version, sentTimeUs: BigInt(Date.now()) * 1000n,
    } } })));
  }

  request(method) {
    return this.session.request({ ":method": "POST", ":path": `/stepwell.v1.IngestService/${method}`, "content-type": "application/grpc", te: "trailers", ...this.headers });
  }

  async call(method, bytes) {
    const request = this.request(method);
    let ended = {};
    request.on("response", (headers) => (ended = headers));
    request.on("trailers", (trailers) => (ended = trailers));
    request.end(framed(bytes));
    const parts = [];
    for await (const part of request) parts.push(part);
    if (ended["grpc-status"] !== "0") throw new Error(`${method}: ${ended["grpc-status"]} ${decodeURIComponent(ended["grpc-message"] ?? "")}`);
    return Buffer.concat(parts).subarray(5);
  }

  close() {
    for (const stream of this.streams) stream.destroy();
    this.session.destroy();
  }
}

/** As gRPC puts a message onto a stream. */
function framed(bytes) {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}
