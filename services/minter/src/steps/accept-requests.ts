import type { MintStateRecord } from '@playline/contracts';
import { toAttemptKey } from '../lane/failed-attempts.ts';
import { toFirstState } from '../lane/lane-context.ts';
import { type MintLedger, toReferenceKey } from '../lane/mint-ledger.ts';
import type { ReceivedRequest } from '../ports.ts';

export interface AcceptedRequests {
  /** Write before committing the offset. */
  readonly states: readonly MintStateRecord[];
  /** Their reference id is in use. */
  readonly dropped: number;
  /** Decided before and read again. */
  readonly known: number;
}

export interface AcceptRules {
  readonly changedAt: number;
  /** Keys of failed attempts that the ledger has forgotten. */
  readonly forgotten: ReadonlySet<string>;
  readonly isHeldElsewhere: (request: ReceivedRequest['request']) => boolean;
}

/** The first request of a reference id counts while it is pending or has succeeded, in the order of the log. */
export function acceptRequests(
  ledger: MintLedger,
  requests: readonly ReceivedRequest[],
  { changedAt, forgotten, isHeldElsewhere }: AcceptRules,
): AcceptedRequests {
  const states: MintStateRecord[] = [];
  const taken = new Set<string>();
  let [dropped, known] = [0, 0];
  for (const received of requests) {
    const { request } = received;
    const reference = toReferenceKey(request);
    if (ledger.isKnown(request) || forgotten.has(toAttemptKey(request))) known++;
    else if (taken.has(reference) || ledger.isHeld(request) || isHeldElsewhere(request)) dropped++;
    else {
      taken.add(reference);
      states.push(toFirstState(received, changedAt));
    }
  }
  return { states, dropped, known };
}
