import type { MintStateRecord } from '@playline/contracts';
import { toAttemptKey } from '../lane/failed-attempts.ts';
import { toFirstState } from '../lane/lane-context.ts';
import { type MintLedger, toReferenceKey } from '../lane/mint-ledger.ts';
import type { ReceivedRequest } from '../ports.ts';

export interface AcceptedRequests {
  /** Must be written before the offset is committed. */
  readonly states: readonly MintStateRecord[];
  /** The number of requests whose reference id is in use. */
  readonly dropped: number;
  /** The number of requests that were already handled and were read again. */
  readonly known: number;
}

export interface AcceptRules {
  readonly changedAt: number;
  /** Keys of failed attempts that are no longer in the ledger. */
  readonly forgotten: ReadonlySet<string>;
  readonly isHeldElsewhere: (request: ReceivedRequest['request']) => boolean;
}

/** Accepts the first request for a reference id in log order, unless the id is pending or minted. */
export function acceptRequests(
  ledger: MintLedger,
  requests: readonly ReceivedRequest[],
  { changedAt, forgotten, isHeldElsewhere }: AcceptRules,
): AcceptedRequests {
  const states: MintStateRecord[] = [];
  const accepted = new Set<string>();
  let [dropped, known] = [0, 0];
  for (const received of requests) {
    const { request } = received;
    const reference = toReferenceKey(request);
    if (ledger.isKnown(request) || forgotten.has(toAttemptKey(request))) known++;
    else if (accepted.has(reference) || ledger.isHeld(request) || isHeldElsewhere(request)) dropped++;
    else {
      accepted.add(reference);
      states.push(toFirstState(received, changedAt));
    }
  }
  return { states, dropped, known };
}
