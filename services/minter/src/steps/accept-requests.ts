import type { MintStateRecord } from '@playline/contracts';
import { toAttemptKey } from '../lane/failed-attempts.ts';
import { toFirstState } from '../lane/lane-context.ts';
import { type MintLedger, toReferenceKey } from '../lane/mint-ledger.ts';
import type { ReceivedRequest } from '../ports.ts';

export interface AcceptedRequests {
  /** Write before committing the offset. */
  readonly states: readonly MintStateRecord[];
  /** Number of requests whose reference id is in use. */
  readonly dropped: number;
  /** Number of requests that were decided before and read again. */
  readonly known: number;
}

export interface AcceptRules {
  readonly changedAt: number;
  /** Keys of failed attempts that the ledger has forgotten. */
  readonly forgotten: ReadonlySet<string>;
  readonly isHeldElsewhere: (request: ReceivedRequest['request']) => boolean;
}

/** In log order, the first request for a reference id counts while it is pending or has succeeded. */
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
