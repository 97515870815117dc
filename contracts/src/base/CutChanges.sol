// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CutNotDue} from "../Errors.sol";
import {CutChangedEvent, CutNotedEvent} from "../Events.sol";
import {Endings} from "./Endings.sol";

/// Changes of the platform's cut. The owner gives notice; the change takes effect after the notice period, by a call
/// that anybody may make. So providers have time to finish what they hold and to leave.
abstract contract CutChanges is Endings {
    /// The highest cut that the owner may set, in percent.
    uint256 public constant MAX_DEEPSQUARE_CUT = 50;
    /// Seconds between the notice of a new cut and the first moment at which it can take effect.
    uint256 public constant CUT_NOTICE_PERIOD = 7 days;

    /// Gives notice of another cut, in percent. A later notice replaces an earlier one and starts the period anew.
    /// @param percent The cut that is to come, at most MAX_DEEPSQUARE_CUT.
    function setDeepsquareCut(uint256 percent) external onlyOwner {
        uint8 noted = uint8(_within(percent, 0, MAX_DEEPSQUARE_CUT));
        uint40 notBefore = uint40(block.timestamp + CUT_NOTICE_PERIOD);
        _cutNotice = CutNotice({percent: noted, notBefore: notBefore});
        emit CutNotedEvent(noted, notBefore);
    }

    /// Puts the cut in force of which notice was given, for assignments from now on. Anybody may call this once the
    /// notice period is over. Reverts with CutNotDue before that, and when no notice is open.
    function applyDeepsquareCut() external {
        CutNotice memory notice = _cutNotice;
        if (notice.notBefore == 0 || block.timestamp < notice.notBefore) revert CutNotDue(notice.notBefore);
        delete _cutNotice;
        deepsquareCut = notice.percent;
        emit CutChangedEvent(notice.percent);
    }

    /// The cut of which notice was given, and the first moment at which it can take effect.
    /// @return percent The cut that is to come; 0 when no notice is open.
    /// @return notBefore Unix seconds; 0 when no notice is open.
    function nextDeepsquareCut() external view returns (uint256 percent, uint256 notBefore) {
        return (_cutNotice.percent, _cutNotice.notBefore);
    }
}
