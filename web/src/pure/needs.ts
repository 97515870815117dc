/** What a job needs beside CPUs, memory and GPUs, from its definition. See deepgrid/workflow/needs.py. */
import features from "../generated/features.json";
import { type Condition, type LabelPair, unmet, written } from "./labels";

const FEATURES: Record<string, string | undefined> = features;

interface Place {
  http?: unknown;
  s3?: unknown;
}

interface Run {
  container?: { apptainer?: boolean; deepsquareHosted?: boolean };
  network?: string;
  customNetworkInterfaces?: { wireguard?: unknown; vnet?: unknown }[];
}

const has = (key: string): Condition => ({ key, op: "==", value: "true" });
const ANY_RUNTIME: Condition = { key: "containers", op: "!=", value: "none" };
const APPTAINER: Condition = { key: "containers", op: "in", value: "apptainer" };
const PRIVATE_FILES: Condition = { key: "storage.private", op: "!=", value: "none" };

/** The conditions that a cluster must meet for a definition in canonical form, ordered by key. */
export function needsOf(definition: string): Condition[] {
  const job = JSON.parse(definition) as { input?: Place; output?: Place; virtualNetworks?: unknown[]; privateFiles?: unknown; steps: unknown };
  const found = new Map<string, Condition>();
  const add = (one: Condition) => found.get(one.key)?.op === APPTAINER.op || found.set(one.key, one);
  for (const place of [job.input, job.output]) if (place?.s3 && !place.http) add(has("storage.s3"));
  if (job.privateFiles) add(PRIVATE_FILES);
  if (job.virtualNetworks?.length) [has("network.pasta"), has("network.wireguard")].forEach(add);
  for (const { container, network, customNetworkInterfaces = [] } of runsIn(job.steps)) {
    if (container) add(container.apptainer || container.deepsquareHosted ? APPTAINER : ANY_RUNTIME);
    if (network === "pasta" || network === "slirp4netns") add(has(`network.${network}`));
    if (customNetworkInterfaces.some((one) => one.wireguard ?? one.vnet)) add(has("network.wireguard"));
  }
  return [...found.values()].sort((one, other) => (one.key < other.key ? -1 : 1));
}

/** All runs inside a part of a definition. Nothing but a step has a field of this name. */
function runsIn(part: unknown): Run[] {
  if (Array.isArray(part)) return part.flatMap(runsIn);
  if (typeof part !== "object" || part === null) return [];
  return Object.entries(part).flatMap(([name, inner]) => (name === "run" ? [inner as Run] : runsIn(inner)));
}

/** Whether a condition is one that follows from a file, and is added again by `needsOf`. */
export const isAdded = ({ key, op, value }: Condition): boolean =>
  (key in FEATURES && op === "==" && value === "true") || [ANY_RUNTIME, APPTAINER, PRIVATE_FILES].some((one) => one.key === key && one.op === op && one.value === value);

/** A condition as a customer writes it, and after a feature what it is. */
export const explained = (one: Condition): string => {
  const words = FEATURES[one.key];
  return words ? `${written(one)} (${words})` : written(one);
};

/** The condition that a cluster has all GPUs of a job in the one type that it names by `gpu.TYPE`. See gpu_types.py. */
function enoughOfType(conditions: Condition[], gpus: number): Condition[] {
  const keys = new Set(conditions.filter(({ key, op }) => key.startsWith("gpu.") && ["==", "=", ">=", ">"].includes(op)).map(({ key }) => key));
  const [key] = keys;
  const isAsked = conditions.some((one) => one.key === key && one.op === ">=" && one.value === String(gpus));
  return gpus && key && keys.size === 1 && !isAsked ? [{ key, op: ">=", value: String(gpus) }] : [];
}

/** Which conditions the labels do not satisfy, and which values they have instead, for a job with this many GPUs; empty when all hold. */
export function mismatch(labels: LabelPair[], conditions: Condition[], gpus: number): string {
  const failed = unmet(labels, [...conditions, ...enoughOfType(conditions, gpus)]).map((one) => {
    const values = FEATURES[one.key] ? [] : labels.filter((label) => label.key === one.key).map((label) => label.value);
    return { one, values };
  });
  const absent = failed.filter(({ values }) => !values.length).map(({ one }) => explained(one));
  const other = failed.filter(({ values }) => values.length).map(({ one, values }) => `has ${one.key}=${values.join(" and ")}, not ${written(one)}`);
  return [...(absent.length ? [`has no label ${absent.join(", ")}`] : []), ...other].join("; ");
}
