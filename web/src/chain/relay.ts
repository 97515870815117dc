/** JSON-RPC over the relay beside the page. Calls of one moment go out as one batch. */
import { sessionHeaders } from "../wallet/local";

export interface Call {
  method: string;
  params: unknown[];
}

interface Waiting extends Call {
  resolve: (result: unknown) => void;
  reject: (fault: RelayFault) => void;
}

interface Answer {
  id: number;
  result?: unknown;
  error?: { code: number; message: string; data?: unknown };
}

/** A failed read. `sentence` is for the user; `data` holds the revert data of a contract. */
export class RelayFault extends Error {
  constructor(
    readonly sentence: string,
    readonly transient: boolean,
    readonly data: unknown = undefined,
  ) {
    super(sentence);
  }
}

const MOST = 50;
const TIMEOUT_MS = 20_000;
let waiting: Waiting[] = [];
let nextId = 1;

/** The result of one read. Reads of the same moment share a request. */
export function call(method: string, params: unknown[]): Promise<unknown> {
  return new Promise((resolve, reject) => {
    if (waiting.length === 0) queueMicrotask(flush);
    waiting.push({ method, params, resolve, reject });
  });
}

export function batch(calls: Call[]): Promise<unknown[]> {
  return Promise.all(calls.map(({ method, params }) => call(method, params)));
}

function flush(): void {
  const all = waiting;
  waiting = [];
  for (let at = 0; at < all.length; at += MOST) void exchange(all.slice(at, at + MOST));
}

async function exchange(calls: Waiting[]): Promise<void> {
  const first = nextId;
  nextId += calls.length;
  const body = calls.map(({ method, params }, at) => ({ jsonrpc: "2.0", id: first + at, method, params }));
  try {
    const answers = new Map((await post(body)).map((answer) => [answer.id, answer]));
    calls.forEach((one, at) => settle(one, answers.get(first + at)));
  } catch (error) {
    const fault = error instanceof RelayFault ? error : new RelayFault("The grid's services do not answer.", true);
    for (const one of calls) one.reject(fault);
  }
}

async function post(body: object[]): Promise<Answer[]> {
  const answer = await fetch("rpc", {
    method: "POST",
    headers: sessionHeaders(),
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (!answer.ok) {
    const said = answer.status === 401 ? ((await answer.json()) as { error: string }).error : ""; // of `dps web`
    const text = answer.status === 429 ? "Too many requests at once." : "The grid's services do not answer.";
    throw new RelayFault(said || text, answer.status >= 429);
  }
  const answers: unknown = await answer.json();
  return (Array.isArray(answers) ? answers : [answers]) as Answer[];
}

function settle(one: Waiting, answer: Answer | undefined): void {
  if (!answer) one.reject(new RelayFault("The grid's services left a read unanswered.", true));
  else if (answer.error) one.reject(new RelayFault(answer.error.message, answer.error.code !== 3, answer.error.data));
  else one.resolve(answer.result ?? null);
}
