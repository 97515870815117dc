/** Tags as customers write them, one per line: `project=wing body`. */

const TAG_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$/;
const UNPRINTABLE = /(?! )[\p{C}\p{Z}]/u;
const [MOST_TAGS, LONGEST_VALUE] = [16, 80];

/** Tags in a text with one per line, such as `project=wing body`; null if one is not right. Values may have any character of a line. */
export function tagsOf(text: string): Record<string, string> | null {
  const tags: Record<string, string> = {};
  for (const line of text.split("\n").filter((one) => one.trim())) {
    const [name = "", ...rest] = line.split("=");
    const value = rest.join("=").trim();
    if (!TAG_NAME.test(name.trim()) || [...value].length > LONGEST_VALUE || UNPRINTABLE.test(value)) return null;
    tags[name.trim()] = value;
  }
  return Object.keys(tags).length <= MOST_TAGS ? tags : null;
}

/** Tags as a customer writes them, one text each. */
export const tagLines = (tags: Record<string, string>): string[] =>
  Object.entries(tags).map(([name, value]) => (value ? `${name}=${value}` : name));
