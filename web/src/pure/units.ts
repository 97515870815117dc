/** Numbers with their units for people. */

const sum = (figures: number[]) => figures.reduce((total, figure) => total + figure, 0);

/** Memory in MB: `512 MB`, `64 GB`. */
export function memory(mb: number): string {
  return mb < 10_000 ? `${mb} MB` : `${Math.round(mb / 1000)} GB`;
}

/** Minutes: `45 min`, `3 h`, `2 days 4 h`. */
export function minutes(count: bigint): string {
  if (count < 60n) return `${count} min`;
  const [hours, rest] = [count / 60n, count % 60n];
  if (hours < 24n) return rest ? `${hours} h ${rest} min` : `${hours} h`;
  const [days, left] = [hours / 24n, hours % 24n];
  const word = days === 1n ? "day" : "days";
  return left ? `${days} ${word} ${left} h` : `${days} ${word}`;
}

/** An age or a duration of seconds: `5 s`, `3 min`, `2 h`, `4 days`. */
export function span(seconds: number): string {
  if (seconds < 60) return `${Math.max(0, Math.floor(seconds))} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  const days = Math.floor(seconds / 86_400);
  return days === 1 ? "1 day" : `${days} days`;
}

/** `1 job`, `2 jobs`. */
export function count(number: number | bigint, one: string, many = `${one}s`): string {
  return `${number} ${BigInt(number) === 1n ? one : many}`;
}

/** Date and time of unix seconds, in the user's own zone. */
export function when(seconds: number | bigint): string {
  return new Date(Number(seconds) * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

export { sum };
