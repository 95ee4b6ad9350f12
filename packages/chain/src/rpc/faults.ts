import { isContractFault } from '../contract-fault.ts';
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

/** Besu answers this to a call that halts without a reason, and any node to a fault of its own. */
const INTERNAL = { code: -32603, message: /^internal error\.?$/i };

/** Whether the contract may have failed: a description is then left out, but nothing is decided for good. */
export function isMaybeContractFault(error: RpcError): boolean {
  return isContractFault(error) || (error.code === INTERNAL.code && INTERNAL.message.test(error.message));
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
