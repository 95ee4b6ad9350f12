import { ID_CODE_POINTS_MAX, type IdentityKind } from '@playline/contracts';
import { PublicError } from '@playline/errors';
import { parseQuery, type Route, settleWithin, singleValueOf } from '@playline/http';
import { type IdentityKeyer, type RequestErasure, USER_KINDS } from '@playline/people';
import type { Authorise } from '../../authorise.ts';
import { assertIdentifies, requireText } from '../../text-field.ts';

export interface EraseRouteParts {
  /** Accepts secret keys only. */
  authorise: Authorise;
  requestErasure: RequestErasure;
  keyer: IdentityKeyer;
  deadlineMs: number;
}

/**
 * DELETE /v1/audience/data: contract, "Erasure". It takes a secret key, so
 * it has no CORS headers: no browser may call it.
 */
export function createEraseRoute({ authorise, requestErasure, keyer, deadlineMs }: EraseRouteParts): Route {
  return {
    method: 'DELETE',
    path: '/v1/audience/data',
    handle: async (exchange) => {
      const { environmentId } = await authorise(exchange);
      const { id, kinds, identity } = parseSubject(exchange.request.url ?? '');
      assertIdentifies(id, kinds[0] === 'anonymous' ? 'anonymousId' : 'userId');
      const subjectKeys = kinds.map((kind) => keyer(environmentId, kind, id));
      const { traceId, traceparent } = exchange;
      // The work goes on after the deadline: a request that reaches the topic late still needs its hold confirmed.
      const wanted = { environmentId, subjectKeys, traceId, traceparent };
      const erasureId = await settleWithin(deadlineMs, requestErasure(wanted));
      exchange.answerEmpty(202, ['x-erasure-id', erasureId, 'x-erasure-identity', identity]);
    },
  };
}

/** The subject of an erasure: one id, and every kind that it may have been sent under. */
export interface Subject {
  readonly id: string;
  readonly kinds: readonly IdentityKind[];
  /** The parameter that the service read, percent-encoded: a `+` that was sent unencoded is a `%20` here. */
  readonly identity: string;
}

/**
 * Reads the subject of an erasure from the request target.
 * @throws PublicError VALIDATION_ERROR unless exactly one of the two identifiers is given, once, not blank and not too
 *   long: contract, "Subject"
 */
export function parseSubject(target: string): Subject {
  const query = parseQuery(target);
  const anonymousId = singleValueOf(query, 'anonymousId');
  const userId = singleValueOf(query, 'userId');
  if (anonymousId !== undefined && userId !== undefined) throw invalid('Give either anonymousId or userId, not both.');
  if (anonymousId !== undefined) return toSubject('anonymousId', anonymousId, ['anonymous']);
  if (userId !== undefined) return toSubject('userId', userId, USER_KINDS);
  throw invalid('Give either anonymousId or userId.');
}

function toSubject(field: string, value: string, kinds: readonly IdentityKind[]): Subject {
  const id = requireText(value, { field, codePointsMax: ID_CODE_POINTS_MAX });
  return { id, kinds, identity: `${field}=${encodeURIComponent(id)}` };
}

function invalid(message: string): PublicError {
  return new PublicError('VALIDATION_ERROR', { message });
}
