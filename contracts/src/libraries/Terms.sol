// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {HardwareTotals, ProviderPrices, Sizes} from "../Types.sol";
import {Billing} from "./Billing.sol";
import {Bits} from "./Bits.sol";

/// @notice The terms of a job from its assignment on, in two slots. Jobs under the same version of an offer share them.
struct Terms {
    Seller seller;
    Tariff tariff;
}

// The provider, and the sums of its hardware over all nodes. From bit 0:
//
// | provider 160 | gpus 24 | cpus 32 | mem 40 |
//
// The sums are capped at 16 million GPUs, 4 billion CPUs and 1 billion GB.
type Seller is uint256;

// The prices, the platform's cut, and the fee of a cancel in minutes. From bit 0:
//
// | gpuPrice 80 | cpuPrice 80 | memPrice 80 | cutPercent 8 | feeMinutes 8 |     wei per minute
type Tariff is uint256;

using TermsFields for Seller global;
using TermsFields for Tariff global;

/// @notice Makes and reads both words.
library TermsFields {
    uint256 private constant GPUS = 160;
    uint256 private constant CPUS = 184;
    uint256 private constant MEM = 216;
    uint256 private constant CPU_PRICE = 80;
    uint256 private constant MEM_PRICE = 160;
    uint256 private constant CUT = 240;
    uint256 private constant FEE = 248;

    /// A provider with the sums over its nodes.
    function sellerOf(address provider_, HardwareTotals memory totals) internal pure returns (Seller) {
        return Seller.wrap(
            uint160(provider_) | _capped(totals.gpus, 24) << GPUS | _capped(totals.cpus, 32) << CPUS
                | _capped(totals.mem, 40) << MEM
        );
    }

    /// These prices, that cut and that fee.
    function tariffOf(ProviderPrices memory prices, uint256 cutPercent_, uint256 feeMinutes_)
        internal
        pure
        returns (Tariff)
    {
        return Tariff.wrap(
            uint256(Billing.packed(prices.gpuPricePerMin)) | uint256(Billing.packed(prices.cpuPricePerMin)) << CPU_PRICE
                | uint256(Billing.packed(prices.memPricePerMin)) << MEM_PRICE | cutPercent_ << CUT | feeMinutes_ << FEE
        );
    }

    /// The same prices with another cut and another fee.
    function withCharges(Tariff tariff, uint256 cutPercent_, uint256 feeMinutes_) internal pure returns (Tariff) {
        return Tariff.wrap(Bits.set(Bits.set(Tariff.unwrap(tariff), CUT, 8, cutPercent_), FEE, 8, feeMinutes_));
    }

    /// Whether it has that cut and that fee.
    function charges(Tariff tariff, uint256 cutPercent_, uint256 feeMinutes_) internal pure returns (bool) {
        return Tariff.unwrap(tariff) >> CUT == (feeMinutes_ << FEE - CUT | cutPercent_);
    }

    /// Whether a price is higher than in an earlier tariff.
    function isDearerThan(Tariff tariff, Tariff earlier) internal pure returns (bool) {
        (uint256 word, uint256 old) = (Tariff.unwrap(tariff), Tariff.unwrap(earlier));
        return uint80(word) > uint80(old) || uint80(word >> CPU_PRICE) > uint80(old >> CPU_PRICE)
            || uint80(word >> MEM_PRICE) > uint80(old >> MEM_PRICE);
    }

    /// The provider's address.
    function provider(Seller seller) internal pure returns (address) {
        return address(uint160(Seller.unwrap(seller)));
    }

    /// Whether all nodes together can hold the job. The fit per node is checked off chain.
    function holds(Seller seller, Sizes memory job) internal pure returns (bool) {
        uint256 word = Seller.unwrap(seller);
        HardwareTotals memory totals = HardwareTotals(
            uint64(Bits.get(word, GPUS, 24)), uint64(Bits.get(word, CPUS, 32)), uint64(Bits.get(word, MEM, 40))
        );
        return Billing.fits(job, totals);
    }

    /// Percent of a job's cost that the platform keeps.
    function cutPercent(Tariff tariff) internal pure returns (uint256) {
        return Bits.get(Tariff.unwrap(tariff), CUT, 8);
    }

    /// Minimum bill of a RUNNING job that its customer cancelled, in minutes.
    function feeMinutes(Tariff tariff) internal pure returns (uint256) {
        return Bits.get(Tariff.unwrap(tariff), FEE, 8);
    }

    /// Wei per minute of a job.
    function rateOf(Tariff tariff, Sizes memory job) internal pure returns (uint256) {
        uint256 word = Tariff.unwrap(tariff);
        ProviderPrices memory prices = ProviderPrices({
            gpuPricePerMin: Billing.unpacked(uint80(word)),
            cpuPricePerMin: Billing.unpacked(uint80(word >> CPU_PRICE)),
            memPricePerMin: Billing.unpacked(uint80(word >> MEM_PRICE))
        });
        return Billing.ratePerMinute(job, prices);
    }

    function _capped(uint256 value, uint256 width) private pure returns (uint256) {
        uint256 most = (1 << width) - 1;
        return value < most ? value : most;
    }
}
