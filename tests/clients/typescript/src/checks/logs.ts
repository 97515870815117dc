/** Checks of the log service over gRPC and gRPC-web. */
import type { Hex } from "viem";
import type { GridClient } from "../client.js";
import { assert, check, rejection, within } from "../harness.js";
import { decodedRead, encodedRead, SERVICE, type LogError, type LogTransport, type ReadRequest, type Stream } from "../logs.js";
import type { Parties } from "../parties.js";
import { FetchXMLHttpRequest } from "../xhr.js";
import { TALK, type Submitted } from "./jobs.js";
import { preflight } from "./service.js";

const UNAUTHENTICATED = 16;
const LOG_WITHIN_S = 600;

/** Follow the log of a job from its submission to its end, over both transports at once. */
export async function checkFollowing({ customer, browser }: Parties, { talker }: Submitted): Promise<void> {
  const follow = (name: string, client: GridClient) => check(`logs over ${name} to the end`, () => checkWhole(client, talker));
  await Promise.all([follow("gRPC", customer), follow("gRPC-web text", browser)]);
}

async function checkWhole(client: GridClient, jobId: Hex): Promise<void> {
  const { messages } = await client.getLogsMethods(jobId).fetchLogs();
  const lines: string[] = [];
  let before = 0n;
  for await (const { data, timestamp } of messages) {
    lines.push(data.toString());
    assert.ok(BigInt(timestamp) >= before, "times go back");
    before = BigInt(timestamp);
    const age = Date.now() - Number(before / 1_000_000n);
    assert.ok(Math.abs(age) < 3_600_000, `${timestamp} is not now in nanoseconds`);
  }
  assert.deepEqual(lines, TALK);
}

/** Requests about the job's log that are not as they should be, and odd ones that are. */
export async function checkSignatures({ customer, browser, stranger, grpc, grpcWeb }: Parties, { talker }: Submitted): Promise<void> {
  for (const [name, transport] of [["gRPC", grpc], ["gRPC-web text", grpcWeb]] as const) {
    await check(`signatures over ${name}`, async () => {
      const now = Date.now();
      const good = await signed(customer, talker, now);
      await accepted(transport, good);
      await accepted(transport, { ...good, signedHash: goSignature(good.signedHash) });
      await accepted(transport, await signed(customer, talker, Math.floor(now / 1000)));
      for (const length of [64, 0, 66, 1, 1000]) await refused(transport, { ...good, signedHash: sized(good.signedHash, length) });
      await refused(transport, { ...good, signedHash: new Uint8Array(65) });
      await refused(transport, { ...good, timestamp: String(now + 1) });
      await refused(transport, await signed(customer, talker, now - 3_600_000));
      await refused(transport, await signed(stranger, talker, now));
      await refused(transport, { ...(await signed(stranger, talker, now)), address: customer.address });
    });
  }
  await check("a stranger's fetchLogs is UNAUTHENTICATED", async () => {
    const { messages } = await stranger.getLogsMethods(talker).fetchLogs();
    assert.equal(((await rejection(collect(messages))) as unknown as LogError).code, UNAUTHENTICATED);
  });
  await check("logs again after the end", async () => {
    for (const client of [customer, browser]) await within(LOG_WITHIN_S, checkWhole(client, talker));
  });
}

/** The bytes on the wire, the list of logs, health, and browsers of other sites. */
export async function checkTransports({ customer, grpc, grpcWeb, settings }: Parties, { talker }: Submitted): Promise<void> {
  const url = `${settings.grpcWebUrl}/${SERVICE}/Read`;
  await check("gRPC-web text as browsers send it", async () => {
    const sent = FetchXMLHttpRequest.sent.find((one) => one.url === url);
    assert.equal(sent?.method, "POST");
    assert.equal(sent.headers["content-type"], "application/grpc-web-text");
    assert.equal(sent.headers["x-grpc-web"], "1");
    assert.match(sent.headers["grpc-timeout"] ?? "", /^\d+m$/);
  });
  await check("gRPC-web binary", async () => {
    const frame = framed(encodedRead(await signed(customer, talker, Date.now())));
    const headers = { "content-type": "application/grpc-web+proto", "x-grpc-web": "1" };
    const answer = await fetch(url, { method: "POST", headers, body: new Uint8Array(frame) });
    assert.match(answer.headers.get("content-type") ?? "", /^application\/grpc-web\+proto/);
    const { messages, trailers } = parts(Buffer.from(await answer.arrayBuffer()));
    assert.deepEqual(messages.map((bytes) => decodedRead(bytes).data.toString()), TALK);
    assert.match(trailers, /^grpc-status: ?0\r\n/m);
  });
  await check("list of logs", async () => {
    const timestamp = String(Date.now());
    const signedHash = await customer.signed(`watchList:${customer.address.toLowerCase()}/${timestamp}`);
    for (const transport of [grpc, grpcWeb]) {
      const stream = transport.watchList({ address: customer.address, timestamp, signedHash });
      assert.ok((await first(stream))?.logNames.includes(talker));
    }
  });
  await check("health of the log service", async () => {
    for (const service of ["", SERVICE]) assert.equal(await grpc.check(service), "SERVING");
  });
  await check("browsers of any site may follow", () => preflight(url, "x-grpc-web", "1728000"));
}

async function signed(client: GridClient, jobId: Hex, timestamp: number): Promise<ReadRequest> {
  const signedHash = await client.signed(`read:${client.address.toLowerCase()}/${jobId}/${timestamp}`);
  return { address: client.address, logName: jobId, timestamp: String(timestamp), signedHash };
}

/** The signature as Go's library writes it: the last byte is 0 or 1. */
function goSignature(signature: Uint8Array): Uint8Array {
  return signature.map((byte, place) => (place === 64 ? byte - 27 : byte));
}

function sized(signature: Uint8Array, length: number): Uint8Array {
  const made = new Uint8Array(length);
  made.set(signature.subarray(0, length));
  return made;
}

async function accepted(transport: LogTransport, request: ReadRequest): Promise<void> {
  assert.equal((await first(transport.read(request)))?.data.toString(), TALK[0]);
}

async function refused(transport: LogTransport, request: ReadRequest): Promise<void> {
  const error = (await rejection(within(LOG_WITHIN_S, collect(transport.read(request).messages)))) as unknown as LogError;
  assert.equal(error.code, UNAUTHENTICATED, error.message);
}

/** The first message. The stream is left after it. */
async function first<T>({ messages, close }: Stream<T>): Promise<T | undefined> {
  const next = await within(LOG_WITHIN_S, messages[Symbol.asyncIterator]().next());
  close();
  return next.value as T | undefined;
}

async function collect<T>(messages: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const message of messages) found.push(message);
  return found;
}

function framed(message: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** The messages and the trailers of an answer in gRPC-web's frames. */
function parts(answer: Buffer): { messages: Buffer[]; trailers: string } {
  const messages: Buffer[] = [];
  let trailers = "";
  for (let at = 0; at < answer.length; ) {
    const end = at + 5 + answer.readUInt32BE(at + 1);
    const body = answer.subarray(at + 5, end);
    if (answer[at] === 0x80) trailers += body.toString();
    else messages.push(body);
    at = end;
  }
  return { messages, trailers };
}
