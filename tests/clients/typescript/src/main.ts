/** Usage: node build/main.js SETTINGS.json. Prints one line of JSON per check; see harness.ts for the settings. */
import { readFileSync } from "node:fs";
import { Watched, checkCommand, checkCredits } from "./checks/chain.js";
import { checkEnd, checkExamplesOnChain, checkRefusals, checkTopUpAndCancel, submitJobs } from "./checks/jobs.js";
import { checkFollowing, checkSignatures, checkTransports } from "./checks/logs.js";
import { checkJobService } from "./checks/service.js";
import type { Settings } from "./harness.js";
import { Parties } from "./parties.js";
import { installXMLHttpRequest } from "./xhr.js";

async function main(settings: Settings): Promise<void> {
  installXMLHttpRequest();
  const parties = new Parties(settings);
  const watched = new Watched();
  await checkCredits(parties, watched);
  await checkCommand(parties);
  const submitted = await submitJobs(parties);
  const running = submitted ? [checkFollowing(parties, submitted), checkTopUpAndCancel(parties, submitted)] : [];
  const [uploaded] = await Promise.all([checkJobService(parties), ...running]);
  await checkExamplesOnChain(parties, uploaded);
  if (submitted) {
    await checkEnd(parties, submitted, watched);
    await checkRefusals(parties, submitted);
    await checkSignatures(parties, submitted);
    await checkTransports(parties, submitted);
  }
  watched.stop();
  parties.grpc.close();
}

main(JSON.parse(readFileSync(process.argv[2]!, "utf8")) as Settings).then(
  () => process.exit(0), // WebSockets of the libraries stay open
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
