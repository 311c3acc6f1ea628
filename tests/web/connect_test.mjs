// The Connect protocol as its own clients speak it, unmodified: in a browser's way (fetch) and in Node's,
// in both encodings: each code of the protocol's table, details, streams, deadlines, cancellation. Each twice: with
// the oldest release that is meant to work, and over fetch with the one that the page ships, in Node with a newer one.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { Code, ConnectError, createClient, decodeBinaryHeader } from "@connectrpc/connect";
import { compressionGzip, createConnectTransport as createNodeTransport } from "@connectrpc/connect-node";
import { createConnectTransport as createWebTransport } from "@connectrpc/connect-web";
import { eventually, readContract, startStand } from "./stand.mjs";

/** Of client/web: both its files, for a client and its transport are of one release. */
const pagesModules = new URL("../../client/web/node_modules/@connectrpc/", import.meta.url);
const ofPage = (name) => import(new URL(`${name}/dist/esm/index.js`, pagesModules).href);
const pagesVersion = JSON.parse(readFileSync(new URL("connect-web/package.json", pagesModules), "utf8")).version;
const [pagesConnect, pagesWeb] = await Promise.all(["connect", "connect-web"].map(ofPage));

/** As pagesModules: a folder of its own, for an alias would find the other release of connect. */
const newerModules = new URL("newer/node_modules/@connectrpc/", import.meta.url);
const ofNewer = (name) => import(new URL(`${name}/dist/esm/index.js`, newerModules).href);
const { version: newerVersion, engines } = JSON.parse(readFileSync(new URL("connect-node/package.json", newerModules), "utf8"));
/** Debian 12 has Node 18, which it is not meant for. */
const runsNewer = Number(process.versions.node.split(".")[0]) >= Number(/^>=(\d+)$/.exec(engines.node)[1]);
const [newerConnect, newerNode] = runsNewer ? await Promise.all(["connect", "connect-node"].map(ofNewer)) : [null, null];

/** Two ways, two forms. */
const newerClients = 4;

const contract = readContract();
const service = contract.getService("stepwell.v1.QueryService");
const adminService = contract.getService("stepwell.v1.AdminService");
const errorInfo = contract.getMessage("google.rpc.ErrorInfo");
const retryInfo = contract.getMessage("google.rpc.RetryInfo");
const badRequest = contract.getMessage("google.rpc.BadRequest");

// The protocol's table (connectrpc.com/docs/protocol, "Error codes").
const httpStatusOf = new Map([
  [Code.Canceled, 499], [Code.Unknown, 500], [Code.InvalidArgument, 400], [Code.DeadlineExceeded, 504],
  [Code.NotFound, 404], [Code.AlreadyExists, 409], [Code.PermissionDenied, 403], [Code.ResourceExhausted, 429],
  [Code.FailedPrecondition, 400], [Code.Aborted, 409], [Code.OutOfRange, 400], [Code.Unimplemented, 501],
  [Code.Internal, 500], [Code.Unavailable, 503], [Code.DataLoss, 500], [Code.Unauthenticated, 401],
]);

let stand;
const transports = new Map();
/** Of the transports that are of another release: who makes their clients. */
const clientMakers = new Map();

before(async () => {
  stand = await startStand(process.env.CONNECT_STAND);
  const baseUrl = stand.address;
  for (const useBinaryFormat of [true, false]) {
    const form = useBinaryFormat ? "binary" : "JSON";
    transports.set(`web, ${form}`, createWebTransport({ baseUrl, useBinaryFormat }));
    transports.set(`web by GET, ${form}`, createWebTransport({ baseUrl, useBinaryFormat, useHttpGet: true }));
    transports.set(`node, ${form}`, createNodeTransport({ baseUrl, useBinaryFormat, httpVersion: "1.1" }));
    transports.set(`node with gzip, ${form}`, createNodeTransport({
      baseUrl, useBinaryFormat, httpVersion: "1.1", sendCompression: compressionGzip, compressMinBytes: 0,
    }));
    const pages = `the page's web ${pagesVersion}, ${form}`;
    clientMakers.set(pages, pagesConnect.createClient);
    transports.set(pages, pagesWeb.createConnectTransport({ baseUrl, useBinaryFormat }));
    if (!runsNewer) continue;
    for (const [how, more] of [["", {}], [" with gzip", { sendCompression: newerNode.compressionGzip, compressMinBytes: 0 }]]) {
      const newer = `node ${newerVersion}${how}, ${form}`;
      clientMakers.set(newer, newerConnect.createClient);
      transports.set(newer, newerNode.createConnectTransport({ baseUrl, useBinaryFormat, httpVersion: "1.1", ...more }));
    }
  }
});

