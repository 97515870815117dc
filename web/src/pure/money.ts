/** Amounts are BigInt of wei from chain to screen. 1 credit = 10^18 wei. */

export const CREDIT = 10n ** 18n;

/** Exact credits: `12.5`, `0.000000000000000001`. */
export function exact(wei: bigint): string {
  const sign = wei < 0n ? "-" : "";
  const size = wei < 0n ? -wei : wei;
  const rest = (size % CREDIT).toString().padStart(18, "0").replace(/0+$/, "");
  return `${sign}${size / CREDIT}${rest ? `.${rest}` : ""}`;
}

/** Credits for reading: at most `places` decimals, rounded down, with a mark when digits were dropped. */
export function short(wei: bigint, places = 3): string {
  const unit = 10n ** BigInt(18 - places);
  const text = exact((wei / unit) * unit);
  return wei % unit === 0n ? text : `≈${text}`;
}

/** Credits that still change, for reading: `~3.84`. */
export const about = (wei: bigint): string => `~${short(wei).replace("≈", "")}`;

/** Wei of a text such as `12.5`; null if it is not an amount. */
export function parse(text: string): bigint | null {
  const found = /^\s*(\d{1,60})(?:\.(\d{1,18}))?\s*$/.exec(text);
  if (!found) return null;
  return BigInt(found[1]!) * CREDIT + BigInt((found[2] ?? "").padEnd(18, "0"));
}

/** The amounts of a column with equally many decimals, so that their points stand below each other. Other texts stay. */
export function linedUp(column: string[]): string[] {
  const decimals = (text: string) => /^≈?-?\d+(?:\.(\d+))?$/.exec(text)?.[1]?.length ?? 0;
  const most = Math.max(0, ...column.map(decimals));
  return column.map((text) => {
    const missing = most - decimals(text);
    if (!missing || !/^≈?-?\d/.test(text)) return text;
    return `${text}${text.includes(".") ? "" : "."}${"0".repeat(missing)}`;
  });
}
