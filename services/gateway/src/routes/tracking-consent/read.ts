import { type ConsentStatus, ID_CODE_POINTS_MAX } from '@playline/contracts';
import { parseQuery, type Route, settleWithin, singleValueOf } from '@playline/http';
import type { ConsentStore, IdentityKeyer } from '@playline/people';
import type { Authorise } from '../../authorise.ts';
import { requireText } from '../../text-field.ts';
import { CONSENT_PATH } from './change.ts';

export interface ReadConsentParts {
  /** Answers an invalid key with 400. */
  authorise: Authorise;
  consents: Pick<ConsentStore, 'read'>;
  keyer: IdentityKeyer;
  deadlineMs: number;
}

/** GET /v1/audience/tracking-consent: specification, "Get tracking consent"; part B. */
export function createReadConsentRoute({ authorise, consents, keyer, deadlineMs }: ReadConsentParts): Route {
  return {
    method: 'GET',
    path: CONSENT_PATH,
    cors: true,
    handle: async (exchange) => {
      const { environmentId } = await authorise(exchange);
      const given = singleValueOf(parseQuery(exchange.request.url ?? ''), 'anonymousId');
      const anonymousId = requireText(given, { field: 'anonymousId', codePointsMax: ID_CODE_POINTS_MAX });
      const key = keyer(environmentId, 'anonymous', anonymousId);
      const stored = await settleWithin(deadlineMs, consents.read(environmentId, key));
      const status: ConsentStatus = stored?.status ?? 'not_set';
      exchange.answer(200, JSON.stringify({ status }));
    },
  };
}
