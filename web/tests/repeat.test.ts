import { describe, expect, it } from "vitest";
import { minutesOf, secondsOf, timeWords } from "../src/pure/times";
import { tagLines, tagsOf } from "../src/pure/tags";
import { fileOf } from "../src/wallet/kept";

describe("times", () => {
  it("are written as for dps", () => {
    expect([minutesOf("4h"), minutesOf("90m"), minutesOf("1d"), minutesOf("1h30m"), minutesOf("01:30:00"), minutesOf("61s")]).toEqual([240, 90, 1440, 90, 90, 2]);
    expect([minutesOf(""), minutesOf("4"), minutesOf("0m"), minutesOf("4 weeks"), minutesOf("366d"), secondsOf("-1h")]).toEqual([null, null, null, null, null, null]);
    expect([secondsOf("10.51m"), secondsOf("0.5s"), secondsOf("0s"), minutesOf("1.1h"), minutesOf("1.1m"), secondsOf("17280000s")]).toEqual([631, 1, 0, 66, 2, 17_280_000]);
    expect([timeWords(240), timeWords(60), timeWords(90), timeWords(2880)]).toEqual(["4 hours", "1 hour", "90 minutes", "2 days"]);
  });
});

describe("kept files", () => {
  const definition = JSON.stringify({
    env: [{ key: "HF_TOKEN", value: "***" }, { key: "N", value: "0" }],
    input: { http: { url: "https://***@data.example/a.zip?***" } },
    output: { s3: { secretAccessKey: "***", region: "x" } },
    resources: { gpus: 0, tasks: 1 },
    steps: [{ run: { command: "echo\necho '***'\n" } }],
  });
  it("are YAML in the order of the language, with empty secrets", () => {
    const text = fileOf(definition);
    expect(text.startsWith("resources:\n  tasks: 1\n  gpus: 0\n")).toBe(true);
    expect(text).toContain('key: HF_TOKEN\n    value: ""');
    expect(text).toContain('url: ""');
    expect(text).toContain('secretAccessKey: ""');
    expect(text).toContain("command: |\n        echo\n        echo '***'\n");
  });
});

describe("tags", () => {
  it("are read and written", () => {
    expect(tagsOf(" project = wing\n\nbest\n")).toEqual({ project: "wing", best: "" });
    expect(tagLines({ project: "wing", best: "" })).toEqual(["project=wing", "best"]);
    expect(["a/b", "=x", "wing body", "a=b\tc", "a=\u00a0b\u00a0c", `a=${"x".repeat(81)}`].map(tagsOf)).toEqual(Array(6).fill(null));
    expect(tagsOf(Array.from({ length: 17 }, (_, at) => `t${at}`).join("\n"))).toBeNull();
  });
  it("of dps come back as they were", () => {
    const tags = { project: "wing body", sizes: "1,2", who: "Zoë, ETH", sum: "a=b, c = d", quoted: `"x" 'y'`, long: "𝛼".repeat(80) };
    expect(tagsOf(tagLines(tags).join("\n"))).toEqual(tags);
  });
});
