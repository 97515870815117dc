/** Runs checks and prints one line of JSON for each. */
import { strict as assert } from "node:assert";

export { assert };

/** Where the grid is, and who the client is. Read from the JSON file that the first argument names. */
export type Settings = {
  chainId: number;
  rpcUrl: string;
  wsUrl: string;
  metaScheduler: `0x${string}`;
  graphqlUrl: string;
  /** host:port */
  grpcTarget: string;
  /** PEM file with the certificates to trust; without one the connection is in clear text. */
  grpcCertificates: string | null;
  /** Base URL of gRPC-web. */
  grpcWebUrl: string;
  keyFile: string;
  strangerKeyFile: string;
  /** Folder with workflow files. */
  examples: string;
  /** Label that names the cluster for the jobs that run. */
  cluster: string;
};

export type Check = (name: string, body: () => Promise<void>) => Promise<boolean>;

/** Run one check. A failure is printed and does not end the others. */
export const check: Check = async (name, body) => {
  const began = Date.now();
  let error: string | null = null;
  try {
    await within(900, body());
  } catch (caught) {
    error = caught instanceof Error ? (caught.stack ?? caught.message) : String(caught);
  }
  console.log(JSON.stringify({ check: name, ok: error === null, seconds: (Date.now() - began) / 1000, error }));
  return error === null;
};

/** The result of a promise, which must come within so many seconds. */
export async function within<T>(seconds: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${seconds} s`)), seconds * 1000);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Ask until the answer is what is wanted. */
export async function until<T>(ask: () => Promise<T>, wanted: (answer: T) => boolean, seconds = 600): Promise<T> {
  const deadline = Date.now() + seconds * 1000;
  for (;;) {
    const answer = await ask();
    if (wanted(answer)) return answer;
    if (Date.now() > deadline) throw new Error(`still ${JSON.stringify(answer, (_, value) => (typeof value === "bigint" ? String(value) : value))}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** The error of a promise that must reject. */
export async function rejection(promise: Promise<unknown>): Promise<Error & Record<string, unknown>> {
  try {
    await promise;
  } catch (error) {
    return error as Error & Record<string, unknown>;
  }
  throw new Error("nothing was refused");
}

/** The text is for people: words, and no code or data of the server. */
export function assertSentence(text: unknown): void {
  assert.match(String(text), /^[^\s{[<].*\s.*\S$/s);
  assert.doesNotMatch(String(text), /Traceback|Exception|^0x/);
}
