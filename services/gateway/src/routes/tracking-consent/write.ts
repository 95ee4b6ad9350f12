import { CONSENT_BYTES_MAX, type ConsentRecord } from '@playline/contracts';
import { type Exchange, planJsonBody, type Route, readBody, settleWithin } from '@playline/http';
import type { ApplyOutcome, IdentityKeyer } from '@playline/people';
import type { Authorise } from '../../authorise.ts';
import type { BytesInFlight, Hold } from '../../bytes-in-flight.ts';
import { CONSENT_PATH, parseWantedConsent } from './change.ts';
import type { StoreChange } from './store-change.ts';

export interface WriteConsentParts {
  /** Answers an invalid key with 400. */
  authorise: Authorise;
  bytesInFlight: BytesInFlight;
  storeChange: StoreChange;
  keyer: IdentityKeyer;
  deadlineMs: number;
  onStored: (outcome: ApplyOutcome) => void;
}

/** PUT /v1/audience/tracking-consent: specification, "Update tracking consent"; part B. */
export function createWriteConsentRoute(parts: WriteConsentParts): Route {
  const receive = createReceive(parts);
  return {
    method: 'PUT',
    path: CONSENT_PATH,
    cors: true,
    handle: async (exchange) => {
      const { environmentId } = await parts.authorise(exchange);
      const { change, hold } = await receive(exchange, environmentId);
      // It goes on behind the deadline: a change that comes to stand on the log is to be in the store too.
      const stored = parts.storeChange(change, exchange.traceparent).finally(hold.release);
      parts.onStored(await settleWithin(parts.deadlineMs, stored));
      exchange.answerEmpty(204);
    },
  };
}

/** Builds the way from body to change. Whatever goes wrong on it, the room is given back: nothing is published yet. */
function createReceive({ bytesInFlight, keyer }: WriteConsentParts) {
  return async (exchange: Exchange, environmentId: string): Promise<{ change: ConsentRecord; hold: Hold }> => {
    const plan = planJsonBody(exchange.request, CONSENT_BYTES_MAX);
    const hold = bytesInFlight.admit(plan.declaredBytes ?? CONSENT_BYTES_MAX);
    try {
      const body = await readBody(exchange.request, plan, { onBytes: hold.grow });
      const { anonymousId, status, source } = parseWantedConsent(body);
      const identityKey = keyer(environmentId, 'anonymous', anonymousId);
      const { traceId } = exchange;
      return { change: { environmentId, identityKey, status, source, receivedAt: Date.now(), traceId }, hold };
    } catch (error) {
      hold.release();
      throw error;
    }
  };
}
