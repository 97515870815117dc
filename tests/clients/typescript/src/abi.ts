/** What the client calls and watches on chain, written by hand from the description of the contracts. */
import { parseAbi } from "viem";

const STRUCTS = [
  "struct Label { string key; string value; }",
  "struct Affinity { Label label; bytes2 op; }",
  "struct JobDefinition { uint64 gpus; uint64 memPerCpu; uint64 cpusPerTask; uint64 ntasks; string batchLocationHash; uint8 storageType; Label[] uses; Affinity[] affinity; }",
  "struct JobCost { uint256 maxCost; uint256 finalCost; uint256 pendingTopUp; bool delegateSpendingAuthority; }",
  "struct JobTime { uint256 submit; uint256 start; uint256 end; uint256 cancelRequestTimestamp; uint256 blockNumberStateChange; uint256 panicTimestamp; }",
  "struct Job { bytes32 jobId; uint8 status; address customerAddr; address providerAddr; JobDefinition definition; JobCost cost; JobTime time; bytes32 jobName; bool hasCancelRequest; string lastError; int64 exitCode; }",
  "struct ProviderHardware { uint64 nodes; uint64[] gpusPerNode; uint64[] cpusPerNode; uint64[] memPerNode; }",
  "struct ProviderPrices { uint256 gpuPricePerMin; uint256 cpuPricePerMin; uint256 memPricePerMin; }",
  "struct Provider { address addr; ProviderHardware providerHardware; ProviderPrices providerPrices; Label[] labels; bool isBanned; }",
] as const;

export const META_SCHEDULER = parseAbi([
  ...STRUCTS,
  "function credit() view returns (address)",
  "function jobs() view returns (address)",
  "function providerManager() view returns (address)",
  "function requestNewJob(JobDefinition definition, uint256 lockedCredits, bytes32 jobName, bool delegateSpendingAuthority) returns (bytes32)",
  "function topUpJob(bytes32 jobId, uint256 amount)",
  "function cancelJob(bytes32 jobId)",
  "event NewJobRequestEvent(bytes32 jobId, address customer)",
  "error NewJobRequestDisabled()",
  "error InsufficientFunds(uint256 available, uint256 required)",
  "error InvalidJobDefinition()",
  "error InvalidJob()",
  "error CustomerOnly(address current, address expected)",
  "error JobHotStatusOnly(uint8 current)",
  "error RunningScheduledStatusOnly(uint8 current)",
]);

export const JOBS = parseAbi([
  ...STRUCTS,
  "function get(bytes32 jobId) view returns (Job)",
  "function getByCustomer(address customer) view returns (bytes32[])",
  "event JobTransitionEvent(bytes32 jobId, uint8 from, uint8 to)",
  "error InvalidJob()",
]);

export const PROVIDER_MANAGER = parseAbi([
  ...STRUCTS,
  "function getProvider(address provider) view returns (Provider)",
  "event ProviderWaitingForApproval(address addr)",
]);

export const CREDIT = parseAbi([
  "function approve(address spender, uint256 amount) returns (bool)",
  "function allowance(address owner, address spender) view returns (uint256)",
  "function balanceOf(address account) view returns (uint256)",
  "function transfer(address to, uint256 amount) returns (bool)",
  "event Transfer(address indexed from, address indexed to, uint256 value)",
  "event Approval(address indexed owner, address indexed spender, uint256 value)",
]);

/** The states of a job, by their number on chain. */
export const STATUS = [
  "PENDING", "META_SCHEDULED", "SCHEDULED", "RUNNING", "CANCELLED", "FINISHED", "FAILED", "OUT_OF_CREDITS", "PANICKED",
] as const;

export const isFinal = (status: number): boolean => status >= STATUS.indexOf("CANCELLED");
