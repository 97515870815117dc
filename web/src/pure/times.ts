/** Times as customers write them: `4h`, `90m`, `1d`, `1h30m`, `01:30:00`. */

const UNITS: Record<string, number> = { d: 86_400, h: 3600, m: 60, s: 1 };

/** Whole seconds of a time, rounded up; null if it is none. Counts as the contract keeps them are whole. */
export function secondsOf(text: string): number | null {
  const bare = text.trim().toLowerCase();
  const clock = /^(\d{1,5}):([0-5]\d):([0-5]\d)$/.exec(bare);
  if (clock) return Number(clock[1]) * 3600 + Number(clock[2]) * 60 + Number(clock[3]);
  if (!/^(\d{1,9}(\.\d+)?[dhms]\s*)+$/.test(bare)) return null;
  const sum = [...bare.matchAll(/([\d.]+)([dhms])/g)].reduce((all, [, count, unit]) => all + Number(count) * UNITS[unit!]!, 0);
  return Math.ceil(Number(sum.toFixed(6))); // 1.1h is 66 minutes: the sum has rounding errors
}

/** Whole minutes of a time, rounded up: partial minutes are rounded up. Null if it is no time, 0 minutes or above a year. */
export function minutesOf(text: string): number | null {
  const seconds = secondsOf(text);
  const minutes = seconds === null ? 0 : Math.ceil(seconds / 60);
  return minutes > 0 && minutes <= 525_600 ? minutes : null;
}

/** Minutes in the largest unit that fits: `4 hours`. */
export function timeWords(minutes: number): string {
  const [name, size] = ([["day", 1440], ["hour", 60], ["minute", 1]] as [string, number][]).find(([, size]) => minutes % size === 0)!;
  const count = minutes / size;
  return `${count} ${name}${count === 1 ? "" : "s"}`;
}
