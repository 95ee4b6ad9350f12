import { StoreFault } from '../store.ts';

/**
 * Codes that pass by themselves: time-outs and too many queries (159, 202, 203, 209), the network (210), read-only for
 * now (164, 242), memory or parts that merges give back (241 is left out on purpose: a single query's limit does not
 * change), 252, replicas and their coordination (285, 319, 425, 999). Design page "Delivery".
 */
const PASSING_CODES = new Set([159, 164, 202, 203, 209, 210, 242, 252, 285, 319, 425, 999]);

/**
 * Says what a fault of the client means. Only a numeric code that is not known to pass is final: everything else comes
 * from the network or a proxy, and the block is named, so trying again does no harm.
 */
export function toStoreFault(error: unknown): StoreFault {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const retryable = !/^\d+$/.test(code) || PASSING_CODES.has(Number(code));
  const text = error instanceof Error ? error.message : String(error);
  // The server quotes what it could not read, and rows hold identities: the first line's words only.
  const message = text.split('\n', 1)[0]!.slice(0, 200);
  return new StoreFault(`ClickHouse ${code === '' ? 'network' : code}: ${message}`, { retryable, cause: undefined });
}
