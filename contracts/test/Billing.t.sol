// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {HardwareTotals, ProviderPrices, Sizes} from "../src/Types.sol";
import {Billing} from "../src/libraries/Billing.sol";
import {Grid} from "./Grid.sol";
import {vm} from "./Vm.sol";
import {Reference} from "./proof/Reference.sol";

/// The formulas at their limits, and compared with plain arithmetic where that does not overflow.
contract BillingTest is Grid {
    function test_the_check_value_of_the_rate() external pure {
        ProviderPrices memory p = ProviderPrices(8.5 ether, 0.95 ether, 0.00008 ether);
        vm.assertEq(Billing.ratePerMinute(sized(1, 3, 2, 1000), p), 14.68 ether, "1 GPU, 3 tasks, 2 CPUs, 1000 MB");
    }

    function testFuzz_the_rate_is_the_plain_formula(
        uint32 gpus,
        uint32 ntasks,
        uint16 cpus,
        uint16 mem,
        uint64 gpuPrice,
        uint32 cpuPrice,
        uint32 memPrice
    ) external pure {
        Sizes memory job = sized(gpus, ntasks, cpus, mem);
        uint256 expected =
            uint256(gpus) * gpuPrice + uint256(ntasks) * (uint256(cpus) * cpuPrice + uint256(mem) * cpus * memPrice);
        vm.assertEq(Billing.ratePerMinute(job, ProviderPrices(gpuPrice, cpuPrice, memPrice)), expected, "rate");
    }

    function testFuzz_no_job_and_no_price_overflow(
        uint64 gpus,
        uint64 ntasks,
        uint64 cpus,
        uint64 mem,
        ProviderPrices memory p,
        HardwareTotals memory totals
    ) external pure {
        Sizes memory job = sized(gpus, ntasks, cpus, mem);
        Billing.ratePerMinute(job, p);
        Billing.fits(job, totals);
        p = ProviderPrices(type(uint256).max, type(uint256).max, type(uint256).max);
        bool nothing = gpus == 0 && (ntasks == 0 || cpus == 0);
        vm.assertEq(Billing.ratePerMinute(job, p), nothing ? 0 : type(uint128).max, "saturated");
    }

    function test_a_rate_above_128_bits_saturates() external pure {
        ProviderPrices memory p = ProviderPrices(2 ** 79, 0, 0);
        vm.assertEq(Billing.ratePerMinute(sized(2 ** 48, 1, 1, 1), p), 2 ** 127, "below 2^128");
        vm.assertEq(Billing.ratePerMinute(sized(2 ** 49, 1, 1, 1), p), type(uint128).max, "2^128");
        vm.assertEq(Billing.ratePerMinute(sized(2 ** 50 + 1, 1, 1, 1), p), type(uint128).max, "above 2^128");
    }

    function test_the_limit_is_whole_minutes_up_to_a_year() external pure {
        vm.assertEq(Billing.limitMinutes(199, 100), 1, "floor");
        vm.assertEq(Billing.limitMinutes(99, 100), 0, "less than a minute");
        vm.assertEq(Billing.limitMinutes(1, 0), 525_600, "free");
        vm.assertEq(Billing.limitMinutes(type(uint128).max, 1), 525_600, "cheap");
    }

    function test_started_minutes() external pure {
        uint256[7] memory elapsed = [uint256(0), 1, 59, 60, 61, 120, 121];
        uint256[7] memory expected = [uint256(0), 1, 1, 1, 2, 2, 3];
        for (uint256 i; i < elapsed.length; ++i) {
            vm.assertEq(Billing.startedMinutes(1000, 1000 + elapsed[i]), expected[i], "minutes");
        }
        vm.assertEq(Billing.startedMinutes(1000, 10), 0, "the end is before the start");
    }

    /// Compares bills of any size with the documented formulas, written a second time. A bill never exceeds the deposit
    /// or the cost of its minutes.
    function testFuzz_a_bill_is_the_documented_one(
        uint32 billed,
        uint96 locked,
        uint128 rate,
        uint8 rateBits,
        uint40 start,
        uint40 end
    ) external pure {
        uint256 perMinute = rate >> rateBits % 128; // rates of any size
        uint256 cost = Billing.cost(Billing.charged(billed, locked, perMinute), perMinute, locked);
        vm.assertEq(cost, Reference.cost(billed, locked, perMinute), "cost");
        vm.assertTrue(cost <= locked && cost <= uint256(billed) * perMinute, "at most the deposit and the minutes");
        vm.assertEq(Billing.limitMinutes(locked, perMinute), Reference.limit(locked, perMinute), "limit");
        vm.assertEq(Billing.startedMinutes(start, end), Reference.startedMinutes(start, end), "started minutes");
    }

    function testFuzz_a_job_of_any_size_fits_as_documented(
        uint64 gpus,
        uint16 ntasks,
        uint16 cpusPerTask,
        uint16 memPerCpu,
        HardwareTotals memory has
    ) external pure {
        uint256 cpus = uint256(ntasks) * cpusPerTask;
        bool fits = gpus <= has.gpus && cpus <= has.cpus && cpus * memPerCpu <= has.mem;
        vm.assertTrue(Billing.fits(sized(gpus, ntasks, cpusPerTask, memPerCpu), has) == fits, "fits");
    }

    /// The start of a reported job with a clock before, at and after the claim. Chains do not go back in time, but a
    /// clock that did must not prevent a report.
    function test_a_start_is_never_before_the_claim() external {
        uint256[6] memory clocks = [uint256(0), 9_999, 10_000, 10_120, 10_121, 20_000];
        uint256[6] memory starts = [uint256(10_000), 10_000, 10_000, 10_000, 10_001, 19_880];
        for (uint256 i; i < clocks.length; ++i) {
            vm.warp(clocks[i]);
            vm.assertEq(Billing.startOf(2, 10_000), starts[i], "two minutes ago, or the claim");
        }
    }

    function test_the_exact_hardware_fits_and_one_less_does_not() external pure {
        Sizes memory job = sized(2, 3, 4, 5);
        vm.assertTrue(Billing.fits(job, HardwareTotals(2, 12, 60)), "exact");
        vm.assertTrue(!Billing.fits(job, HardwareTotals(1, 12, 60)), "gpus");
        vm.assertTrue(!Billing.fits(job, HardwareTotals(2, 11, 60)), "cpus");
        vm.assertTrue(!Billing.fits(job, HardwareTotals(2, 12, 59)), "memory");
    }

    function sized(uint64 gpus, uint64 ntasks, uint64 cpus, uint64 mem) private pure returns (Sizes memory) {
        return Sizes({gpus: gpus, memPerCpu: mem, cpusPerTask: cpus, ntasks: ntasks});
    }
}
