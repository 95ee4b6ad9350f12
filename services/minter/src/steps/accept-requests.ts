import type { MintStateRecord } from '@playline/contracts';
import { type MintLedger, toReferenceKey } from '../lane/mint-ledger.ts';
import { toFirstState } from '../lane/next-state.ts';
import type { PlacedRequest } from '../ports.ts';

/** What became of requests. */
export interface AcceptedRequests {
  /** To be written before the place in the log of requests moves on. */
  readonly states: readonly MintStateRecord[];
  /** Requests whose reference id another one has. */
  readonly dropped: number;
  /** Requests that were decided about before, and are read again. */
  readonly known: number;
}

/**
 * Decides about requests in the order of their log: of a reference id the first one counts, as long as it is pending or has
 * succeeded. Whatever claimed the reference ids before can be lost; this cannot.
 * @param isHeldElsewhere whether another signer of the collection has the reference id
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
