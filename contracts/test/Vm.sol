// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// The cheat codes of forge that these tests use, declared by hand.
interface Vm {
    struct Log {
        bytes32[] topics;
        bytes data;
        address emitter;
    }

    function prank(address sender) external;
    function startPrank(address sender) external;
    function stopPrank() external;
    function warp(uint256 timestamp) external;
    function roll(uint256 height) external;
    function etch(address place, bytes calldata code) external;
    function snapshotState() external returns (uint256);
    function revertToState(uint256 snapshot) external returns (bool);
    function getBlockTimestamp() external view returns (uint256);
    function deployCode(string calldata artifact) external returns (address);
    function deployCode(string calldata artifact, bytes calldata constructorArguments) external returns (address);
    function pauseGasMetering() external;
    function resumeGasMetering() external;
    function assume(bool condition) external pure;
    function addr(uint256 privateKey) external pure returns (address);
    function computeCreateAddress(address deployer, uint256 nonce) external pure returns (address);
    function sign(uint256 privateKey, bytes32 digest) external pure returns (uint8 v, bytes32 r, bytes32 s);
    function expectRevert(bytes4 selector) external;
    function expectRevert(bytes calldata revertData) external;
    function expectEmit(address emitter) external;
    function recordLogs() external;
    function getRecordedLogs() external returns (Log[] memory);
    function readFile(string calldata path) external view returns (string memory);
    function writeLine(string calldata path, string calldata line) external;
    function envOr(string calldata name, string calldata otherwise) external view returns (string memory);
    function toString(bytes calldata value) external pure returns (string memory);
    function toString(uint256 value) external pure returns (string memory);
    function parseJson(string calldata json, string calldata key) external pure returns (bytes memory);
    function parseJsonStringArray(string calldata json, string calldata key) external pure returns (string[] memory);
    function assertTrue(bool condition, string calldata what) external pure;
    function assertEq(uint256 left, uint256 right, string calldata what) external pure;
    function assertEq(int256 left, int256 right, string calldata what) external pure;
    function assertEq(address left, address right, string calldata what) external pure;
    function assertEq(bytes32 left, bytes32 right, string calldata what) external pure;
    function assertEq(bytes calldata left, bytes calldata right, string calldata what) external pure;
    function assertEq(string calldata left, string calldata right, string calldata what) external pure;
}

// Address of forge's cheat codes.
Vm constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));
