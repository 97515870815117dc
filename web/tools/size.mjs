// Checks the packed sizes of a build against their limits, in kB of gzip: shell, chain and wallet, editor, all.
import { readdirSync, statSync } from "node:fs";
import { basename, join } from "node:path";

const LIMITS = { shell: 60, chain: 130, editor: 200, all: 450 };
// Files of the first page are the shell; those of a page are loaded when it is opened, and count in all.
const KINDS = { index: "shell", chain: "chain", editor: "editor", code: "editor" };
const folder = process.argv[2];
const sizes = { shell: 0, chain: 0, editor: 0, pages: 0, all: 0 };
for (const name of readdirSync(folder, { recursive: true })) {
  if (!name.endsWith(".gz")) continue;
  const kind = KINDS[basename(name).match(/^[a-z]+(?=[-.])/)?.[0]] ?? "pages";
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
