// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;
import {AccessControl} from "@openzeppelin/contracts/access/AccessControl.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {BaselineProviderManager as ProviderManager, Prices} from "./BaselineProviderManager.sol";
import "./BaselineCommon.sol";

struct JobDefinition {
    uint64 gpus;
    uint64 memPerCpu;
    uint64 cpusPerTask;
    uint64 ntasks;
    string batchLocationHash;
    uint8 storageType;
    Label[] uses;
    Affinity[] affinities;
}

struct JobCost {
    uint256 maxCost;
    uint256 finalCost;
    uint256 pendingTopUp;
    bool delegateSpendingAuthority;
}

struct JobTime {
    uint256 start;
    uint256 end;
    uint256 cancelRequestTimestamp;
    uint256 blockNumberStateChange;
    uint256 panicTimestamp;
}

struct Job {
    bytes32 jobId;
    JobStatus status;
    address customerAddr;
    address providerAddr;
    JobDefinition definition;
    JobCost cost;
    JobTime time;
    bytes32 jobName;
    bool hasCancelRequest;
    string lastError;
    int64 exitCode;
}

/// Design (a): everything in storage, 256-bit times and costs, strings and labels on chain, a FIFO per provider.
contract BaselineMetaScheduler is AccessControl {
    using SafeERC20 for IERC20;
    IERC20 public immutable credit;
    ProviderManager public immutable providers;
    mapping(bytes32 => Job) private _jobs;
    mapping(address => bytes32[]) private _wallet; // customer -> job ids

    struct Queue {
        uint128 head;
        uint128 tail;
        mapping(uint128 => bytes32) items;
    }
    mapping(address => Queue) private _queues;
    uint256 public nonce;

    event NewJobRequest(bytes32 indexed jobId, address indexed customer);
    event JobTransition(bytes32 indexed jobId, JobStatus from, JobStatus to);
    event Claimed(bytes32 indexed jobId, address indexed provider, uint256 maxDurationMin);
    event Settled(bytes32 indexed jobId, uint256 paid, uint256 refunded);

    constructor(IERC20 c, ProviderManager p, address admin) {
        credit = c;
        providers = p;
        _grantRole(DEFAULT_ADMIN_ROLE, admin);
    }

    function jobs(bytes32 id) external view returns (Job memory) {
        return _jobs[id];
    }

    function requestNewJob(JobDefinition calldata def, uint256 maxCost, bytes32 name, bool delegate)
        external
        returns (bytes32 id)
    {
        if (maxCost == 0) revert ZeroAmount();
        if (def.ntasks == 0 || def.cpusPerTask == 0) revert BadDefinition();
        id = bytes32(++nonce);
        Job storage j = _jobs[id];
        j.jobId = id;
        j.customerAddr = msg.sender;
        j.jobName = name;
        j.cost.maxCost = maxCost;
        j.cost.delegateSpendingAuthority = delegate;
        j.time.blockNumberStateChange = block.number;
        JobDefinition storage d = j.definition;
        d.gpus = def.gpus;
        d.memPerCpu = def.memPerCpu;
        d.cpusPerTask = def.cpusPerTask;
        d.ntasks = def.ntasks;
        d.batchLocationHash = def.batchLocationHash;
        d.storageType = def.storageType;
        for (uint256 i; i < def.uses.length; ++i) {
            d.uses.push(def.uses[i]);
        }
        for (uint256 i; i < def.affinities.length; ++i) {
            d.affinities.push(def.affinities[i]);
        }
        _wallet[msg.sender].push(id);
        credit.safeTransferFrom(msg.sender, address(this), maxCost);
        emit NewJobRequest(id, msg.sender);
    }

    function metaSchedule(bytes32 id, address provider) external onlyRole(META_ROLE) {
        Job storage j = _get(id);
        if (j.status != JobStatus.PENDING) revert WrongState(j.status, JobStatus.PENDING);
        if (!providers.isApproved(provider)) revert ProviderUnavailable(provider);
        j.providerAddr = provider;
        _move(j, JobStatus.META_SCHEDULED);
        Queue storage q = _queues[provider];
        q.items[q.tail] = id;
        q.tail += 1;
    }

    function claimNextJob() external returns (bytes32 id) {
        Queue storage q = _queues[msg.sender];
        while (q.head < q.tail) {
            uint128 h = q.head;
            id = q.items[h];
            delete q.items[h];
            q.head = h + 1;
            Job storage j = _jobs[id];
            if (j.status != JobStatus.META_SCHEDULED) continue;
            _move(j, JobStatus.SCHEDULED);
            emit Claimed(id, msg.sender, j.cost.maxCost * 1e6 / _perMin(j));
            return id;
        }
        revert NothingToClaim();
    }

    function providerSetJobStatus(bytes32 id, JobStatus to, uint64 durationMin, string calldata err, int64 code)
        external
    {
        Job storage j = _get(id);
        if (j.providerAddr != msg.sender) revert NotProvider(msg.sender);
        if (!providerMayMove(j.status, to)) revert WrongState(j.status, to);
        JobStatus was = j.status;
        _move(j, to);
        if (bytes(err).length != 0) j.lastError = err;
        if (to == JobStatus.RUNNING) {
            j.time.start = block.timestamp;
        } else if (isTerminal(to)) {
            j.exitCode = code;
            j.time.end = block.timestamp;
            if (to == JobStatus.PANICKED) j.time.panicTimestamp = block.timestamp;
            _settle(j, was == JobStatus.RUNNING && to != JobStatus.PANICKED ? durationMin : 0);
        }
    }

    function cancelJob(bytes32 id) external {
        Job storage j = _get(id);
        if (j.customerAddr != msg.sender) revert NotCustomer(msg.sender);
        if (isTerminal(j.status)) revert WrongState(j.status, JobStatus.CANCELLED);
        j.hasCancelRequest = true;
        j.time.cancelRequestTimestamp = block.timestamp;
        if (j.status <= JobStatus.META_SCHEDULED) {
            _move(j, JobStatus.CANCELLED);
            j.time.end = block.timestamp;
            _settle(j, 0);
        }
    }

    function topUpJob(bytes32 id, uint256 amount) external {
        Job storage j = _get(id);
        if (isTerminal(j.status)) revert WrongState(j.status, JobStatus.RUNNING);
        if (amount == 0) revert ZeroAmount();
        j.cost.maxCost += amount;
        j.cost.pendingTopUp += amount;
        credit.safeTransferFrom(msg.sender, address(this), amount);
    }

    function _perMin(Job storage j) private view returns (uint256) {
        Prices memory p = providers.pricesOf(j.providerAddr);
        JobDefinition storage d = j.definition;
        return uint256(d.ntasks) * d.cpusPerTask * (uint256(p.perCpuMin) + uint256(d.memPerCpu) * p.perMiBMin)
            + uint256(d.gpus) * p.perGpuMin;
    }

    function _settle(Job storage j, uint64 durationMin) private {
        uint256 cost = _perMin2(j) * durationMin / 1e6;
        uint256 max = j.cost.maxCost;
        if (cost > max) cost = max;
        j.cost.finalCost = cost;
        if (cost != 0) credit.safeTransfer(j.providerAddr, cost);
        if (max > cost) credit.safeTransfer(j.customerAddr, max - cost);
        emit Settled(j.jobId, cost, max - cost);
    }

    function _perMin2(Job storage j) private view returns (uint256) {
        return j.providerAddr == address(0) ? 0 : _perMin(j);
    }

    function _move(Job storage j, JobStatus to) private {
        JobStatus f = j.status;
        j.status = to;
        j.time.blockNumberStateChange = block.number;
        emit JobTransition(j.jobId, f, to);
    }

    function _get(bytes32 id) private view returns (Job storage j) {
        j = _jobs[id];
        if (j.jobId == 0) revert UnknownJob(id);
    }
}
