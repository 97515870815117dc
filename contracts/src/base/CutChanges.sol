// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CutNotDue} from "../Errors.sol";
import {CutChangedEvent, CutNotedEvent} from "../Events.sol";
import {IRareCalls} from "../interfaces/IRareCalls.sol";
import {Settings} from "./Settings.sol";

/// @notice Changes of the platform's cut. The owner gives notice; after the notice period anyone may put the change in
/// force. So providers have time to finish their jobs and leave.
abstract contract CutChanges is Settings, IRareCalls {
    /// @inheritdoc IRareCalls
    uint256 public constant MAX_DEEPSQUARE_CUT = 50;
    /// @inheritdoc IRareCalls
    uint256 public constant CUT_NOTICE_PERIOD = 7 days;

    /// @inheritdoc IRareCalls
    function setDeepsquareCut(uint256 percent) external onlyOwner {
        uint8 noted = uint8(_within(percent, 0, MAX_DEEPSQUARE_CUT));
        uint40 notBefore = uint40(block.timestamp + CUT_NOTICE_PERIOD);
        _cutNotice = CutNotice({percent: noted, notBefore: notBefore});
        emit CutNotedEvent(noted, notBefore);
    }

    /// @inheritdoc IRareCalls
    function applyDeepsquareCut() external {
        CutNotice memory notice = _cutNotice;
        if (notice.notBefore == 0 || block.timestamp < notice.notBefore) revert CutNotDue(notice.notBefore);
        delete _cutNotice;
        _deepsquareCut = notice.percent;
        emit CutChangedEvent(notice.percent);
    }

    /// @inheritdoc IRareCalls
    function nextDeepsquareCut() external view returns (uint256 percent, uint256 notBefore) {
        return (_cutNotice.percent, _cutNotice.notBefore);
    }
}
