import { type Route, settleWithin } from '@playline/http';
import type { IdentityKeyer, RequestErasure } from '@playline/people';
import type { Authorise } from '../../authorise.ts';
import { parseSubject } from './read-subject.ts';

export interface EraseRouteParts {
  /** Takes secret keys alone. */
  authorise: Authorise;
  requestErasure: RequestErasure;
  keyer: IdentityKeyer;
  deadlineMs: number;
}

/**
 * DELETE /v1/audience/data: specification, "Erase data for an identity"; part C. It takes a secret key, so
 * it has no CORS headers: no browser may call it.
 */
export function createEraseRoute({ authorise, requestErasure, keyer, deadlineMs }: EraseRouteParts): Route {
  return {
    method: 'DELETE',
    path: '/v1/audience/data',
    handle: async (exchange) => {
      const { environmentId } = await authorise(exchange);
      const { id, kinds } = parseSubject(exchange.request.url ?? '');
      const subjectKeys = kinds.map((kind) => keyer(environmentId, kind, id));
      const { traceId, traceparent } = exchange;
      // Behind the deadline it goes on: a request that comes to stand on the topic needs its hold confirmed.
      const wanted = { environmentId, subjectKeys, traceId, traceparent };
      const erasureId = await settleWithin(deadlineMs, requestErasure(wanted));
      exchange.answerEmpty(202, ['x-erasure-id', erasureId]);
    },
  };
}
