// Writes a .gz copy beside each text file of a build, the same bytes on every machine.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const folder = process.argv[2];
for (const name of readdirSync(folder, { recursive: true })) {
  if (!/\.(js|css|html|svg|json)$/.test(name)) continue;
  const packed = gzipSync(readFileSync(join(folder, name)), { level: 9 });
  packed[9] = 255; // the system that packed it: unknown
  writeFileSync(join(folder, `${name}.gz`), packed);
}
