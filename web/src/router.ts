/** Routes in the fragment of the address, so that the pages work on any static host and under any prefix. */
import { readable } from "svelte/store";

export type PageName = "market" | "cluster" | "new" | "jobs" | "job" | "wallet" | "grid" | "unknown";

export interface Route {
  name: PageName;
  params: Record<string, string>;
  query: URLSearchParams;
}

const ROUTES: [PageName, RegExp][] = [
  ["market", /^\/?$/],
  ["cluster", /^\/clusters\/(?<address>0x[0-9a-fA-F]{40})$/],
  ["new", /^\/new$/],
  ["jobs", /^\/jobs$/],
  ["job", /^\/jobs\/(?<id>[0-9]{1,18})$/],
  ["wallet", /^\/wallet$/],
  ["grid", /^\/grid$/],
];

/** The route of a fragment such as `#/jobs/7?tab=log`. */
export function routeOf(fragment: string): Route {
  const [path = "", query = ""] = fragment.replace(/^#/, "").split("?", 2);
  for (const [name, pattern] of ROUTES) {
    const found = pattern.exec(path);
    if (found) return { name, params: { ...found.groups }, query: new URLSearchParams(query) };
  }
  return { name: "unknown", params: {}, query: new URLSearchParams() };
}

export const route = readable<Route>(routeOf(location.hash), (set) => {
  const changed = () => set(routeOf(location.hash));
  changed(); // the address may have changed since this module was loaded
  addEventListener("hashchange", changed);
  return () => removeEventListener("hashchange", changed);
});

/** Go to a fragment such as `/jobs/7`. */
export function go(path: string): void {
  location.hash = path;
}

/** Change the query of the present page without a new entry in the history. */
export function setQuery(changes: Record<string, string>): void {
  const [path = "", query = ""] = location.hash.replace(/^#/, "").split("?", 2);
  const next = new URLSearchParams(query);
  for (const [key, value] of Object.entries(changes)) {
    if (value) next.set(key, value);
    else next.delete(key);
  }
  const text = next.toString();
  history.replaceState(null, "", `#${path}${text ? `?${text}` : ""}`);
  dispatchEvent(new HashChangeEvent("hashchange"));
}