after(async () => assert.equal(await stand.stop(), 0));

function clientOf(of, name) {
  return (clientMakers.get(name) ?? createClient)(of, transports.get(name));
}

async function forEachClient(t, check) {
  for (const name of transports.keys()) {
    await t.test(name, () => check(clientOf(service, name), name));
  }
}

async function failureOf(promise) {
  try {
    await promise;
  } catch (error) {
    return ConnectError.from(error);
  }
  return assert.fail("no error came");
}

async function collect(stream) {
  const messages = [];
  for await (const message of stream) messages.push(message);
  return messages;
}

function checkError(error, code) {
  assert.equal(error.code, code, error.message);
  assert.equal(error.rawMessage, `as asked: ${code}, "größer"`);
  const [info] = error.findDetails(errorInfo);
  assert.equal(info.reason, "AS_ASKED");
  assert.equal(info.domain, "stepwell");
  assert.deepEqual(info.metadata, { code: `${code}` });
  const [retry] = error.findDetails(retryInfo);
  assert.equal(retry.retryDelay.seconds, 1n);
  assert.equal(retry.retryDelay.nanos, 500_000_000);
  const [bad] = error.findDetails(badRequest);
  assert.equal(bad.fieldViolations[0].field, "trial");
}

const rawTrailer = Uint8Array.of(0, 0xff, 13, 10);

function checkTrailers(headers) {
  assert.equal(headers.get("seen"), "once, twice");
  assert.deepEqual(decodeBinaryHeader(headers.get("raw-bin")), rawTrailer);
  assert.deepEqual([...headers.keys()].filter((name) => name.startsWith("grpc-")), []);
}

test("metadata that ends a call arrives, of calls that succeed and that fail", (t) => forEachClient(t, async (client) => {
  let trailers;
  const options = { onTrailer: (headers) => { trailers = headers; } };
  await client.listTrials({ nameContains: "send 2 trail" }, options);
  checkTrailers(trailers);
  const failed = await failureOf(client.listTrials({ nameContains: "trail end 5" }, options));
  checkError(failed, Code.NotFound);
  checkTrailers(failed.metadata);
  trailers = undefined;
  assert.equal((await collect(client.readSamples({ trial: { externalId: "send 3 trail" } }, options))).length, 3);
  checkTrailers(trailers);
  const broken = await failureOf(collect(client.readSamples({ trial: { externalId: "send 1 trail end 13" } }, options)));
  checkError(broken, Code.Internal);
  checkTrailers(broken.metadata);
  await client.listTrials({ nameContains: "send 1" }, options);
  assert.deepEqual([...trailers.keys()], [], "none where none was set");
}));

test("the table has all codes", () => assert.equal(httpStatusOf.size, 16));

test("the page's release, and the newer one for Node, are others than the tests' own", () => {
  const versionOf = (name) => JSON.parse(readFileSync(new URL(`node_modules/@connectrpc/${name}/package.json`, import.meta.url), "utf8")).version;
  assert.equal(clientMakers.size, 2 + (runsNewer ? newerClients : 0));
  assert.notEqual(pagesVersion, versionOf("connect-web"));
  assert.notEqual(newerVersion, versionOf("connect-node"));
});

test(`connect-node ${newerVersion} runs in this Node`, { skip: runsNewer ? false : `left out of all that follows: it wants Node ${engines.node}, this is ${process.versions.node}` }, () => {
  assert.equal([...clientMakers.keys()].filter((name) => name.startsWith(`node ${newerVersion}`)).length, newerClients);
});

test("a unary call is answered", (t) => forEachClient(t, async (client) => {
  const answer = await client.listTrials({ nameContains: "send 3" });
  assert.deepEqual(answer.trials.map((trial) => trial.trialId),
    [9007199254740993n, 9007199254740994n, 9007199254740995n]);
  assert.equal(answer.trials[2].externalId, "größer-2");
}));

test("a large answer comes whole", (t) => forEachClient(t, async (client) => {
  const answer = await client.listTrials({ nameContains: "send 20000" });
  assert.equal(answer.trials.length, 20000);
  assert.equal(answer.trials[19999].externalId, "größer-19999");
}));

test("each code arrives with its details", (t) => forEachClient(t, async (client) => {
  for (const code of httpStatusOf.keys()) {
    checkError(await failureOf(client.listTrials({ nameContains: `end ${code}` })), code);
  }
}));

