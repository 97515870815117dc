/** Searches a log beside the page, so that neither a long log nor a slow pattern stops it. */
import { Finder, type Wanted } from "./find";

const blocks: Uint8Array[] = [];

self.onmessage = (event: MessageEvent<{ block?: Uint8Array; wanted?: Wanted; id?: number }>) => {
  const { block, wanted, id } = event.data;
  if (block) blocks.push(block);
  if (!wanted) return;
  try {
    const finder = new Finder(wanted);
    blocks.forEach((bytes) => finder.feed(bytes));
    finder.feed(new Uint8Array(0), true);
    self.postMessage({ id, hits: Uint32Array.from(finder.hits), count: finder.count });
  } catch {
    self.postMessage({ id, fault: "This is not a regular expression." });
  }
};
