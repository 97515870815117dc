/** Example workflows that run anywhere, grouped, each with its first comment. */
import examples from "../generated/examples.json";

export interface Example {
  name: string;
  title: string;
  text: string;
}

const GROUPS: [string, string[]][] = [
  ["Basics", ["hello-world", "sleep", "environment", "exit-code", "condition", "catch", "finally", "retry", "depends-on", "shells", "work-dir"]],
  ["Parallel", ["tasks", "two-nodes", "each-node", "for-range", "for-items", "for-parallel", "for-nested", "groups", "launch-server", "launch-kept"]],
  ["Containers", ["container", "container-mpi", "container-home", "container-entrypoint", "container-read-only", "user-mapping"]],
  ["Data", ["input-http", "output-http", "s3", "storage"]],
  ["Networks", ["network-own", "network-virtual", "network-dns", "network-wireguard", "network-bore"]],
  ["Modules", ["module", "module-go"]],
];

/** The first example that a new user sees. */
export const FIRST = "hello-world";

export function example(name: string): Example | null {
  const text = (examples as Record<string, string>)[name];
  if (text === undefined) return null;
  const comment = text.split("\n").filter((line) => line.startsWith("#") && !line.startsWith("# Try it"));
  return { name, text, title: comment[0]?.replace(/^#\s*/, "") ?? name };
}

export const gallery: [string, Example[]][] = GROUPS.map(([group, names]) => [
  group,
  names.map(example).filter((one) => one !== null),
]);
