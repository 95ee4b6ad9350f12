import { createHash, randomBytes, randomUUID } from 'node:crypto';
import type { ErasureReceipt, ErasureRequest, FoundLink } from '../records.ts';

/** Must be recent because the store drops links after a month. */
export const AT: number = Date.now();
export const newId = (): Buffer => randomBytes(16);

export const createRequest = (over: Partial<ErasureRequest> = {}): ErasureRequest => ({
  erasureId: newId(),
  environmentId: `test-${randomUUID()}`,
  subjectKeys: [newId(), newId()],
  memberKeys: [],
  cutoffAt: AT + 2_000,
  requestedAt: AT + 7,
  traceId: 'a'.repeat(32),
  ...over,
});

export const createLink = (b: Buffer): FoundLink => ({
  a: newId(),
  b,
  receivedAtMs: AT + 1,
  last: { generation: 1, offset: 77 },
  unlinkedAtMs: null,
});

export const createReceipt = (over: Partial<ErasureReceipt> = {}): ErasureReceipt => ({
  erasureId: newId(),
  environmentId: `test-${randomUUID()}`,
  closureHash: createHash('sha256').update('keys').digest(),
  closureCount: 2,
  cutoffAt: AT,
  acceptedAt: AT - 2_000,
  fencedAt: AT + 10_001,
  visiblyErasedAt: AT + 20_002,
  physicallyErasedAt: null,
  logExpiresAt: AT + 78 * 3_600_000,
  logExpiredAt: null,
  deleted: { 'clickhouse.events': 12, 'redis.i': 2 },
  verified: { 'clickhouse.events': 0, 'redis.i': 0 },
  logEnds: { 'audience.messages.v1/0': 1_234_567_890_123 },
  traceId: 'b'.repeat(32),
  ...over,
});
