/** Conditions on labels, as customers write them, with the scheduler's rule. See deepgrid/scheduling/fit.py. */

export interface LabelPair {
  key: string;
  value: string;
}

export interface Condition extends LabelPair {
  /** One of `< <= == >= > != in`. */
  op: string;
}

const AFFINITY = /^([^<>=!:]+)(==|<=|>=|<|>|!=|=|:in:)([^<>=!:]+)$/;
const OPERATORS: Record<string, string> = { "=": "==", ":in:": "in" };

/** The label in a text such as `os=linux`; null if it is none, or a condition. */
export function parseUse(text: string): LabelPair | null {
  if (/^[^=]*[<>!:]|^[^=]*=\s*[=<>]/.test(text)) return null;
  const at = text.indexOf("=");
  const [key, value] = [text.slice(0, Math.max(at, 0)).trim(), text.slice(at + 1).trim()];
  return at > 0 && key && value ? { key, value } : null;
}

/** The condition in a text such as `mem>=4000`; null if it is none, or if an order compares with a unit. */
export function parseAffinity(text: string): Condition | null {
  const found = AFFINITY.exec(text);
  const [key, value] = [found?.[1]!.trim(), found?.[3]!.trim()];
  const isUnit = /^[0-9][0-9.]* ?[A-Za-z/%]+$/.test(value ?? "") && /^[<>]=?$/.test(found?.[2] ?? "");
  return found && key && value && !isUnit ? { key, op: OPERATORS[found[2]!] ?? found[2]!, value } : null;
}

/** A condition as a customer writes it. */
export const written = ({ key, op, value }: Condition): string => `${key}${op}${value}`;

/** The conditions that the labels do not satisfy. A missing label satisfies none; of equal keys any may match. */
export function unmet(labels: LabelPair[], conditions: Condition[]): Condition[] {
  return conditions.filter(
    (one) => !labels.some((label) => label.key === one.key && compare(label.value, one.op, one.value)),
  );
}

/** Whether `offered op wanted` holds: as numbers when both are, else as texts. A number and a text have no order. */
export function compare(offered: string, op: string, wanted: string): boolean {
  if (op === "in" || op === ":in:") return offered.includes(wanted);
  const [left, right] = [decimal(offered), decimal(wanted)];
  if (!left !== !right && /^[<>]=?$/.test(op)) return false;
  const order = left && right ? numberOrder(left, right) : textOrder(offered, wanted);
  switch (op) {
    case "<":
      return order < 0;
    case "<=":
      return order <= 0;
    case ">":
      return order > 0;
    case ">=":
      return order >= 0;
    case "!=":
      return order !== 0;
    default:
      return order === 0;
  }
}

interface Decimal {
  sign: number;
  /** Digits without leading zeros; empty for zero. */
  digits: string;
  /** Power of ten of the last digit. */
  exponent: number;
}

const DECIMAL = /^([-+]?)(\d+\.?\d*|\.\d+)(?:e([-+]?\d{1,15}))?$/i;

/** An exact decimal number; null for other text. */
function decimal(text: string): Decimal | null {
  const found = DECIMAL.exec(text.trim().replaceAll("_", ""));
  if (!found) return null;
  const [whole = "", part = ""] = found[2]!.split(".");
  const digits = (whole + part).replace(/^0+/, "");
  return { sign: digits ? (found[1] === "-" ? -1 : 1) : 0, digits, exponent: Number(found[3] ?? 0) - part.length };
}

function numberOrder(a: Decimal, b: Decimal): number {
  if (a.sign !== b.sign) return a.sign - b.sign;
  const size = a.digits.length + a.exponent - (b.digits.length + b.exponent);
  if (size !== 0) return a.sign * size;
  const width = Math.max(a.digits.length, b.digits.length);
  return a.sign * textOrder(a.digits.padEnd(width, "0"), b.digits.padEnd(width, "0"));
}

/** The order of code points, as Python compares texts. */
function textOrder(a: string, b: string): number {
  const [left, right] = [[...a], [...b]];
  for (let at = 0; at < Math.min(left.length, right.length); at += 1) {
    const order = left[at]!.codePointAt(0)! - right[at]!.codePointAt(0)!;
    if (order !== 0) return order;
  }
  return left.length - right.length;
}
