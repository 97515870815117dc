// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {HardwareTotals, ProviderPrices, Sizes} from "../Types.sol";

/// @notice What a job costs. Nothing here can overflow or divide by zero, for any prices.
library Billing {
    using Math for uint256;

    /// Longest limit that a job can buy: 365 days in minutes. A job that costs nothing has the same limit.
    uint64 internal constant MAX_LIMIT_MINUTES = 525_600;

    /// Highest deposit of one job, in wei: 79 billion credits.
    uint96 internal constant MAX_LOCKED = type(uint96).max - 1;

    /// A price as it is stored. A price from 1.2 million credits on is stored as the highest and counts as infinite.
    function packed(uint256 price) internal pure returns (uint80) {
        return uint80(price.min(type(uint80).max));
    }

    /// A stored price as it counts.
    function unpacked(uint80 price) internal pure returns (uint256) {
        return price == type(uint80).max ? type(uint256).max : price;
    }

    /// Minutes that count for the cost. One minute more than the deposit buys costs the whole deposit.
    function charged(uint256 billedMinutes, uint256 locked, uint256 rate) internal pure returns (uint256) {
        return billedMinutes.min(uint256(limitMinutes(locked, rate)) + 1);
    }

    /// Cost of a job in wei, never more than its deposit.
    function cost(uint256 chargedMinutes, uint256 rate, uint256 locked) internal pure returns (uint256) {
        return (chargedMinutes * rate).min(locked);
    }

    /// Wei per minute: gpus x gpuPrice + ntasks x (cpusPerTask x cpuPrice + memPerCpu x cpusPerTask x memPrice).
    /// Saturates at 2^128 - 1, which no deposit exceeds.
    function ratePerMinute(Sizes memory job, ProviderPrices memory prices) internal pure returns (uint128) {
        uint256 cpus = uint256(job.ntasks) * job.cpusPerTask;
        uint256 rate = uint256(job.gpus).saturatingMul(prices.gpuPricePerMin);
        rate = rate.saturatingAdd(cpus.saturatingMul(prices.cpuPricePerMin));
        rate = rate.saturatingAdd((cpus * job.memPerCpu).saturatingMul(prices.memPricePerMin));
        return uint128(rate.min(type(uint128).max));
    }

    /// Whether nodes with these sums can hold the job at all. The fit per node is checked off chain.
    function fits(Sizes memory job, HardwareTotals memory totals) internal pure returns (bool) {
        uint256 cpus = uint256(job.ntasks) * job.cpusPerTask;
        return cpus <= totals.cpus && cpus * job.memPerCpu <= totals.mem && job.gpus <= totals.gpus;
    }

    /// Whole minutes that `locked` buys at `rate`, at most MAX_LIMIT_MINUTES.
    function limitMinutes(uint256 locked, uint256 rate) internal pure returns (uint64) {
        if (rate == 0) return MAX_LIMIT_MINUTES;
        return uint64((locked / rate).min(MAX_LIMIT_MINUTES));
    }

    /// Started minutes between two times; 0 if no time passed.
    function startedMinutes(uint256 start, uint256 end) internal pure returns (uint256) {
        return end <= start ? 0 : (end - start).ceilDiv(60);
    }

    /// Start of a job that is reported as RUNNING: `ranMinutes` ago, but not before its claim.
    function startOf(uint256 ranMinutes, uint256 claimedAt) internal view returns (uint256) {
        uint256 ago = ranMinutes * 60;
        return block.timestamp <= claimedAt + ago ? claimedAt : block.timestamp - ago;
    }
}
