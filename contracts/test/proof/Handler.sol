// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Credit} from "../../src/Credit.sol";
import {MetaScheduler} from "../../src/MetaScheduler.sol";
import {ProviderManager} from "../../src/ProviderManager.sol";
import {JobStatus, Label, ProviderHardware, ProviderPrices} from "../../src/Types.sol";
import {vm} from "../Vm.sol";
import {JobHandler} from "./JobHandler.sol";
import {GhostProvider} from "./Ghosts.sol";
import {Player} from "./Player.sol";
import {Reference} from "./Reference.sol";

/// All actions of a history: jobs, providers that come, go and are banned, changed constants, withdrawals of the cut,
/// clocks that jump in both directions, and optional gifts to the contract.
contract Handler is JobHandler {
    uint256 private constant NODES = 2;
    /// Times have 32 bits.
    uint256 private constant LAST_TIME = type(uint32).max - 100 days;

    bool private immutable gifts;
    uint256 private leaps; // jumps by more than 194 days
    uint256 private backwards;
    uint256 private given;
    // the cut in force, the announced cut, and the first moment of its effect; 0 for none
    uint256 private cutInForce = 20;
    uint256 private cutNoted;
    uint256 private cutNotBefore;

    constructor(
        Credit credit_,
        MetaScheduler grid_,
        ProviderManager manager_,
        address operator_,
        uint256[2] memory customerKeys_,
        address[2] memory providers_,
        bool gifts_
    ) Player(credit_, grid_, manager_, operator_, customerKeys_, providers_) {
        gifts = gifts_;
        for (uint256 i; i < 2; ++i) {
            register(i, i + 1);
            approve(i, 1);
        }
        vm.warp(vm.getBlockTimestamp() + 1); // these prices are in force before the first request
        request(0, 1000 ether + 1, 64, 0); // there is always a job to pick
    }

    // ---------------------------------------------------------------- providers

    /// Proposes prices: often the same again, mostly usual ones, sometimes 0, sometimes infinite ones.
    function register(uint256 who, uint256 price) public {
        price = dice(price);
        address caller = providers[who % 2];
        ProviderPrices memory prices = ProviderPrices(price % 10 ether, price % 3 ether, price % 0.001 ether);
        if (price % 16 == 0) prices = ProviderPrices(0, price % 2, 0);
        if (price % 16 == 5) prices = ProviderPrices(price, type(uint80).max - price % 2, price);
        // a raise leaves all waiting jobs without a ceiling behind
        if (price / 16 % 4 != 0 && providerOf[caller].raisedAt != 0) prices = providerOf[caller].last;
        ProviderHardware memory hardware = ProviderHardware(
            uint64(NODES), filled(price % 64 == 7 ? 1 : NODES, 4), filled(NODES, 16), filled(NODES, 64_000)
        );
        if (!playManager(caller, abi.encodeCall(manager.register, (hardware, prices, new Label[](0))))) return;
        GhostProvider storage ghost = providerOf[caller];
        bytes32 hash = keccak256(abi.encode(hardware, prices, new Label[](0)));
        if (!ghost.waiting || hash != ghost.proposalHash) ghost.changedAt = vm.getBlockTimestamp();
        (ghost.waiting, ghost.proposed, ghost.proposalHash) = (true, prices, hash);
    }

    /// Approves mostly the proposal that was read, sometimes another hash, sometimes by address alone.
    function approve(uint256 who, uint256 chance) public {
        address provider = providers[who % 2];
        GhostProvider storage ghost = providerOf[provider];
        uint256 approvable = ghost.changedAt + 10 minutes;
        bytes32 seen = chance / 64 % 4 == 3 ? keccak256("another one") : ghost.proposalHash;
        bytes memory call = abi.encodeCall(manager.approveProposal, (provider, seen));
        bool unseen = chance / 256 % 4 == 3;
        if (unseen) {
            waitUntil(approvable - chance / 1024 % 2);
            call = abi.encodeCall(manager.approve, (provider));
        }
        if (!playManager(perhaps(operator, chance), call)) return;
        vm.assertTrue(ghost.waiting && !ghost.banned, "a waiting proposal, provider not banned");
        bool safe = unseen ? vm.getBlockTimestamp() >= approvable : seen == ghost.proposalHash;
        vm.assertTrue(safe, "only the proposal that was read, or an unchanged one");
        if (ghost.raisedAt == 0 || isDearer(ghost.proposed, ghost.last)) ghost.raisedAt = vm.getBlockTimestamp();
        (ghost.waiting, ghost.approved) = (false, true);
        ghost.inForce = ghost.proposed;
        ghost.last = ghost.proposed;
    }

    /// Prices from an endless one on count as equal.
    function isDearer(ProviderPrices memory prices, ProviderPrices memory earlier) private pure returns (bool) {
        return more(prices.gpuPricePerMin, earlier.gpuPricePerMin)
            || more(prices.cpuPricePerMin, earlier.cpuPricePerMin)
            || more(prices.memPricePerMin, earlier.memPricePerMin);
    }

    function more(uint256 price, uint256 earlier) private pure returns (bool) {
        return price > earlier && earlier < Reference.ENDLESS_PRICE;
    }

    /// Rare and soon undone, like the next two, so that jobs continue.
    function remove(uint256 who, uint256 chance) external {
        address provider = providers[who % 2];
        if (playManager(perhaps(operator, chance), abi.encodeCall(manager.remove, (provider)))) {
            GhostProvider storage ghost = providerOf[provider];
            (ghost.waiting, ghost.approved) = (false, false);
            delete ghost.inForce;
        }
        register(who, chance);
        if (chance % 3 != 0) approve(who, 1);
    }

    function ban(uint256 who, uint256 chance) external {
        address provider = providers[who % 2];
        bool passed = playManager(perhaps(operator, chance), abi.encodeCall(manager.ban, (provider)));
        if (passed) providerOf[provider].banned = true;
        if (chance % 3 != 0) unban(who, 1);
    }

    function unban(uint256 who, uint256 chance) public {
        address provider = providers[who % 2];
        bool passed = playManager(perhaps(operator, chance), abi.encodeCall(manager.unban, (provider)));
        if (passed) providerOf[provider].banned = false;
    }

    /// Any account may trigger a copy of a provider's standing, which changes nothing.
    function look(uint256 who, uint256 chance) external {
        playGrid(perhaps(nobody, chance), abi.encodeCall(rare.noteStanding, (providers[who % 2])));
    }

    // ---------------------------------------------------------------- admin and owner

    function changeConstant(uint256 which, uint256 value, uint256 chance) external {
        bytes4[6] memory setters = [
            rare.setMinimumAmount.selector,
            rare.setDeepsquareCut.selector,
            rare.setBillDurationDeltaMinute.selector,
            rare.setCancellationFeeMinute.selector,
            rare.setClaimJobTimeout.selector,
            rare.setTopUpSliceDurationMin.selector
        ];
        uint256[6] memory mosts = [uint256(150 ether), 51, 1441, 61, 120, 240];
        for (uint256 i; i < 3; ++i) {
            address caller = chance % 4 == 1 ? nobody : perhaps(owner, chance);
            bool passed = playGrid(caller, abi.encodeWithSelector(setters[which % 6], value % (mosts[which % 6] + 1)));
            if (passed) vm.assertEq(caller, owner, "only the owner sets constants");
            if (passed && which % 6 == 1) {
                (cutNoted, cutNotBefore) = (value % 52, vm.getBlockTimestamp() + 7 days);
            }
            vm.assertEq(rare.deepsquareCut(), cutInForce, "a notice changes nothing yet");
            (which, value, chance) = (which / 6, value / 7, chance / 8);
        }
    }

    /// By any account after the notice period.
    function applyCut(uint256 who, uint256 wait) external {
        uint256 now_ = vm.getBlockTimestamp();
        if (cutNotBefore > now_ && wait % 3 != 0) vm.warp(cutNotBefore - wait / 4 % 2);
        if (!playGrid(perhaps(nobody, who), abi.encodeCall(rare.applyDeepsquareCut, ()))) return;
        vm.assertTrue(cutNotBefore != 0 && vm.getBlockTimestamp() >= cutNotBefore, "after the notice period");
        (cutInForce, cutNotBefore) = (cutNoted, 0);
        vm.assertEq(rare.deepsquareCut(), cutInForce, "the announced cut");
    }

    function changeDoor(uint256 open, uint256 chance) external {
        address caller = perhaps(owner, chance);
        bool passed = playGrid(caller, abi.encodeCall(rare.setEnableRequestNewJob, (open % 4 != 0)));
        if (passed) vm.assertEq(caller, owner, "only the admin opens and closes");
        if (chance % 3 != 0) playGrid(owner, abi.encodeCall(rare.setEnableRequestNewJob, (true)));
    }

    function withdraw(uint256 amount, uint256 chance) external {
        amount %= cutHeld + 2;
        address caller = perhaps(owner, chance);
        if (!playGrid(caller, abi.encodeCall(rare.withdrawAdmin, (amount)))) return;
        vm.assertEq(caller, owner, "only the admin withdraws");
        cutHeld -= amount;
        gained[caller] += int256(amount);
    }

    // ---------------------------------------------------------------- the world

    /// Some minutes; sometimes months and years; sometimes back.
    function pass(uint256 time, uint256 kind) external {
        uint256 time_ = vm.getBlockTimestamp();
        (time, kind) = (dice(time), dice(kind));
        if (kind % 16 == 3) {
            vm.warp(time_ - time % 2 hours);
            ++backwards;
        } else if (kind % 16 == 4) {
            uint256 later = time_ + time % 1500 days;
            if (later > LAST_TIME) return;
            if (later > time_ + 194 days) ++leaps;
            vm.warp(later);
        } else {
            vm.warp(time_ + time % (kind % 3 == 0 ? 2 hours : 15 minutes));
        }
        vm.roll(block.number + 1);
    }

    /// Credits that were not requested.
    function give(uint256 amount) external {
        if (!gifts) return;
        amount %= 1000 ether;
        (bool passed,) = play(customers[1], address(credit), abi.encodeCall(credit.transfer, (address(grid), amount)));
        if (!passed) return;
        ++given;
        donated += amount;
        gained[customers[1]] -= int256(amount);
    }

    // ---------------------------------------------------------------- coverage of the history

    /// Counters so far, as JSON: [passed, refused] per selector, number of ended jobs per state, and counts of other
    /// actions.
    function reach() external view returns (string memory line) {
        for (uint256 i; i < functions.length; ++i) {
            uint256[2] memory counts = reached[functions[i]];
            string memory pair = string.concat("[", vm.toString(counts[0]), ",", vm.toString(counts[1]), "],");
            line = string.concat(line, '"', vm.toString(abi.encodePacked(functions[i])), '":', pair);
        }
        for (uint256 i = uint256(JobStatus.CANCELLED); i <= uint256(JobStatus.PANICKED); ++i) {
            line = string.concat(line, counted(vm.toString(i), ended[i]), ",");
        }
        line = string.concat(line, counted("back in time", backwards), ",", counted("by years", leaps), ",");
        line = string.concat(line, counted("releases", releases), ",", counted("gifts", given));
        line = string.concat("{", line, ",", counted("skipped items", skipped), "}");
    }

    function counted(string memory what, uint256 count) private pure returns (string memory) {
        return string.concat('"', what, '":[', vm.toString(count), "]");
    }

    /// The first function or state that a history must reach and did not; empty if it reached all.
    function missed() external view returns (string memory) {
        for (uint256 i; i < functions.length; ++i) {
            uint256[2] memory counts = reached[functions[i]];
            bool mayFail = functions[i] != credit.transfer.selector && functions[i] != rare.noteStanding.selector;
            if (counts[0] == 0 || (counts[1] == 0 && mayFail)) return vm.toString(abi.encodePacked(functions[i]));
        }
        for (uint256 i = uint256(JobStatus.CANCELLED); i <= uint256(JobStatus.PANICKED); ++i) {
            if (ended[i] == 0) return string.concat("an end in state ", vm.toString(i));
        }
        if (backwards == 0 || leaps == 0 || skipped == 0) return "jumps in time, or skipped items";
        if (releases == 0) return "a release";
        return "";
    }

    function playManager(address caller, bytes memory call) private returns (bool passed) {
        (passed,) = play(caller, address(manager), call);
        if (passed && bytes4(call) != manager.register.selector) {
            vm.assertEq(caller, operator, "only the operator changes providers");
        }
    }

    function filled(uint256 length, uint64 value) private pure returns (uint64[] memory figures) {
        figures = new uint64[](length);
        for (uint256 i; i < length; ++i) {
            figures[i] = value;
        }
    }
}
