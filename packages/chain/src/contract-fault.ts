import type { RpcError } from './node.ts';

/** Codes of a reverted call (geth, erigon, reth) and of a failed one (nethermind, OpenEthereum). */
const CONTRACT_CODES = new Set([3, -32015]);
/**
 * How nodes report that a contract failed. A text of the contract itself only follows the word "reverted".
 * - geth, erigon, bsc: `execution reverted`, `out of gas`, `invalid opcode: INVALID`, `stack underflow (0 <=> 1)`,
 *   `invalid jump destination`, `write protection`, `return data out of bounds`, `gas uint64 overflow`
 * - reth, anvil: `EVM error: InvalidFEOpcode`, `EVM error OutOfGas`, `MemoryOOG`, `MemoryLimitOOG`, `StackUnderflow`,
 *   `out of gas: gas exhausted during memory expansion: …`
 * - nethermind: `BadInstruction`, `StackOverflow`, `InvalidJumpDestination`, `StaticCallViolation`, `AccessViolation`
 * - besu: `Execution reverted`, `Transaction processing could not be completed due to an exception (Invalid opcode: 0xfe)`
 * - hardhat, ganache: `VM Exception while processing transaction: revert`
 */
const CONTRACT_FAULT = new RegExp(
  [
    '\\b(execution|transaction|call)( was)? reverted|^(error: )?revert',
    'out ?of ?gas|OOG\\b|gas required exceeds|exceeds (the )?(block )?gas|gas cap|gas uint64 overflow',
    'stack ?(under|over)flow|stack (limit|error)|call ?too ?deep|call depth',
    'op ?code|(bad|invalid|undefined) ?instruction|invalid ?jump|bad ?jump|not ?activated|invalid ?code',
    'write protection|static ?call|state ?change ?during|access ?violation|out ?of ?bounds|out ?of ?offset',
    'precompile|vm exception|vm execution error|completed due to an exception|execution halted',
  ].join('|'),
  'i',
);

/** Whether the error of a call says that the contract failed. Every node returns this, so a retry changes nothing. */
export function isContractFault({ code, message }: Pick<RpcError, 'code' | 'message'>): boolean {
  return CONTRACT_CODES.has(code) || CONTRACT_FAULT.test(message);
}
