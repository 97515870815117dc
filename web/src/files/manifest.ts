/** The list of files that the grid keeps together, as `deepgrid/services/files/manifest.py` defines it. Pure. */

export interface FileEntry {
  path: string;
  /** In bytes. */
  size: number;
  /** In hexadecimal digits. */
  sha256: string;
}

const ENTRY = /^([0-9]{1,15}) ([0-7]{1,4}) ([0-9a-f]{64}) [ *](.+)$/s;

export class BadList extends Error {}

/** Read a list: one `SIZE MODE SHA256  PATH` per file, each ended by NUL. Throws BadList. */
export function parseManifest(text: string): FileEntry[] {
  const lines = text.split("\0");
  if (lines.pop() !== "") throw new BadList("The list of files is cut off.");
  return lines.map((line) => {
    const found = ENTRY.exec(line);
    if (!found) throw new BadList("The list of files is not one.");
    return { path: found[4]!.replace(/^\.\//, ""), size: Number(found[1]), sha256: found[3]! };
  });
}

/**
 * The text of a list as the grid reads it: bytes of a name that are not UTF-8 become `%FF`, so that two names never
 * become one.
 */
export function listText(bytes: Uint8Array): string {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const decoded = (part: Uint8Array) => {
    try {
      return decoder.decode(part);
    } catch {
      return null;
    }
  };
  const whole = decoded(bytes);
  if (whole !== null) return whole;
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const first = bytes[at]!;
    const length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    const character = decoded(bytes.subarray(at, at + length));
    text += character ?? `%${first.toString(16).toUpperCase().padStart(2, "0")}`;
    at += character === null ? 1 : length;
  }
  return text;
}

/** Write a list. */
export const manifestOf = (entries: readonly FileEntry[]): string =>
  entries.map(({ path, size, sha256 }) => `${size} 644 ${sha256}  ${path}\0`).join("");

/** A size as people read it: `12 B`, `3.4 MB`, in powers of 1024 as `dps job files` shows them. */
export function sizeWords(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let [size, at] = [bytes, 0];
  for (; size >= 1024 && at < units.length - 1; at += 1) size /= 1024;
  return `${at && size < 10 ? size.toFixed(1) : Math.round(size)} ${units[at]}`;
}

const IMAGES: Record<string, string> = {
  png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp", svg: "image/svg+xml",
};

/** The type of an image by the name of its file; empty for other files. */
export const imageType = (path: string): string => IMAGES[/\.([a-z]+)$/i.exec(path)?.[1]?.toLowerCase() ?? ""] ?? "";

/** The text of a file whose beginning these bytes are; null if they are no text. */
export function textOf(bytes: Uint8Array, isWhole: boolean): string | null {
  if (bytes.includes(0)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: !isWhole });
  } catch {
    return null;
  }
}
