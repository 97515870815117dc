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
  return { name, text, title: firstSentence(text) || name };
}

/** The first sentence of the comment at the top of a file; it may go over several lines. */
function firstSentence(text: string): string {
  const lines = text.split("\n");
  const end = lines.findIndex((line) => !line.startsWith("#"));
  const comment = lines.slice(0, end < 0 ? lines.length : end).map((line) => line.replace(/^#\s*/, "")).join(" ").trim();
  return /^.*?[.:](?=\s|$)/.exec(comment)?.[0].replace(/:$/, ".") ?? comment;
}

/** The examples in which all of these words occur: in the name, the description or the file. */
export function found(words: string): [string, Example[]][] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const has = ({ name, text }: Example) => wanted.every((word) => `${name} ${text}`.toLowerCase().includes(word));
  return gallery.map(([group, examples]): [string, Example[]] => [group, examples.filter(has)]).filter(([, examples]) => examples.length > 0);
}

export const gallery: [string, Example[]][] = GROUPS.map(([group, names]) => [
  group,
  names.map(example).filter((one) => one !== null),
]);
