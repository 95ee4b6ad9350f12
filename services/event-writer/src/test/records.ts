import type { IdentityDecisionRecord } from '@playline/contracts';
import type { StreamRecord } from '@playline/stream';

const KEY = Buffer.alloc(16, 7);

export const toDecision = (changes: Partial<IdentityDecisionRecord> = {}): IdentityDecisionRecord => ({
  environmentId: 'demo',
  generation: 0,
  partition: 0,
  offset: 5,
  step: 0,
  messageId: Buffer.alloc(16),
  link: 'alias',
  aKey: KEY,
  aKind: 'steam',
  bKey: Buffer.alloc(16, 9),
  bKind: 'epic',
  outcome: 'linked',
  reason: '',
  root: KEY,
  moved: [{ key: KEY, kind: 'steam', linkedAt: 2_000 }],
  eventTime: 1_000,
  receivedAt: 2_000,
  traceId: '',
  unlink: null,
  ...changes,
});

export const toRecord = (topic: string, value: Buffer | null, offset = 0): StreamRecord => ({
  topic,
  partition: 0,
  offset,
  timestampMs: 0,
  key: null,
  value,
  headers: {},
});
