// Types queries into the search of a built site: the site's own index in the theme's own engine, without a browser.
// Reads a JSON list of queries, and prints a JSON object with the addresses of the hits of each, the best first.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { runInThisContext } from "node:vm";

const site = process.argv[2];
const workers = join(site, "assets/javascripts/workers");
const [engine] = readdirSync(workers).filter((name) => name.endsWith(".min.js"));
let receive, answer;
globalThis.self = globalThis;
globalThis.addEventListener = (_event, listener) => (receive = listener);
globalThis.postMessage = (message) => answer(message.data);
runInThisContext(readFileSync(join(workers, engine), "utf8"));

const SETUP = 0, QUERY = 2; // the messages of the theme
const send = (type, data) => new Promise((resolve) => {
  answer = resolve;
  receive({ data: { type, data } });
});

await send(SETUP, { ...JSON.parse(readFileSync(join(site, "search/search_index.json"), "utf8")), options: {} });
const found = {};
for (const query of JSON.parse(readFileSync(0, "utf8"))) {
  const { items } = await send(QUERY, query);
  found[query] = items.map(([best]) => best.location);
}
process.stdout.write(JSON.stringify(found));
