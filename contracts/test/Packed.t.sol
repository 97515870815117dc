// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {HardwareTotals, JobStatus, ProviderPrices, Sizes} from "../src/Types.sol";
import {Bits} from "../src/libraries/Bits.sol";
import {IdRuns, IdRunsFields} from "../src/libraries/IdRuns.sol";
import {JobWord, JobWords} from "../src/libraries/JobWord.sol";
import {LineWord} from "../src/libraries/LineWord.sol";
import {Seller, Tariff, TermsFields} from "../src/libraries/Terms.sol";
import {WishWord} from "../src/libraries/WishWord.sol";
import {vm} from "./Vm.sol";

/// The edges of every packed field: odd values and all bits, and empty, full and patterned neighbours. Each place is
/// written down a second time here, from the drawings at the heads of the libraries.
contract PackedTest {
    uint256 private constant NOW = 0xFEDC_BA99; // odd, and in the upper half of 32 bits
    uint256 private constant HEIGHT = 0x89AB_CDEF;

    function setUp() external {
        vm.warp(NOW);
        vm.roll(HEIGHT);
    }

    function test_bits_of_each_width_at_each_place() external pure {
        for (uint256 width = 1; width < 256; ++width) {
            for (uint256 from; from + width <= 256; from += 13) {
                for (uint256 i; i < 4; ++i) {
                    uint256 before = words()[i];
                    uint256 value = words()[(i + width) % 4];
                    check(before, Bits.set(before, from, width, value), from, width, value % 2 ** width);
                    vm.assertEq(Bits.get(before, from, width), field(before, from, width), "get");
                }
            }
        }
    }

    function test_the_fields_of_a_new_job() external view {
        uint256[3] memory blobs = [uint256(1), 0x8000_0001, type(uint32).max];
        uint256[3] memory positions = [uint256(1), 0x4001, 0x7FFF];
        for (uint256 i; i < 9; ++i) {
            (uint256 blob, uint256 position) = (blobs[i % 3], positions[i / 3]);
            uint256 expected = position << 9 | blob << 24 | HEIGHT << 80;
            vm.assertEq(JobWord.unwrap(JobWords.create(blob, position, false)), expected, "without authority");
            vm.assertEq(JobWord.unwrap(JobWords.create(blob, position, true)), expected | 1 << 7, "with authority");
        }
    }

    function test_the_fields_of_a_job_are_read_at_their_places() external pure {
        for (uint256 i; i < 4; ++i) {
            uint256 bits = words()[i];
            JobWord word = JobWord.wrap(bits);
            vm.assertTrue(word.exists() == (bits != 0), "exists");
            vm.assertTrue(word.cancelRequested() == (field(bits, 6, 1) == 1), "cancelRequested");
            vm.assertTrue(word.delegateSpending() == (field(bits, 7, 1) == 1), "delegateSpending");
            vm.assertTrue(word.hasExtra() == (field(bits, 8, 1) == 1), "hasExtra");
            vm.assertEq(word.position(), field(bits, 9, 15), "position");
            vm.assertEq(word.blob(), field(bits, 24, 32), "blob");
            vm.assertEq(word.terms(), field(bits, 56, 24), "terms");
            vm.assertEq(word.changedInBlock(), field(bits, 80, 32), "changedInBlock");
            vm.assertEq(word.limitMinutes(), field(bits, 168, 24), "limitMinutes");
            vm.assertEq(word.mayRunSince(), field(bits, 112, 32) + field(bits, 168, 24), "mayRunSince");
            vm.assertEq(word.next(), field(bits, 192, 32), "next");
            vm.assertEq(word.previous(), field(bits, 224, 32), "previous");
            vm.assertEq(word.endedAt(), field(bits, 192, 32), "endedAt");
            vm.assertEq(word.billedMinutes(), field(bits, 224, 32), "billedMinutes");
            vm.assertTrue(word.started() == (field(bits, 4, 2) == 3), "started");
            bits |= 1 << 143; // a time that is later than any delay
            vm.assertEq(JobWord.wrap(bits).assignedAt(), field(bits, 112, 32) - field(bits, 144, 24), "assignedAt");
        }
    }

    function test_each_phase_shows_the_times_that_have_come() external pure {
        for (uint256 phase; phase < 4; ++phase) {
            JobWord word = JobWord.wrap(phase << 4 | 1 << 6 | 0x8000_0001 << 112 | 0x80_0001 << 168);
            vm.assertEq(word.claimedAt(), phase < 2 ? 0 : 0x8000_0001, "claimedAt");
            vm.assertEq(word.startedAt(), phase < 3 ? 0 : uint256(0x8000_0001) + 0x80_0001, "startedAt");
        }
    }

    function test_each_status_is_read() external pure {
        for (uint256 i; i < 9; ++i) {
            vm.assertEq(uint256(JobWord.wrap(type(uint256).max << 4 | i).status()), i, "status");
        }
    }

    function test_a_change_of_a_job_changes_only_its_own_fields() external view {
        for (uint256 i; i < 4; ++i) {
            uint256 bits = words()[i];
            JobWord word = JobWord.wrap(bits);
            check(bits, JobWord.unwrap(word.withCancelRequest()), 6, 1, 1);
            check(bits, JobWord.unwrap(word.withDelegateSpending(true)), 7, 1, 1);
            check(bits, JobWord.unwrap(word.withDelegateSpending(false)), 7, 1, 0);
            check(bits, JobWord.unwrap(word.withExtra()), 8, 1, 1);
            for (uint256 j; j < 4; ++j) {
                uint256 value = words()[j] % 2 ** 32;
                check(bits, JobWord.unwrap(word.withNext(value)), 192, 32, value);
                check(bits, JobWord.unwrap(word.withPrevious(value)), 224, 32, value);
                check(put(bits, 224, 32, value), JobWord.unwrap(word.ended(value)), 192, 32, NOW);
            }
            for (uint256 status; status < 9; ++status) {
                check(put(bits, 80, 32, HEIGHT), JobWord.unwrap(word.moved(JobStatus(status))), 0, 4, status);
            }
        }
    }

    function test_assignment_claim_start_and_return_change_only_their_fields() external view {
        for (uint256 i; i < 16; ++i) {
            uint256 bits = words()[i % 4];
            JobWord word = JobWord.wrap(bits);
            (uint256 terms, uint256 limit) = (words()[i / 4] % 2 ** 24, words()[3 - i / 4] % 2 ** 24);
            uint256 expected = put(put(put(bits, 56, 24, terms), 168, 24, limit), 4, 2, 1);
            vm.assertEq(JobWord.unwrap(word.assigned(terms, limit)), put(expected, 112, 32, NOW), "assigned");
            expected = put(put(put(bits, 144, 24, delay(field(bits, 112, 32), NOW)), 168, 24, 0), 4, 2, 2);
            vm.assertEq(JobWord.unwrap(word.claimed()), put(expected, 112, 32, NOW), "claimed");
            uint256 since = field(bits, 112, 32);
            uint256 time = since + words()[i / 4] % 2 ** 25;
            expected = put(put(bits, 168, 24, delay(since, time)), 4, 2, 3);
            vm.assertEq(JobWord.unwrap(word.startedFrom(time)), expected, "started");
            vm.assertEq(JobWord.unwrap(word.released()), put(put(bits % 2 ** 112, 56, 24, 0), 4, 2, 0), "released");
        }
    }

    function test_block_numbers_end_at_32_bits() external {
        uint256[4] memory heights = [uint256(2 ** 32 - 1), 2 ** 32, 2 ** 32 + 7, type(uint64).max];
        for (uint256 i; i < 4; ++i) {
            vm.roll(heights[i]);
            JobWord word = JobWords.create(7, 9, true);
            vm.assertEq(word.changedInBlock(), 2 ** 32 - 1, "created");
            vm.assertEq(word.blob(), 7, "no other field of a new job");
            vm.assertEq(uint256(word.status()), 0, "nor its state");
            vm.assertEq(word.moved(JobStatus.RUNNING).changedInBlock(), 2 ** 32 - 1, "moved");
        }
    }

    function test_delays_end_at_24_bits() external pure {
        JobWord word = JobWord.wrap(uint256(1000) << 112 | 1);
        uint256[5] memory delays = [uint256(0), 1, 2 ** 24 - 2, 2 ** 24 - 1, 2 ** 24];
        for (uint256 i; i < 5; ++i) {
            uint256 expected = i == 4 ? 2 ** 24 - 1 : delays[i];
            vm.assertEq(word.startedFrom(1000 + delays[i]).startedAt(), 1000 + expected, "delay");
        }
        vm.assertEq(word.startedFrom(999).startedAt(), 1000, "not before its claim");
    }

    function test_the_fields_of_a_line() external view {
        for (uint256 i; i < 16; ++i) {
            uint256 bits = words()[i % 4];
            LineWord line = LineWord.wrap(bits);
            (uint256 value, uint256 short) = (words()[i / 4] % 2 ** 32, words()[i / 4] % 2 ** 24);
            check(bits, LineWord.unwrap(line.withFirst(value)), 0, 32, value);
            check(bits, LineWord.unwrap(line.withLast(value)), 32, 32, value);
            check(bits, LineWord.unwrap(line.withNextToClaim(value)), 64, 32, value);
            check(bits, LineWord.unwrap(line.withClaimable(value)), 96, 32, value);
            check(bits, LineWord.unwrap(line.withClaimed(value)), 128, 32, value);
            check(bits, LineWord.unwrap(line.withTerms(short)), 160, 24, short);
            check(bits, LineWord.unwrap(line.withRaise()), 184, 32, NOW);
            check(bits, LineWord.unwrap(line.withValid(i < 8)), 216, 8, i < 8 ? 1 : 0);
            if (field(bits, 224, 32) == type(uint32).max) bits ^= 1 << 255;
            uint256 counted = field(bits, 224, 32) + 1;
            check(bits, LineWord.unwrap(LineWord.wrap(bits).withOneMoreStarted()), 224, 32, counted);
            checkLine(words()[i % 4]);
        }
    }

    function checkLine(uint256 bits) private pure {
        LineWord line = LineWord.wrap(bits);
        vm.assertEq(line.first(), field(bits, 0, 32), "first");
        vm.assertEq(line.last(), field(bits, 32, 32), "last");
        vm.assertEq(line.nextToClaim(), field(bits, 64, 32), "nextToClaim");
        vm.assertEq(line.claimable(), field(bits, 96, 32), "claimable");
        vm.assertEq(line.claimed(), field(bits, 128, 32), "claimed");
        vm.assertEq(line.terms(), field(bits, 160, 24), "terms");
        vm.assertEq(line.raisedAt(), field(bits, 184, 32), "raisedAt");
        vm.assertTrue(line.valid() == (field(bits, 216, 8) != 0), "valid");
        vm.assertEq(line.started(), field(bits, 224, 32), "started");
    }

    function test_the_sums_of_a_seller_hold_exactly_what_they_say() external pure {
        uint64[3] memory odd = [uint64(0x80_0001), 0x8000_0001, 0x80_0000_0001];
        uint64[3] memory most = [uint64(2 ** 24 - 1), 2 ** 32 - 1, 2 ** 40 - 1];
        for (uint256 i; i < 8; ++i) {
            HardwareTotals memory has = HardwareTotals(
                i & 1 == 0 ? odd[0] : most[0], i & 2 == 0 ? odd[1] : most[1], i & 4 == 0 ? odd[2] : most[2]
            );
            address provider = i % 2 == 0 ? address(type(uint160).max) : address(1);
            Seller seller = TermsFields.sellerOf(provider, has);
            uint256 expected = uint160(provider) | uint256(has.gpus) << 160 | uint256(has.cpus) << 184;
            vm.assertEq(Seller.unwrap(seller), expected | uint256(has.mem) << 216, "places");
            vm.assertEq(seller.provider(), provider, "provider");
            vm.assertTrue(seller.holds(Sizes(has.gpus, 1, 1, 1)), "all GPUs");
            vm.assertTrue(!seller.holds(Sizes(has.gpus + 1, 1, 1, 1)), "one GPU more");
            vm.assertTrue(seller.holds(Sizes(0, 1, has.cpus, 1)), "all CPUs");
            vm.assertTrue(!seller.holds(Sizes(0, 0, has.cpus + 1, 1)), "one CPU more");
            vm.assertTrue(seller.holds(Sizes(0, has.mem, 1, 1)), "all memory");
            vm.assertTrue(!seller.holds(Sizes(0, has.mem + 1, 1, 1)), "one MB more");
        }
        Seller capped = TermsFields.sellerOf(address(0), HardwareTotals(2 ** 24, 2 ** 32, 2 ** 40));
        vm.assertEq(Seller.unwrap(capped), type(uint256).max << 160, "sums are capped");
    }

    function test_the_prices_and_the_cut_of_a_tariff() external pure {
        uint256[3] memory values = [uint256(1), 2 ** 79 + 1, 2 ** 80 - 2];
        for (uint256 i; i < 27; ++i) {
            (uint256 gpu, uint256 cpu, uint256 mem) = (values[i % 3], values[i / 3 % 3], values[i / 9]);
            Tariff tariff = TermsFields.tariffOf(ProviderPrices(gpu, cpu, mem), 50, 60);
            uint256 bits = gpu | cpu << 80 | mem << 160 | 50 << 240 | 60 << 248;
            vm.assertEq(Tariff.unwrap(tariff), bits, "places");
            check(put(bits, 248, 8, 1), Tariff.unwrap(tariff.withCharges(255, 1)), 240, 8, 255);
            check(put(bits, 248, 8, 255), Tariff.unwrap(tariff.withCharges(0, 255)), 240, 8, 0);
            vm.assertTrue(tariff.charges(50, 60), "both charges");
            vm.assertTrue(!tariff.charges(51, 60) && !tariff.charges(50, 61), "another charge");
            vm.assertEq(tariff.feeMinutes(), 60, "fee");
            vm.assertEq(tariff.cutPercent(), 50, "cut");
            vm.assertEq(tariff.rateOf(Sizes(3, 0, 0, 0)), 3 * gpu, "GPUs");
            vm.assertEq(tariff.rateOf(Sizes(0, 0, 5, 1)), 5 * cpu, "CPUs");
            vm.assertEq(tariff.rateOf(Sizes(0, 7, 1, 1)), cpu + 7 * mem, "memory");
        }
    }

    function test_the_fields_of_wishes() external pure {
        for (uint256 i; i < 4; ++i) {
            uint256 bits = words()[i] % 2 ** 216;
            WishWord word = WishWord.wrap(bits);
            vm.assertEq(word.asWishes().prefer, field(bits, 0, 8), "prefer");
            vm.assertEq(word.asWishes().giveUpAt, field(bits, 8, 40), "giveUpAt");
            vm.assertEq(word.asWishes().minMinutes, field(bits, 48, 32), "minMinutes");
            vm.assertEq(word.asWishes().maxRatePerMinute, field(bits, 80, 96), "maxRatePerMinute");
            vm.assertEq(word.ceiling(), field(bits, 80, 96), "ceiling");
            vm.assertEq(word.asWishes().afterJob, field(bits, 176, 32), "afterJob");
            vm.assertTrue(word.asWishes().afterAny == (field(bits, 208, 8) != 0), "afterAny");
            vm.assertEq(word.widthOf(), field(bits, 176, 32) == 0 ? 22 : 27, "width");
        }
    }

    function test_the_runs_of_a_customers_ids() external pure {
        for (uint256 i; i < 4; ++i) {
            uint256 bits = words()[i];
            IdRuns ids = IdRuns.wrap(bits);
            vm.assertEq(ids.jobs(), field(bits, 0, 32), "jobs");
            vm.assertEq(ids.older(), field(bits, 32, 32), "older");
            for (uint256 j; j < IdRunsFields.RUNS; ++j) {
                (uint256 first, uint256 count) = ids.run(j);
                vm.assertEq(first, field(bits, 64 + 48 * j, 32), "first of a run");
                vm.assertEq(count, field(bits, 96 + 48 * j, 16), "length of a run");
            }
        }
    }

    function test_a_run_of_ids_ends_at_16_bits() external pure {
        uint256 first = 0x8000_0001;
        IdRuns ids = IdRuns.wrap(0xFFFE | 7 << 32 | first << 64 | 0xFFFE << 96);
        (IdRuns longer, bool full) = ids.with(first + 0xFFFE, 1, 9);
        vm.assertTrue(!full, "not full");
        vm.assertEq(IdRuns.unwrap(longer), 0xFFFF | 7 << 32 | first << 64 | 0xFFFF << 96, "one id more");
        (longer, full) = longer.with(first + 0xFFFF, 1, 9);
        vm.assertTrue(!full, "room for another run");
        uint256 runs = first + 0xFFFF << 64 | 1 << 96 | first << 112 | 0xFFFF << 144;
        vm.assertEq(IdRuns.unwrap(longer), 0x1_0000 | 7 << 32 | runs, "a second run");
    }

    // ---------------------------------------------------------------- the fields a second time

    /// Empty, full, and the two patterns of alternating bits.
    function words() private pure returns (uint256[4] memory) {
        uint256 odd = type(uint256).max / 3; // 0101...
        return [uint256(0), type(uint256).max, odd, odd << 1];
    }

    function field(uint256 word, uint256 from, uint256 width) private pure returns (uint256) {
        return word / 2 ** from % 2 ** width;
    }

    function put(uint256 word, uint256 from, uint256 width, uint256 value) private pure returns (uint256) {
        unchecked {
            return word - field(word, from, width) * 2 ** from + value * 2 ** from;
        }
    }

    function check(uint256 before, uint256 changed, uint256 from, uint256 width, uint256 value) private pure {
        vm.assertEq(changed, put(before, from, width, value), "this field and no other");
    }

    function delay(uint256 from, uint256 to) private pure returns (uint256) {
        if (to <= from) return 0;
        return to - from > 2 ** 24 - 1 ? 2 ** 24 - 1 : to - from;
    }
}
