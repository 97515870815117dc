/** XMLHttpRequest for node, over fetch: as much of a browser's as the library grpc-web uses. */

/** One request that was sent: its address, method and headers in lower case. */
export type Sent = { url: string; method: string; headers: Record<string, string> };

export class FetchXMLHttpRequest {
  /** All requests of this process. */
  static readonly sent: Sent[] = [];

  onreadystatechange: (() => void) | null = null;
  readyState = 0;
  status = 0;
  statusText = "";
  responseText = "";
  responseType = "";
  response: string | ArrayBuffer = "";
  timeout = 0;
  withCredentials = false;
  readonly upload = {};

  private url = "";
  private method = "GET";
  private readonly headers: Record<string, string> = {};
  private received = new Headers();
  private readonly stop = new AbortController();

  open(method: string, url: string): void {
    this.method = method;
    this.url = url;
    this.become(1);
  }

  setRequestHeader(name: string, value: string): void {
    this.headers[name.toLowerCase()] = value;
  }

  getResponseHeader(name: string): string | null {
    return this.received.get(name);
  }

  getAllResponseHeaders(): string {
    return [...this.received].map(([name, value]) => `${name}: ${value}\r\n`).join("");
  }

  send(body?: string | Uint8Array): void {
    FetchXMLHttpRequest.sent.push({ url: this.url, method: this.method, headers: this.headers });
    this.exchange(body).catch(() => {
      if (this.stop.signal.aborted) return;
      this.status = 0;
      this.become(4);
    });
  }

  abort(): void {
    this.stop.abort();
  }

  private async exchange(body?: string | Uint8Array): Promise<void> {
    const request = { method: this.method, headers: this.headers, body: body ?? null, signal: this.stop.signal };
    const answer = await fetch(this.url, request as RequestInit);
    this.status = answer.status;
    this.statusText = answer.statusText;
    this.received = answer.headers;
    this.become(2);
    for await (const chunk of answer.body ?? []) {
      this.responseText += Buffer.from(chunk).toString("latin1"); // base64 is ASCII
      this.response = this.responseText;
      this.become(3);
    }
    this.become(4);
  }

  private become(state: number): void {
    this.readyState = state;
    this.onreadystatechange?.();
  }
}

/** Make it the XMLHttpRequest of this process, as in a browser. */
export function installXMLHttpRequest(): void {
  Object.assign(globalThis, { XMLHttpRequest: FetchXMLHttpRequest });
}
