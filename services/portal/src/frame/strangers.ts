import { PublicError } from '@playline/errors';
import { createWindowLimiter } from '@playline/rate-limit';

/**
 * A person who mistypes sends a few in a minute, an office behind one address some dozens. Each leaves some 150 bytes in
 * Redis for twelve hours at most: 6 MB for an address that never pauses.
 */
const FORMS = { name: 'forms', calls: 60, windowS: 60 };
/** Nobody clicks faster; of an account that never pauses 250 bytes a form are 22 MB in Redis, which people share. */
const MEMBER_FORMS = { name: 'forms of members', calls: 120, windowS: 60 };

/** Builds what lets forms of people in who have not signed in. Each process counts by itself. */
export function createAdmitStranger(now?: () => number): (address: string) => void {
  return createAdmit(FORMS, 'your address', now);
}

/** Builds what lets forms of people in who have signed in, by the ids of their accounts. */
export function createAdmitMember(now?: () => number): (accountId: string) => void {
  return createAdmit(MEMBER_FORMS, 'your account', now);
}

function createAdmit(forms: typeof FORMS, from: string, now?: () => number): (name: string) => void {
  const limiter = createWindowLimiter(now === undefined ? {} : { now });
  return (name) => {
    const window = limiter.window(name, forms);
    const { allowed, waitS } = window.standing();
    if (!allowed)
      throw new PublicError('TOO_MANY_REQUESTS_ERROR', {
        message: `Too many forms came from ${from}. Try again in ${waitS} seconds.`,
        retryAfterS: waitS,
      });
    window.charge(1);
  };
}
