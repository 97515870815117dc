/** Repeats failed jobs of a sweep: one approval for all of them, then one request each, in the same places. */
import { refresh } from "../chain/head";
import { readClusters } from "../chain/clusters";
import { readJobs } from "../job/read";
import { type Job, STATUS } from "../job/value";
import { isOver, waitsAgain } from "../job/words";
import { exact } from "../pure/money";
import { Flow, Stopped } from "./flow.svelte";
import { account, provider } from "./account.svelte";
import { type Mark, readDefinition } from "./kept";
import type { JobOrder } from "./order";
import { openSession } from "./session";
import { approve, interrupted, type Submission, submission } from "./submission.svelte";

/** The steps for these jobs. Raises Stopped if another submission must be looked up first. */
export async function repetition(jobs: readonly Job[]): Promise<Flow> {
  if (interrupted()) throw new Stopped("An interrupted submission comes first: open New job.");
  const totalWei = jobs.reduce((sum, { lockedWei }) => sum + lockedWei, 0n);
  const kept = new Map<number, { definition: string; mark: Mark }>();
  const begun = new Map<number, Submission>();
  const read = async () => {
    const session = await openSession(provider(), account.address!);
    for (const { id } of jobs) {
      const found = await readDefinition(session, id);
      if (!found) throw new Stopped(`The file of job ${id} is not kept any more.`);
      if (found.masked.length) throw new Stopped(`Job ${id} has secrets, which are not kept: use \`dps sweep retry\` on the machine that submitted it.`);
      kept.set(id, found);
    }
  };
  const again = (job: Job) => async () => {
    await requireOrder(job);
    const { definition, mark } = kept.get(job.id)!;
    const one = begun.get(job.id) ?? (await submission(orderOf(job, definition, mark)));
    begun.set(job.id, one); // a step that failed goes on: a request that was sent is never sent again
    if (!(await one.run())) throw new Stopped(one.fault);
    return `job ${one.jobId}`;
  };
  return new Flow(
    `Repeat ${jobs.length} failed ${jobs.length === 1 ? "job" : "jobs"}`,
    [["Amount", `${exact(totalWei)} credits at most in all; what is not used comes back`]],
    [
      { name: "Files read", prompt: "one signature for a session key, if it has ended", act: read },
      { name: "Allowed", prompt: "one transaction for exactly these credits", act: () => approve(totalWei) },
      ...jobs.map((job) => ({ name: `Job ${job.id} again`, prompt: "one transaction", act: again(job) })),
    ],
  );
}

/** Raises Stopped if the earlier job ended so that the contract would refuse this one. */
async function requireOrder(job: Job): Promise<void> {
  if (!waitsAgain(job) || job.afterAny) return;
  const [first] = await readJobs([job.afterJob]);
  if (first && isOver(first) && first.status !== STATUS.finished) {
    throw new Stopped(`Job ${first.id} did not finish, so job ${job.id} would be cancelled again. Repeat job ${first.id} first, then use \`dps job again ${job.id} --after\`.`);
  }
}

/** The order of an earlier job, with its terms as the chain keeps them. Its ceiling on the price holds. */
function orderOf(job: Job, definition: string, mark: Mark): JobOrder {
  const { ntasks, cpusPerTask, memPerCpuMb, gpus } = job.asked;
  const giveUpAfterS = job.giveUpAt > job.submittedAt ? job.giveUpAt - job.submittedAt : 0;
  return {
    definition,
    resources: { tasks: Number(ntasks), cpusPerTask: Number(cpusPerTask), memPerCpu: Number(memPerCpuMb), gpus: Number(gpus) },
    name: job.name || "job",
    lockedWei: job.lockedWei,
    uses: job.uses,
    affinities: job.affinity,
    delegate: job.delegateSpending,
    quoted: [],
    quoteNow: async () => {
      await readClusters((await refresh()).number); // the chain answers
      return [];
    },
    permit: false,
    wishes: { minMinutes: job.minMinutes, maxRateWei: job.maxRateWei, giveUpAfterS, prefer: job.prefer ?? 0, afterJob: waitsAgain(job) ? job.afterJob : 0, afterAny: waitsAgain(job) && job.afterAny },
    mark,
  };
}
