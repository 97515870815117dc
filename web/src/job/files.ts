/** Workflow files of this device, by the hash of their definition. The services delete a definition when its job is over. */
import { FILE, keep } from "../wallet/local";

export function keepFile(definitionHash: string, yaml: string): void {
  void keep(FILE + definitionHash, yaml).catch(() => undefined); // full or refused: "run again" is then not offered
}

/** The file of a job; null if it is not on this device. */
export function keptFile(definitionHash: string): string | null {
  return localStorage.getItem(FILE + definitionHash);
}

/** Open a file in the editor of a new job. */
export function runAgain(definitionHash: string): void {
  location.hash = `/new?again=${encodeURIComponent(definitionHash)}`;
}
