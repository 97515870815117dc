/** The input types of the job service, and the conversion of a job's YAML file into a value of them. */
import { isMap, isScalar, isSeq, parseDocument, type Document, type Node, type ParsedNode } from "yaml";

/** A value of the type Job, as it is sent. */
export type JobInput = {
  resources: { tasks: number; cpusPerTask: number; memPerCpu: number; gpus: number };
  output?: { http?: { url: string } | null; s3?: object | null } | null;
  [field: string]: unknown;
};

/** Fields by type. `!` marks required ones, `[]` lists. */
const TYPES: Record<string, Record<string, string>> = {
  Job: {
    resources: "JobResources!", env: "[EnvVar]", enableLogging: "Boolean", input: "TransportData", inputMode: "Int",
    steps: "[Step]!", output: "TransportData", continuousOutputSync: "Boolean", virtualNetworks: "[VirtualNetwork]",
  },
  JobResources: { tasks: "Int!", cpusPerTask: "Int!", memPerCpu: "Int!", gpus: "Int!" },
  EnvVar: { key: "String!", value: "String!" },
  TransportData: { http: "HTTPData", s3: "S3Data" },
  HTTPData: { url: "String!" },
  S3Data: {
    region: "String!", bucketUrl: "String!", path: "String!", accessKeyId: "String!", secretAccessKey: "String!",
    endpointUrl: "String!", deleteSync: "Boolean",
  },
  VirtualNetwork: { name: "String!", gatewayAddress: "String!" },
  Step: {
    name: "String", dependsOn: "[String]", if: "String", steps: "[Step]", run: "StepRun", for: "StepFor",
    launch: "StepAsyncLaunch", use: "StepUse", catch: "[Step]", finally: "[Step]",
  },
  StepRun: {
    command: "String!", shell: "String", resources: "StepRunResources", container: "ContainerRun", network: "String",
    dns: "[String]", customNetworkInterfaces: "[NetworkInterface]", env: "[EnvVar]", mapUid: "Int", mapGid: "Int",
    workDir: "String", disableCpuBinding: "Boolean", mpi: "String",
  },
  StepRunResources: { tasks: "Int", cpusPerTask: "Int", memPerCpu: "Int", gpusPerTask: "Int" },
  ContainerRun: {
    image: "String!", mounts: "[Mount]", username: "String", password: "String", registry: "String",
    apptainer: "Boolean", deepsquareHosted: "Boolean", x11: "Boolean", mountHome: "Boolean", readOnlyRootFS: "Boolean",
  },
  Mount: { hostDir: "String!", containerDir: "String!", options: "String!" },
  NetworkInterface: { wireguard: "Wireguard", bore: "Bore", vnet: "VNet" },
  Wireguard: { address: "[String]", privateKey: "String!", peers: "[WireguardPeer]" },
  WireguardPeer: {
    publicKey: "String!", preSharedKey: "String", allowedIPs: "[String]", endpoint: "String", persistentKeepalive: "Int",
  },
  Bore: { address: "String", boreAddress: "String", port: "Int", targetPort: "Int!", secret: "String" },
  VNet: { name: "String!", address: "String!" },
  StepFor: { parallel: "Boolean!", items: "[String]", range: "ForRange", steps: "[Step]!" },
  ForRange: { begin: "Int!", end: "Int!", increment: "Int" },
  StepAsyncLaunch: { handleName: "String", signalOnParentStepExit: "Int", steps: "[Step]!" },
  StepUse: { source: "String!", args: "[EnvVar]", exportEnvAs: "String", steps: "[Step]" },
};

/** The job of a YAML file. Unquoted text in a field of text stays as it is written. Fields that begin with x- are left out. */
export function readJob(text: string): JobInput {
  const document = parseDocument(text);
  if (document.errors[0]) throw document.errors[0];
  return convert(document, document.contents, "Job") as JobInput;
}

/** The same job with null in each optional field that it does not use, at every depth. */
export function withNulls(value: unknown, type = "Job"): unknown {
  const { name, list } = parsed(type);
  const fields = TYPES[name];
  if (fields === undefined || value === null) return value;
  if (list) return (value as unknown[]).map((one) => withNulls(one, name));
  const given = value as Record<string, unknown>;
  return Object.fromEntries(
    Object.entries(fields)
      .filter(([field, inner]) => field in given || !parsed(inner).required)
      .map(([field, inner]) => [field, withNulls(given[field] ?? null, inner)]),
  );
}

/** Whether the value holds a field of this name at any depth. */
export function uses(value: unknown, field: string): boolean {
  if (Array.isArray(value)) return value.some((one) => uses(one, field));
  if (value === null || typeof value !== "object") return false;
  return Object.entries(value).some(([name, inner]) => name === field || uses(inner, field));
}

function parsed(type: string): { name: string; list: boolean; required: boolean } {
  const found = /^(\[?)(\w+)\]?(!?)$/.exec(type)!;
  return { name: found[2]!, list: found[1] !== "", required: found[3] !== "" };
}

function convert(document: Document<ParsedNode>, given: Node | null | undefined, type: string): unknown {
  const node = given ? resolved(document, given) : null;
  const { name, list } = parsed(type);
  if (isScalar(node) && node.value === null) return null;
  if (list) {
    if (!isSeq(node)) throw new TypeError(`there is no list of ${name}`);
    return node.items.map((item) => convert(document, item as Node, name));
  }
  if (!(name in TYPES)) {
    if (!isScalar(node)) throw new TypeError(`there is no ${name}`);
    return name === "String" && node.type === "PLAIN" ? node.source : node.value;
  }
  return Object.fromEntries(entries(document, node, name).map(([field, value]) => [field, convert(document, value, TYPES[name]![field]!)]));
}

/** Fields of a mapping with those of its merge keys. A field of its own wins. */
function entries(document: Document<ParsedNode>, node: Node | null, name: string): [string, Node | null][] {
  if (!isMap(node)) throw new TypeError(`there is no ${name}`);
  const found = new Map<string, Node | null>();
  for (const { key, value } of node.items) {
    if (String(key) !== "<<") continue;
    for (const [field, inner] of entries(document, resolved(document, value as Node), name)) found.set(field, inner);
  }
  for (const { key, value } of node.items) {
    const field = String(key);
    if (field === "<<" || field.startsWith("x-")) continue;
    if (!(field in TYPES[name]!)) throw new TypeError(`${name} has no field ${field}`);
    found.set(field, value as Node | null);
  }
  return [...found];
}

function resolved(document: Document<ParsedNode>, node: Node): Node | null {
  return "resolve" in node ? ((node as { resolve(document: Document<ParsedNode>): Node | undefined }).resolve(document) ?? null) : node;
}
