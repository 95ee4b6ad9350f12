import { generateKeyPairSync } from 'node:crypto';
import {
  ACCESS_KEYS,
  type Change,
  parseSignerPublicKey,
  RATE_LIMIT_KEYS,
  RECORD_KINDS,
  type RecordKind,
  SIGNABLE_KEYS,
} from '@playline/access-keys';
import { createMemoryKeyUsage, createMemoryRecordLog, createMemoryRecords } from '@playline/access-keys/test';
import type { RecordSources } from '../records/record-access.ts';

export function createMemorySources<R extends Change>(kind: RecordKind<R>) {
  const [view, log] = [createMemoryRecords(kind), createMemoryRecordLog<R>()];
  const sources: RecordSources<R> = {
    kind,
    author: { changedBy: 'ada', requestId: 'r-1' },
    openView: async () => ({ ...view, ready: async () => true, close: async () => {} }),
    openLog: async () => ({ ...log, close: async () => {} }),
  };
  return { ...sources, view, log };
}

/** Creates the in-memory dependencies of the key commands, except projects. */
export function createMemoryAccess() {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    keys: createMemorySources(ACCESS_KEYS),
    rateLimitKeys: createMemorySources(RATE_LIMIT_KEYS),
    signableKeys: createMemorySources(SIGNABLE_KEYS),
    kinds: RECORD_KINDS.map((kind) => createMemorySources(kind)),
    openAccessLog: () => Promise.reject(new Error('the in-memory log has no raw records')),
    openUsage: async () => ({ ...createMemoryKeyUsage(), close: async () => {} }),
    signerKey: () => parseSignerPublicKey(JSON.stringify(publicKey.export({ format: 'jwk' }))),
  };
}
