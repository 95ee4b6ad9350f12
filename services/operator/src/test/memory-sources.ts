import type { Change, RecordKind } from '@playline/access-keys';
import { createMemoryRecordLog, createMemoryRecords } from '@playline/access-keys/memory';
import type { RecordSources } from '../records/record-access.ts';

/** A view and a log in memory that outlive a command. */
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
