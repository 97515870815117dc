// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {JobDefinition, JobStatus, ProviderPrices} from "../../src/Types.sol";

/// The rules of docs/explanation/contracts.md a second time, as plainly as possible and without code of the contracts: permissions
/// of edges, and costs of jobs.
library Reference {
    // Callers that may move an edge.
    uint256 internal constant CUSTOMER = 1;
    uint256 internal constant PROVIDER = 2;
    uint256 internal constant ROLE = 4;
    uint256 internal constant ANYONE = 8; // after the deadline for the claim
    uint256 internal constant OVERDUE = 16; // anyone, from the time on at which the customer gives the job up

    uint256 internal constant YEAR_MINUTES = 525_600;
    /// Delays have 24 bits.
    uint256 internal constant LONGEST_DELAY = 2 ** 24 - 1;
    /// From this price on, no deposit is enough for a provider.
    uint256 internal constant ENDLESS_PRICE = 2 ** 80 - 1;

    /// Sum of the callers that may move a job along this edge; 0 if there is no such edge.
    function movers(JobStatus from, JobStatus to) internal pure returns (uint256) {
        if (from == JobStatus.PENDING) {
            if (to == JobStatus.META_SCHEDULED || to == JobStatus.PANICKED) return ROLE;
            return to == JobStatus.CANCELLED ? CUSTOMER | OVERDUE : 0;
        }
        if (from == JobStatus.META_SCHEDULED) {
            if (to == JobStatus.PENDING) return PROVIDER | ANYONE;
            if (to == JobStatus.SCHEDULED) return PROVIDER;
            if (to == JobStatus.CANCELLED) return PROVIDER | CUSTOMER;
            return to == JobStatus.PANICKED ? PROVIDER | ROLE : 0;
        }
        if (from == JobStatus.SCHEDULED) {
            if (to == JobStatus.PENDING || to == JobStatus.CANCELLED) return PROVIDER | ROLE | CUSTOMER;
            if (to == JobStatus.RUNNING || to == JobStatus.FAILED) return PROVIDER;
            return to == JobStatus.PANICKED ? PROVIDER | ROLE : 0;
        }
        if (from != JobStatus.RUNNING || to <= JobStatus.RUNNING) return 0;
        if (to == JobStatus.CANCELLED) return PROVIDER | CUSTOMER;
        return to == JobStatus.PANICKED ? PROVIDER | ROLE | CUSTOMER : PROVIDER;
    }

    /// Wei per minute; the highest number if a used price is infinite.
    function rate(JobDefinition memory job, ProviderPrices memory prices) internal pure returns (uint256) {
        uint256 cpus = uint256(job.ntasks) * job.cpusPerTask;
        uint256 mem = cpus * job.memPerCpu;
        if (endless(job.gpus, prices.gpuPricePerMin)) return type(uint256).max;
        if (endless(cpus, prices.cpuPricePerMin)) return type(uint256).max;
        if (endless(mem, prices.memPricePerMin)) return type(uint256).max;
        return (job.gpus == 0 ? 0 : job.gpus * prices.gpuPricePerMin) + (cpus == 0 ? 0 : cpus * prices.cpuPricePerMin)
            + (mem == 0 ? 0 : mem * prices.memPricePerMin);
    }

    function endless(uint256 quantity, uint256 price) private pure returns (bool) {
        return quantity != 0 && price >= ENDLESS_PRICE;
    }

    /// Whether nodes with these sums can hold the job.
    function fits(JobDefinition memory job, uint256 gpus, uint256 cpus, uint256 mem) internal pure returns (bool) {
        uint256 wanted = uint256(job.ntasks) * job.cpusPerTask;
        return job.gpus <= gpus && wanted <= cpus && wanted * job.memPerCpu <= mem;
    }

    /// Whole minutes bought.
    function limit(uint256 locked, uint256 rate_) internal pure returns (uint256) {
        if (rate_ == 0) return YEAR_MINUTES;
        return locked / rate_ > YEAR_MINUTES ? YEAR_MINUTES : locked / rate_;
    }

    /// Started minutes; 0 if no time passed.
    function startedMinutes(uint256 start, uint256 end) internal pure returns (uint256 count) {
        if (end > start) count = (end - start) / 60 + ((end - start) % 60 == 0 ? 0 : 1);
    }

    /// Cost of these minutes in wei. For a job that bought a year, at most a year and a minute count.
    function cost(uint256 minutesBilled, uint256 locked, uint256 rate_) internal pure returns (uint256) {
        uint256 most = limit(locked, rate_) + 1;
        uint256 full = (minutesBilled < most ? minutesBilled : most) * rate_;
        return full < locked ? full : locked;
    }

    function delay(uint256 from, uint256 to) internal pure returns (uint256) {
        if (to <= from) return 0;
        return to - from < LONGEST_DELAY ? to - from : LONGEST_DELAY;
    }
}