test("each code has its HTTP status", async () => {
  for (const [code, status] of httpStatusOf) {
    const response = await fetch(`${stand.address}/stepwell.v1.QueryService/ListTrials`, {
      method: "POST",
      headers: { "Content-Type": "application/proto" },
      // name_contains = "end N"
      body: new Uint8Array([0x12, `end ${code}`.length, ...new TextEncoder().encode(`end ${code}`)]),
    });
    assert.equal(response.status, status);
    assert.equal(response.headers.get("content-type"), "application/json", "of errors, whatever was asked");
    const error = await response.json();
    assert.equal(error.details.length, 3);
    assert.equal(error.details[0].type, "google.rpc.ErrorInfo");
    assert.equal(error.details[0].debug.reason, "AS_ASKED");
    assert.doesNotMatch(error.details[0].value, /=/);
  }
});

test("a stream arrives in order", (t) => forEachClient(t, async (client) => {
  const messages = await collect(client.readSamples({ trial: { externalId: "send 500" } }));
  assert.equal(messages.length, 500);
  messages.forEach((message, i) => {
    assert.equal(message.cursor, `${i}`);
    assert.deepEqual(message.values, [i + 0.5]);
  });
}));

test("an empty stream ends well", (t) => forEachClient(t, async (client) => {
  assert.deepEqual(await collect(client.readSamples({})), []);
}));

test("each code ends a stream with its details", (t) => forEachClient(t, async (client) => {
  for (const code of httpStatusOf.keys()) {
    const seen = [];
    const error = await failureOf((async () => {
      const ref = { externalId: `send 2 end ${code}` };
      for await (const message of client.readSamples({ trial: ref })) seen.push(message);
    })());
    assert.equal(seen.length, 2);
    checkError(error, code);
  }
}));

test("a deadline ends a call at the service, too", (t) => forEachClient(t, async (client) => {
  const waited = async () => Number((await client.listTrials({ nameContains: "waited" })).nextPageToken);
  const had = await waited();
  const error = await failureOf(client.listTrials({ nameContains: "wait" }, { timeoutMs: 50 }));
  assert.equal(error.code, Code.DeadlineExceeded);
  await eventually("the service hears of it", async () => (await waited()) === had + 1);
}));

test("a deadline ends a stream, too, after what was sent", (t) => forEachClient(t, async (client) => {
  const waited = async () => Number((await client.listTrials({ nameContains: "waited" })).nextPageToken);
  const had = await waited();
  const cursors = [];
  const error = await failureOf((async () => {
    for await (const message of client.readSamples({ trial: { externalId: "send 1 wait" } }, { timeoutMs: 500 })) cursors.push(message.cursor);
  })());
  assert.equal(error.code, Code.DeadlineExceeded);
  assert.deepEqual(cursors, ["0"]);
  await eventually("the service hears of it", async () => (await waited()) === had + 1);
}));

test("a client that goes ends its stream at the service", (t) => forEachClient(t, async (client) => {
  const waited = async () => Number((await client.listTrials({ nameContains: "waited" })).nextPageToken);
  const had = await waited();
  const controller = new AbortController();
  const ref = { externalId: "send 1 wait" };
  const error = await failureOf((async () => {
    for await (const message of client.readSamples({ trial: ref }, { signal: controller.signal })) {
      assert.equal(message.cursor, "0");
      controller.abort();
    }
  })());
  assert.equal(error.code, Code.Canceled);
  await eventually("the service hears of it", async () => (await waited()) === had + 1);
}));

test("what no service has is unimplemented", (t) => forEachClient(t, async (client, name) => {
  const error = await failureOf(client.getTrial({}));
  assert.equal(error.code, Code.Unimplemented);
  const absent = clientOf(adminService, name);
  assert.equal((await failureOf(absent.getStatus({}))).code, Code.Unimplemented);
}));

test("a request that is too large is resource_exhausted", (t) => forEachClient(t, async (client, name) => {
  if (name.includes("by GET") || name.includes("gzip")) return; // one is a header, the other small on its way
  const text = "x".repeat(5 << 20);
  for (const error of [await failureOf(client.listTrials({ nameContains: text })), await failureOf(collect(client.readSamples({ trial: { externalId: text } })))]) {
    assert.equal(error.code, Code.ResourceExhausted, error.message);
    assert.match(error.rawMessage, /allowed are 4194304 bytes/);
  }
}));
