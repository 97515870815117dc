import { sha256 } from "@noble/hashes/sha2";
import { afterEach, describe, expect, it, vi } from "vitest";
import { send } from "../src/files/kept_files";
import { BadList, imageType, listText, manifestOf, parseManifest, sizeWords, textOf } from "../src/files/manifest";
import { otherInput, sentInput, withInput, withoutInput } from "../src/pure/grid_input";
import type { Session } from "../src/wallet/session";

const hex = (bytes: Uint8Array) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const NUMBER = "0123456789abcdef0123456789abcdef";

describe("the list of files", () => {
  it("is read as it is written", () => {
    const entries = [{ path: "a b\nc", size: 3, sha256: "a".repeat(64) }, { path: "d/é", size: 0, sha256: "b".repeat(64) }];
    expect(parseManifest(manifestOf(entries))).toEqual(entries);
    expect(parseManifest("")).toEqual([]);
  });
  it("is refused if it is cut off or another text", () => {
    const whole = manifestOf([{ path: "a", size: 3, sha256: "a".repeat(64) }]);
    for (const text of [whole.slice(0, -1), "<html>\0", `-1${whole}`]) expect(() => parseManifest(text)).toThrow(BadList);
  });
  it("names bytes that are not UTF-8 as the grid does", () => {
    const line = [..."0 644 ", ..."a".repeat(64), " ", " "].map((one) => one.charCodeAt(0));
    // As `deepgrid.services.files.manifest` names them. The web app asked for a name that the grid does not have.
    const names = { "%FF": [0xff], "%FE": [0xfe], "%E2%82x": [0xe2, 0x82, 0x78], "\u20ac%ED%A0%80\ufeff": [0xe2, 0x82, 0xac, 0xed, 0xa0, 0x80, 0xef, 0xbb, 0xbf] };
    const list = new Uint8Array(Object.values(names).flatMap((name) => [...line, ...name, 0]));
    expect(parseManifest(listText(list)).map((entry) => entry.path)).toEqual(Object.keys(names));
  });
  it("shows sizes, images and texts", () => {
    expect([0, 1023, 1536, 3_000_000, 5 * 1024 ** 4].map(sizeWords)).toEqual(["0 B", "1023 B", "1.5 KiB", "2.9 MiB", "5.0 TiB"]);
    expect([imageType("a/b.PNG"), imageType("png"), imageType("a.html")]).toEqual(["image/png", "", ""]);
    const cut = new TextEncoder().encode("aé").slice(0, 2);
    expect([textOf(cut, false), textOf(cut, true), textOf(new Uint8Array([65, 0]), true)]).toEqual(["a", null, null]);
  });
});

describe("the input of a file", () => {
  const text = "# mine\nresources: {tasks: 1}\nsteps:\n  - run:\n      command: |\n        echo $A # b\n";
  it("is written and taken out, and all else stays", () => {
    const changed = withInput(text, NUMBER)!;
    expect(changed).toContain("# mine\n");
    expect(changed).toContain("        echo $A # b\n");
    expect(changed).toContain("output:\n  grid: {}");
    expect(sentInput(changed)).toBe(NUMBER);
    expect(sentInput(withInput(changed, NUMBER.replace("0", "f"))!)).toBe(NUMBER.replace("0", "f"));
    expect(sentInput(withoutInput(changed))).toBe("");
    expect(withInput(`${text}output: {s3: {region: x}}\n`, NUMBER)).toContain("s3: { region: x }");
  });
  it("is not replaced if it is another one", () => {
    const other = `${text}input: {http: {url: "https://data.example/a"}}\n`;
    expect([otherInput(other), withInput(other, NUMBER), otherInput(`${text}input: {grid: {}}\n`)]).toEqual([true, null, false]);
    expect([withInput("a: [", NUMBER), withInput("- a\n", NUMBER), sentInput("a: [")]).toEqual([null, null, ""]);
  });
});

describe("sending", () => {
  afterEach(() => vi.unstubAllGlobals());

  it("sends each missing part with its checksum, again if the services are busy, and nothing that is there", async () => {
    const keys = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign"]) as CryptoKeyPair;
    const session = { address: "0x1", chainId: 1, contract: `0x${"1".repeat(40)}`, header: "", notAfter: 0, keys } as Session;
    const content = new Uint8Array(4 * 1024 * 1024 + 100);
    for (let at = 0; at < content.length; at += 997) content[at] = at % 251;
    const parts = new Map<string, Uint8Array>();
    let refusals = 1;
    vi.useFakeTimers({ shouldAdvanceTime: true, advanceTimeDelta: 500 });
    vi.stubGlobal("fetch", async (path: string, init: RequestInit = {}) => {
      if (path === "v1/files") return Response.json({ id: NUMBER, address: "/v1/transfers/x", finished: false });
      const what = path.replace("v1/transfers/x/", "");
      if (init.method !== "PUT") {
        const missing = [0, 1].filter((at) => !parts.has(`parts/${at}`));
        return Response.json({ missing, left: missing.length });
      }
      const body = new Uint8Array(init.body as Uint8Array);
      expect((init.headers as Record<string, string>)["X-Grid-Checksum"]).toBe(hex(sha256(body)));
      if (what === "parts/1" && refusals-- > 0) return Response.json({ error: "busy" }, { status: 503 });
      parts.set(what, body);
      return new Response(null, { status: 204 });
    });
    const chosen = [{ path: "b/second", file: new File([content.slice(10)], "second") }, { path: "a", file: new File([content.slice(0, 10)], "a") }];
    const told: string[] = [];
    expect(await send(session, chosen, (step) => told.push(step))).toBe(NUMBER);
    vi.useRealTimers();
    expect(parseManifest(new TextDecoder().decode(parts.get("manifest")))).toEqual([
      { path: "a", size: 10, sha256: hex(sha256(content.slice(0, 10))) }, { path: "b/second", size: content.length - 10, sha256: hex(sha256(content.slice(10))) },
    ]);
    expect(hex(sha256.create().update(parts.get("parts/0")!).update(parts.get("parts/1")!).digest())).toBe(hex(sha256(content)));
    expect([...parts.keys()].at(-1)).toBe("finish");
    expect(new Set(told)).toEqual(new Set(["Reading", "Sending"]));
  }, 60_000);
});
