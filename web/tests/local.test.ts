import { beforeEach, describe, expect, test, vi } from "vitest";
import { keep } from "../src/wallet/local";

const ROOM = 100; // of the browser's storage, in characters

/** A storage that is full at some time, as a browser's. */
function storage(): Storage {
  return Object.defineProperties({}, {
    getItem: { value(name: string) { return (this as Record<string, string>)[name] ?? null; } },
    removeItem: { value(name: string) { delete (this as Record<string, string>)[name]; } },
    setItem: {
      value(name: string, text: string) {
        const others = Object.entries(this as Record<string, string>).filter(([other]) => other !== name);
        if (others.reduce((sum, [other, one]) => sum + other.length + one.length, name.length + text.length) > ROOM) throw new Error("full");
        (this as Record<string, string>)[name] = text;
      },
    },
  }) as Storage;
}

describe("what is kept on this device", () => {
  const asked: unknown[] = [];
  let answers: (() => Promise<Response>)[];

  beforeEach(() => {
    asked.length = 0;
    answers = [];
    vi.stubGlobal("location", { pathname: "/" });
    vi.stubGlobal("localStorage", storage());
    vi.stubGlobal("fetch", (_path: string, { body }: { body: string }) => {
      asked.push(JSON.parse(body).changes);
      return (answers.shift() ?? (() => Promise.resolve(new Response(null, { status: 204 }))))();
    });
  });
  const openSession = () => localStorage.setItem("signer /", "secret");

  test("stays in the browser without `dps web`, at once", () => {
    void keep("theme", "dark");
    expect(localStorage.getItem("theme")).toBe("dark");
    expect(asked).toEqual([]);
  });
  test.each([401, 413, 507])("is not kept at all if `dps web` answers %i, and can be tried again", async (status) => {
    openSession();
    answers.push(() => Promise.resolve(Response.json({ error: "Not now." }, { status })));
    await expect(keep("submission", "x")).rejects.toThrow("Not now.");
    expect(localStorage.getItem("submission")).toBeNull();
    await keep("submission", "x");
    expect(localStorage.getItem("submission")).toBe("x");
    expect(asked).toEqual([{ submission: "x" }, { submission: "x" }]);
  });
  test("is not kept if `dps web` is away", async () => {
    openSession();
    answers.push(() => Promise.reject(new TypeError("no connection")));
    await expect(keep("submission", "x")).rejects.toThrow("`dps web` does not answer.");
  });
  test("changes in the order of the calls", async () => {
    openSession();
    let release = () => {};
    answers.push(() => new Promise((resolve) => (release = () => resolve(new Response(null, { status: 204 })))));
    const both = [keep("submission", "x"), keep("submission", null)];
    await vi.waitFor(() => expect(asked).toEqual([{ submission: "x" }]));
    release();
    await Promise.all(both);
    expect(asked).toEqual([{ submission: "x" }, { submission: null }]);
    expect(localStorage.getItem("submission")).toBeNull();
  });
  test("takes the place of files of earlier jobs if the browser is full", async () => {
    for (const name of ["file:1", "file:2", "file:3"]) await keep(name, "x".repeat(24));
    await keep("submission", "x".repeat(30));
    expect(localStorage.getItem("submission")).not.toBeNull();
    expect(Object.keys(localStorage).filter((name) => name.startsWith("file:"))).toHaveLength(2);
    await expect(keep("draft", "x".repeat(200))).rejects.toThrow("full");
  });
});
