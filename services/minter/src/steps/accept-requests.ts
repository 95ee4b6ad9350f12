import type { MintStateRecord } from '@playline/contracts';
import { toAttemptKey } from '../lane/failed-attempts.ts';
import { toFirstState } from '../lane/lane-context.ts';
import { type MintLedger, toReferenceKey } from '../lane/mint-ledger.ts';
import type { ReceivedRequest } from '../ports.ts';

/** The result for a batch of requests. */
export interface AcceptedRequests {
  /** Must be written before the consumer offset is committed. */
  readonly states: readonly MintStateRecord[];
  /** Number of requests whose reference id is in use by another request. */
  readonly dropped: number;
  /** Number of requests that were decided before and are read again. */
  readonly known: number;
}

/** What else than the pending and minted assets of the signer decides about requests. */
export interface AcceptRules {
  readonly changedAt: number;
  /** Keys of attempts that have failed, so long ago that the ledger does not have them. */
  readonly forgotten: ReadonlySet<string>;
  /** Whether another signer of the collection uses the reference id. */
  readonly isHeldElsewhere: (request: ReceivedRequest['request']) => boolean;
}

/**
 * Decides requests in the order of their log: the first request of a reference id counts, as long as it is pending or
 * has succeeded. The claims in front of the log can be lost; this decision cannot.
 */
export function acceptRequests(
  ledger: MintLedger,
  requests: readonly ReceivedRequest[],
  { changedAt, forgotten, isHeldElsewhere }: AcceptRules,
): AcceptedRequests {
  const states: MintStateRecord[] = [];
  const taken = new Set<string>();
  let [dropped, known] = [0, 0];
  for (const placed of requests) {
    const { request } = placed;
    const reference = toReferenceKey(request);
    if (ledger.isKnown(request) || forgotten.has(toAttemptKey(request))) known++;
    else if (taken.has(reference) || ledger.isHeld(request) || isHeldElsewhere(request)) dropped++;
    else {
      taken.add(reference);
      states.push(toFirstState(placed, changedAt));
    }
  }
  return { states, dropped, known };
}
