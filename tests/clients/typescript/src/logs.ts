/** The log service over its two transports: gRPC as in node, gRPC-web text as in a browser. */
import { fileURLToPath } from "node:url";
import * as grpc from "@grpc/grpc-js";
import { loadSync, type MethodDefinition, type PackageDefinition, type ServiceDefinition } from "@grpc/proto-loader";
import grpcWeb from "grpc-web";

export type ReadRequest = { address: string; logName: string; timestamp: string; signedHash: Uint8Array };
export type ReadResponse = { data: Buffer; timestamp: string };
export type WatchListRequest = { address: string; timestamp: string; signedHash: Uint8Array };
export type WatchListResponse = { logNames: string[] };

export const SERVICE = "logger.v1alpha1.LoggerAPI";
const DEADLINE_MS = 3_600_000;

const PROTOS = ["logger.proto", "health.proto"].map((name) => fileURLToPath(new URL(`../${name}`, import.meta.url)));
const DEFINITION: PackageDefinition = loadSync(PROTOS, { longs: String, defaults: true, enums: String });

/** An error of a call, with gRPC's code such as 16 for UNAUTHENTICATED. */
export class LogError extends Error {
  constructor(readonly code: number, message: string) {
    super(message);
  }
}

/** A running call: its messages until the server ends it, and how to leave it early. */
export type Stream<T> = { messages: AsyncIterable<T>; close: () => void };

export interface LogTransport {
  read(request: ReadRequest): Stream<ReadResponse>;
  watchList(request: WatchListRequest): Stream<WatchListResponse>;
}

/** gRPC over HTTP/2. `certificates` are for TLS; without, the connection is in clear text. */
export class GrpcTransport implements LogTransport {
  private readonly client: grpc.Client;
  private readonly health: grpc.Client;

  constructor(target: string, certificates?: Buffer) {
    const credentials = certificates ? grpc.credentials.createSsl(certificates) : grpc.credentials.createInsecure();
    this.client = new grpc.Client(target, credentials, { "grpc.enable_http_proxy": 0 });
    this.health = this.client;
  }

  read(request: ReadRequest): Stream<ReadResponse> {
    return this.call("Read", request);
  }

  watchList(request: WatchListRequest): Stream<WatchListResponse> {
    return this.call("WatchList", request);
  }

  /** The state of a service by the standard health service: SERVING when it is well. */
  check(service: string): Promise<string> {
    const method = methodOf("grpc.health.v1.Health", "Check");
    return new Promise((resolve, reject) => {
      this.health.makeUnaryRequest(
        method.path, method.requestSerialize as grpc.serialize<object>, method.responseDeserialize, { service },
        (error, answer) => (error ? reject(new LogError(error.code, error.details)) : resolve((answer as { status: string }).status)),
      );
    });
  }

  close(): void {
    this.client.close();
  }

  private call<Request extends object, Response>(name: string, request: Request): Stream<Response> {
    const method = methodOf(SERVICE, name);
    const call = this.client.makeServerStreamRequest(
      method.path, method.requestSerialize as grpc.serialize<Request>,
      method.responseDeserialize as grpc.deserialize<Response>, request, { deadline: Date.now() + DEADLINE_MS },
    );
    return { messages: messagesOf(call), close: () => call.cancel() };
  }
}

async function* messagesOf<Response>(call: grpc.ClientReadableStream<Response>): AsyncIterable<Response> {
  try {
    for await (const message of call) yield message as Response;
  } catch (error) {
    const { code, details } = error as grpc.ServiceError;
    if (code === grpc.status.CANCELLED) return; // by `close`
    throw code === undefined ? error : new LogError(code, details);
  }
}

/** gRPC-web in text mode, with the library that browsers use. `format` may also be binary, which ends with the answer. */
export class GrpcWebTransport implements LogTransport {
  private readonly client = new grpcWeb.GrpcWebClientBase({ format: "text" });

  constructor(private readonly url: string) {}

  read(request: ReadRequest): Stream<ReadResponse> {
    return this.call("Read", request);
  }

  watchList(request: WatchListRequest): Stream<WatchListResponse> {
    return this.call("WatchList", request);
  }

  private call<Request extends object, Response>(name: string, request: Request): Stream<Response> {
    const method = methodOf(SERVICE, name);
    const descriptor = new grpcWeb.MethodDescriptor<Request, Response>(
      method.path, grpcWeb.MethodType.SERVER_STREAMING, Object as never, Object as never,
      (value: Request) => new Uint8Array(method.requestSerialize(value)),
      (bytes: Uint8Array) => method.responseDeserialize(Buffer.from(bytes)) as Response,
    );
    const metadata = { deadline: String(Date.now() + DEADLINE_MS) };
    const call = this.client.serverStreaming(this.url + method.path, request, metadata, descriptor);
    const queue = new Queue<Response>();
    call.on("data", (message) => queue.push(message));
    call.on("status", (status) => (status.code === 0 ? queue.end() : queue.fail(new LogError(status.code, status.details))));
    call.on("error", (error) => queue.fail(new LogError(error.code, error.message)));
    call.on("end", () => queue.end());
    return {
      messages: queue,
      close: () => {
        call.cancel();
        queue.end();
      },
    };
  }
}

/** What callbacks deliver, for one reader. */
export class Queue<T> implements AsyncIterable<T> {
  private readonly waiting: T[] = [];
  private over = false;
  private error: Error | null = null;
  private wake: () => void = () => {};

  push(value: T): void {
    this.waiting.push(value);
    this.wake();
  }

  end(): void {
    this.over = true;
    this.wake();
  }

  fail(error: Error): void {
    this.error ??= error;
    this.end();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<T> {
    for (;;) {
      while (this.waiting.length > 0) yield this.waiting.shift()!;
      if (this.over) break;
      await new Promise<void>((resolve) => (this.wake = resolve));
    }
    if (this.error) throw this.error;
  }
}

/** The bytes of a Read request, for requests that a test sends by hand. */
export function encodedRead(request: ReadRequest): Buffer {
  return methodOf(SERVICE, "Read").requestSerialize(request);
}

export function decodedRead(bytes: Buffer): ReadResponse {
  return methodOf(SERVICE, "Read").responseDeserialize(bytes) as ReadResponse;
}

function methodOf(service: string, name: string): MethodDefinition<object, object> {
  return (DEFINITION[service] as ServiceDefinition)[name] as MethodDefinition<object, object>;
}
