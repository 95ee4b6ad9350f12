import type { MintStateRecord } from '@playline/contracts';
import { type MintLedger, toReferenceKey } from '../lane/mint-ledger.ts';
import { toFirstState } from '../lane/next-state.ts';
import type { PlacedRequest } from '../ports.ts';

/** The result for a batch of requests. */
export interface AcceptedRequests {
  /** Must be written before the consumer offset is committed. */
  readonly states: readonly MintStateRecord[];
  /** Number of requests whose reference id is in use by another request. */
  readonly dropped: number;
  /** Number of requests that were decided before and are read again. */
  readonly known: number;
}

/**
 * Decides requests in the order of their log: the first request of a reference id counts, as long as it is pending or
 * has succeeded. The claims in front of the log can be lost; this decision cannot.
 * @param isHeldElsewhere whether another signer of the collection uses the reference id
 */
export function acceptRequests(
  ledger: MintLedger,
  requests: readonly PlacedRequest[],
  {
    changedAt,
    isHeldElsewhere,
  }: { changedAt: number; isHeldElsewhere: (request: PlacedRequest['request']) => boolean },
): AcceptedRequests {
  const states: MintStateRecord[] = [];
  const taken = new Set<string>();
  let [dropped, known] = [0, 0];
  for (const placed of requests) {
    const { request } = placed;
    const reference = toReferenceKey(request);
    if (ledger.isKnown(request)) known++;
    else if (taken.has(reference) || ledger.isHeld(request) || isHeldElsewhere(request)) dropped++;
    else {
      taken.add(reference);
      states.push(toFirstState(placed, changedAt));
    }
  }
  return { states, dropped, known };
}
