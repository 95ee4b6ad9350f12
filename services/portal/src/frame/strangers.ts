import { PublicError } from '@playline/errors';
import { createWindowLimiter } from '@playline/rate-limit';

/**
 * A person who mistypes sends a few in a minute, an office behind one address some dozens. Each leaves some 150 bytes in
 * Redis for twelve hours at most: 6 MB for an address that never pauses.
 */
const FORMS = { name: 'forms', calls: 60, windowS: 60 };

/** Builds what lets forms of people in who have not signed in. Each process counts by itself. */
export function createAdmitStranger(now?: () => number): (address: string) => void {
  const limiter = createWindowLimiter(now === undefined ? {} : { now });
  return (address) => {
    const window = limiter.window(address, FORMS);
    const { allowed, waitS } = window.standing();
    if (!allowed)
      throw new PublicError('TOO_MANY_REQUESTS_ERROR', {
        message: `Too many forms came from your address. Try again in ${waitS} seconds.`,
        retryAfterS: waitS,
      });
    window.charge(1);
  };
}
