// Checks the packed sizes of a build against their limits, in kB of gzip: shell, chain and wallet, editor, all.
import { readdirSync, statSync } from "node:fs";
import { basename, join } from "node:path";

const LIMITS = { shell: 60, chain: 130, editor: 200, all: 450 };
const folder = process.argv[2];
const sizes = { shell: 0, chain: 0, editor: 0, all: 0 };
for (const name of readdirSync(folder, { recursive: true })) {
  if (!name.endsWith(".gz")) continue;
  const kind = basename(name).match(/^(chain|editor)-/)?.[1] ?? "shell";
  const kilobytes = statSync(join(folder, name)).size / 1000;
  sizes[kind] += kilobytes;
  sizes.all += kilobytes;
}
let failed = false;
for (const [kind, limit] of Object.entries(LIMITS)) {
  const over = sizes[kind] > limit;
  failed ||= over;
  console.log(`${kind.padEnd(8)}${sizes[kind].toFixed(1).padStart(8)} kB of ${limit}${over ? "  TOO LARGE" : ""}`);
}
process.exit(failed ? 1 : 0);
