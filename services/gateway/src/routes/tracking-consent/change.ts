import { isUtf8 } from 'node:buffer';
import { CONSENT_SOURCE_CODE_POINTS_MAX, CONSENT_STATUSES, ID_CODE_POINTS_MAX } from '@playline/contracts';
import { invalidField, PublicError } from '@playline/errors';
import type { ChosenStatus } from '@playline/people';
import { requireText } from '../../text-field.ts';

export const CONSENT_PATH = '/v1/audience/tracking-consent';

/** What a caller asks for: specification, table "UpdateTrackingConsentRequest". */
export interface WantedConsent {
  readonly anonymousId: string;
  readonly status: ChosenStatus;
  readonly source: string;
}

const CHOSEN_STATUSES = CONSENT_STATUSES.filter((status): status is ChosenStatus => status !== 'not_set');
const isChosenStatus = (value: unknown): value is ChosenStatus => CHOSEN_STATUSES.some((status) => status === value);

/**
 * Reads the body of a change. Members it does not know are ignored.
 * @throws PublicError VALIDATION_ERROR, with `details.field` where one member is at fault
 */
export function parseWantedConsent(body: Buffer): WantedConsent {
  const { anonymousId, status, source } = parseObject(body);
  const wanted = {
    anonymousId: requireText(anonymousId, { field: 'anonymousId', codePointsMax: ID_CODE_POINTS_MAX }),
    source: requireText(source, { field: 'source', codePointsMax: CONSENT_SOURCE_CODE_POINTS_MAX }),
  };
  // `not_set` is the absence of a choice: it can be read, not written.
  if (!isChosenStatus(status)) throw invalidField('status', 'status must be none, anonymous or full');
  return { ...wanted, status };
}

function parseObject(body: Buffer): Record<string, unknown> {
  let document: unknown;
  try {
    // Decoding would put U+FFFD in the place of broken bytes and store what nobody sent.
    document = isUtf8(body) ? JSON.parse(body.toString('utf8')) : undefined;
  } catch {
    document = undefined;
  }
  if (document === undefined)
    throw new PublicError('VALIDATION_ERROR', { message: 'The body is not valid UTF-8 JSON.' });
  if (typeof document !== 'object' || document === null || Array.isArray(document))
    throw new PublicError('VALIDATION_ERROR', { message: 'The body must be a JSON object.' });
  return document as Record<string, unknown>;
}
