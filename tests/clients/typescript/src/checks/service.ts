/** Checks of the job service: every example, null, faults as sentences, browsers of other sites. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gql, type ClientError } from "graphql-request";
import { assert, assertSentence, check, rejection } from "../harness.js";
import { readJob, uses, withNulls, type JobInput } from "../job.js";
import type { Parties } from "../parties.js";

export const SMALL: JobInput = {
  resources: { tasks: 1, cpusPerTask: 1, memPerCpu: 128, gpus: 0 }, enableLogging: true,
  steps: [{ run: { command: "echo hello" } }],
};

/** Examples that together have a value of each input type. */
const FULL = new Set([
  "s3.yaml", "input-http.yaml", "output-http.yaml", "environment.yaml", "network-wireguard.yaml", "network-bore.yaml",
  "network-virtual.yaml", "container-mpi.yaml", "container-credentials.yaml", "deep.yaml", "for-range.yaml", "each-node.yaml",
]);
const AT_ONCE = 2;
const PATIENCE_MS = 600_000;

/** A job that was uploaded, by the name of its file. */
export type Uploaded = { name: string; job: JobInput; hash: string };

export async function checkJobService(parties: Parties): Promise<Uploaded[]> {
  const { customer, settings } = parties;
  const uploaded: Uploaded[] = [];
  await check("health", async () => {
    const answer = await fetch(new URL("/health", settings.graphqlUrl));
    assert.deepEqual([answer.status, (await answer.text()).trim()], [200, "ok"]);
  });
  await check("submit of every example", async () => {
    await each(readExamples(settings.examples), async ({ name, job }) => {
      if (!uses(job, "use")) {
        uploaded.push({ name, job, hash: await patiently(() => customer.upload(job)).catch(naming(name)) });
        return;
      }
      const [fault] = faultsOf(await rejection(patiently(() => customer.upload(job)))); // a folder of the author's machine
      assertSentence(fault!.message);
    });
    assert.ok(uploaded.length >= 30, `only ${uploaded.length} examples`);
    for (const { hash } of uploaded) assert.match(hash, /^[0-9a-f]{64}$/);
    assert.equal(new Set(uploaded.map(({ hash }) => hash)).size, uploaded.length);
  });
  await check("null in each optional field", async () => {
    const full = readExamples(settings.examples).filter(({ name }) => FULL.has(name));
    assert.equal(full.length, FULL.size);
    await each(full, ({ name, job }) =>
      patiently(() => customer.upload(withNulls(job) as JobInput)).catch(naming(name)),
    );
  });
  await checkFaults(parties);
  await checkOtherOperations(parties);
  await check("browsers of any site may ask", () => preflight(settings.graphqlUrl, "content-type", "300"));
  return uploaded;
}

/** Ask as a browser asks before a request of another site. */
export async function preflight(url: string, header: string, seconds: string): Promise<void> {
  const headers = { origin: "https://app.example.org", "access-control-request-method": "POST", "access-control-request-headers": header };
  const answer = await fetch(url, { method: "OPTIONS", headers });
  const told = (name: string) => (answer.headers.get(name) ?? "").toLowerCase();
  assert.ok(answer.ok, String(answer.status));
  assert.ok(["*", "https://app.example.org"].includes(told("access-control-allow-origin")));
  assert.ok(told("access-control-allow-methods").includes("post"));
  assert.ok(told("access-control-allow-headers").includes(header));
  assert.equal(told("access-control-max-age"), seconds);
  assert.equal(told("access-control-allow-credentials"), "");
}

/** Do something for each item, a few at a time. */
async function each<T>(items: T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const left = [...items];
  const worker = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

/** Upload, and again when a busy service asks for it. The existing SDK leaves that to its callers. */
async function patiently(upload: () => Promise<string>): Promise<string> {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await upload();
    } catch (error) {
      const wait = (error as ClientError).response?.errors?.[0]?.extensions?.retry_after_s;
      if (typeof wait !== "number" || Date.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, wait * 1000));
    }
  }
}

/** Adds the name of a file to an error. */
function naming(name: string): (error: unknown) => never {
  return (error) => {
    throw new Error(`${name}: ${String(error)}`);
  };
}

function readExamples(folder: string): { name: string; job: JobInput }[] {
  const names = readdirSync(folder).filter((name) => name.endsWith(".yaml"));
  return names.map((name) => ({ name, job: readJob(readFileSync(join(folder, name), "utf8")) }));
}

type Fault = { message: string; path?: string[]; extensions?: Record<string, unknown> };

function faultsOf(error: Error): Fault[] {
  const { response } = error as ClientError;
  assert.ok(response?.errors?.length, `no errors in ${error}`);
  return response.errors as unknown as Fault[];
}

async function checkFaults({ customer }: Parties): Promise<void> {
  await check("an invalid job is refused with a sentence", async () => {
    const error = await rejection(customer.upload({ ...SMALL, resources: { ...SMALL.resources, tasks: 0 } }));
    const [fault] = faultsOf(error);
    assertSentence(fault!.message);
    assert.deepEqual(fault!.path, ["submit"]);
    assert.equal((error as unknown as ClientError).response.status, 200);
    const { type, tag, namespace, field, original_message } = fault!.extensions!;
    assert.equal(type, "validation");
    for (const one of [tag, namespace, field, original_message]) assert.ok(typeof one === "string" && one !== "", String(one));
    assert.match(String(namespace), /^Job\.Resources/);
  });
  await check("one error per fault", async () => {
    const env = [{ key: "PATH", value: "x" }, { key: "not a name", value: "x" }];
    const faults = faultsOf(await rejection(customer.upload({ ...SMALL, env, inputMode: 512 })));
    assert.equal(faults.length, 3, JSON.stringify(faults));
    for (const { message } of faults) assertSentence(message);
  });
  await check("unknown, missing and wrong fields are refused", async () => {
    const { steps: _, ...stepless } = SMALL;
    const jobs = [{ ...SMALL, colour: "red" }, stepless as JobInput, { ...SMALL, enableLogging: "yes" }, { ...SMALL, steps: null }];
    for (const job of jobs) assertSentence(faultsOf(await rejection(customer.upload(job)))[0]!.message);
  });
}

async function checkOtherOperations({ jobService, settings }: Parties): Promise<void> {
  await check("validate of a module", async () => {
    const document = gql`
      mutation Validate($module: Module!) {
        validate(module: $module)
      }
    `;
    const module = { name: "greet", description: "Greets.", minimumResources: SMALL.resources, steps: SMALL.steps };
    assert.deepEqual(await jobService.request(document, { module }), { validate: "valid" });
    const { validate } = await jobService.request<{ validate: string }>(document, { module: { ...module, steps: [{ run: { command: "x", shell: "/bin/odd" } }] } });
    assert.notEqual(validate, "valid");
    assertSentence(validate);
  });
  await check("the script of a job is not for everyone", async () => {
    const document = gql`
      query Job($batchLocationHash: String!) {
        job(batchLocationHash: $batchLocationHash)
      }
    `;
    assertSentence(faultsOf(await rejection(jobService.request(document, { batchLocationHash: "ab".repeat(32) })))[0]!.message);
  });
  await check("a request without operationName", async () => {
    const query = "mutation Submit($job: Job!) { submit(job: $job) }";
    const body = JSON.stringify({ query, variables: { job: SMALL } });
    const answer = await fetch(settings.graphqlUrl, { method: "POST", headers: { "content-type": "application/json" }, body });
    assert.equal(answer.status, 200);
    assert.match((await answer.json() as { data: { submit: string } }).data.submit, /^[0-9a-f]{64}$/);
  });
}
