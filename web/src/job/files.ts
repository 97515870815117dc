/** Workflow files of this device, by the hash of their definition. The services delete a definition when its job is over. */
import { keep } from "../wallet/local";

const PLACE = "file:";

export function keepFile(definitionHash: string, yaml: string): void {
  try {
    keep(PLACE + definitionHash, yaml);
  } catch {
    // full or refused: "run again" is then not offered
  }
}

/** The file of a job; null if it is not on this device. */
export function keptFile(definitionHash: string): string | null {
  return localStorage.getItem(PLACE + definitionHash);
}

/** Open a file in the editor of a new job. */
export function runAgain(definitionHash: string): void {
  location.hash = `/new?again=${encodeURIComponent(definitionHash)}`;
}
