import { NodeFault, type NodeFaultKind, type RpcAnswer, type RpcError } from '../node.ts';

/**
 * Kinds of faults by the text of the message, because nodes use error codes differently. The first match counts: a
 * refusal of a range often names blocks that are "not available" too, and must still lead to a smaller range.
 */
const WORDS: readonly (readonly [RegExp, NodeFaultKind])[] = [
  [/\brate|too many requests|per second|credits|capacity|throttl|daily/i, 'busy'],
  [
    /block range|ranges? over|range (is )?too|too many|more than|limited to|response size|exceed|too (large|big|wide)|timed? ?out|max(imum)? .*(range|results|blocks|logs)/i,
    'too-much',
  ],
  [/unknown block|not found|missing|not available|pruned|beyond|after last|greater than/i, 'behind'],
];

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
    'revert|out ?of ?gas|OOG\\b|gas required exceeds|gas uint64 overflow',
    'stack ?(under|over)flow|stack (limit|error)|call ?too ?deep|call depth',
    'op ?code|(bad|invalid|undefined) ?instruction|invalid ?jump|bad ?jump|not ?activated|invalid ?code',
    'write protection|static ?call|state ?change ?during|access ?violation|out ?of ?bounds|out ?of ?offset',
    'precompile|vm exception|vm execution error|completed due to an exception|execution halted',
  ].join('|'),
  'i',
);
/** Besu answers this to a call that halts without a reason. */
const INTERNAL = { code: -32603, message: /^internal error\.?$/i };

/** Whether the error of a call says that the contract failed. Every node returns this, so a retry changes nothing. */
export function isContractFault({ code, message }: RpcError): boolean {
  if (CONTRACT_CODES.has(code)) return true;
  if (code === INTERNAL.code && INTERNAL.message.test(message)) return true;
  return CONTRACT_FAULT.test(message);
}

/** Only the kind is kept: the message of a node may quote its URL. */
export function toFault({ code, message }: RpcError): NodeFault {
  const [, kind = 'unreachable'] = WORDS.find(([pattern]) => pattern.test(message)) ?? [];
  return new NodeFault(kind, `it answered with JSON-RPC error ${Number.isFinite(code) ? code : ''} (${kind})`);
}

/** @throws NodeFault when the answer is an error */
export function resultOf(answer: RpcAnswer): unknown {
  if (!answer.ok) throw toFault(answer.error);
  return answer.result;
}
