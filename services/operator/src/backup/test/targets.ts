import { openErasureRecords, openErasureRows } from '@playline/erasure/clickhouse';
import { openMemoryPeople } from '@playline/people/memory';
import type { ClickHouseAccount } from '@playline/stores';
import { onTestFinished } from 'vitest';
import { createSqlClient } from '../../columns/tables.ts';
import type { BackupSources } from '../create-backup.ts';
import type { RestoreTargets } from '../restore-backup.ts';

/** Opens what a backup and a restore use, with an empty log, until the test is finished. */
export function openTargets(account: ClickHouseAccount): BackupSources & RestoreTargets {
  const [records, rows] = [openErasureRecords(account), openErasureRows(account)];
  onTestFinished(async () => void (await Promise.all([records.close(), rows.close()])));
  return {
    account,
    client: createSqlClient(account),
    log: { bounds: async () => [], committed: async () => new Map(), async *read() {}, close: async () => {} },
    offsets: { list: async () => [], decide: async () => {}, move: async () => true, close: async () => {} },
    schemas: { schemaOf: async () => null, idOf: async () => 1 },
    registrar: { register: async () => 1 },
    openProducer: () => Promise.reject(new Error('published')),
    readTopicSettings: async () => new Map(),
    people: openMemoryPeople(),
    records,
    rows,
    rebuild: async () => {},
    topicPrefix: '',
    secrets: new Map(),
    generation: 0,
    wallClockMs: Date.now,
    onProgress: () => {},
    signal: new AbortController().signal,
  };
}
