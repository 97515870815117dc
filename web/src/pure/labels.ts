/** Whether labels satisfy conditions, with the scheduler's own rule (`deepgrid.scheduling.fit`). */
import type { Label } from "../chain/clusters";
import type { Condition } from "./conditions";

interface Decimal {
  digits: bigint;
  exponent: number;
}

const DECIMAL = /^([+-]?)(\d+)?(?:\.(\d*))?(?:[eE]([+-]?\d{1,4}))?$/;

function decimalOf(text: string): Decimal | null {
  const found = DECIMAL.exec(text.trim());
  if (!found || (!found[2] && !found[3])) return null;
  const [, sign, whole = "", part = "", exponent = "0"] = found;
  const digits = BigInt(whole + part) * (sign === "-" ? -1n : 1n);
  return { digits, exponent: Number(exponent) - part.length };
}

function order(a: bigint | number, b: bigint | number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function compareNumbers(a: Decimal, b: Decimal): number {
  const least = Math.min(a.exponent, b.exponent);
  const scaled = ({ digits, exponent }: Decimal) => digits * 10n ** BigInt(exponent - least);
  return order(scaled(a), scaled(b));
}

/** By code points, as Python compares texts. */
function compareTexts(a: string, b: string): number {
  const [left, right] = [[...a], [...b]];
  for (let at = 0; at < Math.min(left.length, right.length); at += 1) {
    const found = order(left[at]!.codePointAt(0)!, right[at]!.codePointAt(0)!);
    if (found) return found;
  }
  return order(left.length, right.length);
}

const HOLDS: Record<string, (found: number) => boolean> = {
  "<": (found) => found < 0,
  "<=": (found) => found <= 0,
  "==": (found) => found === 0,
  ">=": (found) => found >= 0,
  ">": (found) => found > 0,
  "!=": (found) => found !== 0,
};

/** Whether `offered op wanted` holds: as numbers when both are, else as texts. An unknown operator means equality. */
export function compare(offered: string, op: string, wanted: string): boolean {
  if (op === "in" || op === ":in:") return offered.includes(wanted);
  const [left, right] = [decimalOf(offered), decimalOf(wanted)];
  const found = left && right ? compareNumbers(left, right) : compareTexts(offered, wanted);
  return (HOLDS[op] ?? HOLDS["=="]!)(found);
}

/** The conditions that these labels do not satisfy. A missing label satisfies none. */
export function unmet(labels: Label[], conditions: Condition[]): Condition[] {
  return conditions.filter(({ key, op, value }) => !labels.some((label) => label.key === key && compare(label.value, op, value)));
}
