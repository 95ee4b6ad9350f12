// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// Emits arbitrary logs, including false claims, which a chain does not verify.
contract LogEmitter {
    struct Log {
        bytes32[] topics;
        bytes data;
    }

    error TooManyTopics(uint256 topics);
    error RevertedAsRequested();

    function emitLogs(Log[] calldata logs) external {
        for (uint256 i = 0; i < logs.length; ++i) _emit(logs[i].topics, logs[i].data);
    }

    /// Emits one log several times, to create blocks with many logs.
    function repeatLog(Log calldata log, uint256 times) external {
        for (uint256 i = 0; i < times; ++i) _emit(log.topics, log.data);
    }

    /// Emits a log and reverts. The failed transaction must not have logs.
    function emitAndRevert(Log calldata log) external {
        _emit(log.topics, log.data);
        revert RevertedAsRequested();
    }

    function _emit(bytes32[] memory topics, bytes memory data) private {
        uint256 count = topics.length;
        if (count > 4) revert TooManyTopics(count);
        assembly ("memory-safe") {
            let start := add(data, 32)
            let size := mload(data)
            switch count
            case 0 { log0(start, size) }
            case 1 { log1(start, size, mload(add(topics, 32))) }
            case 2 { log2(start, size, mload(add(topics, 32)), mload(add(topics, 64))) }
            case 3 { log3(start, size, mload(add(topics, 32)), mload(add(topics, 64)), mload(add(topics, 96))) }
            default {
                log4(
                    start,
                    size,
                    mload(add(topics, 32)),
                    mload(add(topics, 64)),
                    mload(add(topics, 96)),
                    mload(add(topics, 128))
                )
            }
        }
    }
}
