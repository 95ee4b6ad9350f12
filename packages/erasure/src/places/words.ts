/** Words and clearings that several lists of places have in common. */
import type { Place } from './place.ts';

export const WITH_ROW = 'goes with the row';
export const TIME = 'a time';
export const COUNT = 'a number';
export const ADDRESS =
  'public on the chain; whose it is, where that is known, is said by identities and events, and erased there';

/** A place that says nothing of anybody. */
export const without = (name: string, reason: string): Place => ({
  name,
  clearing: { by: 'no personal data', reason },
});

/** A place whose data disappear by themselves. */
export const expiring =
  (windowMs: number) =>
  (name: string, reason: string): Place => ({
    name,
    clearing: { by: 'ttl', windowMs, reason },
  });
