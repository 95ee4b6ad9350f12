import { settleWithin } from '@playline/http';

const READ_MAX_MS = 2_000;

/** For values that a page can do without. Resolves to null if the read fails or takes too long. */
export const orNull = <T>(read: Promise<T>): Promise<T | null> => settleWithin(READ_MAX_MS, read).catch(() => null);
