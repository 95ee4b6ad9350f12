import type { RecordCopy } from './record-copy.ts';

/** An older answer is looked up again. With the time limit of a look-up, an ended key is refused within 750 ms. */
export const TRUST_MAX_MS = 500;
/** How long an answer is used while Redis does not answer: an outage must stop neither games nor partners. */
export const OUTAGE_TRUST_MAX_MS: number = 15 * 60 * 1000;

/** Whether a copy may be used without another look. */
export const isTrusted = ({ ageMs, isFailing }: Pick<RecordCopy<unknown>, 'ageMs' | 'isFailing'>): boolean =>
  ageMs <= (isFailing ? OUTAGE_TRUST_MAX_MS : TRUST_MAX_MS);
