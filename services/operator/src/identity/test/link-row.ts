import type { LinkRow } from '../tables.ts';

export function linkRow({ a, b, ...changes }: { a: string; b: string } & Partial<Omit<LinkRow, 'a' | 'b'>>): LinkRow {
  return {
    receivedAt: 1_790_000_000_000,
    eventTime: 1_790_000_000_000,
    link: 'alias',
    a: { key: a, kind: 'steam' },
    b: { key: b, kind: 'custom' },
    outcome: 'linked',
    reason: '',
    movedCount: 1,
    messageId: '11111111-2222-3333-4444-555555555555',
    traceId: 'e'.repeat(32),
    position: { generation: 0, partition: 1, offset: 2, step: 0 },
    ...changes,
  };
}
