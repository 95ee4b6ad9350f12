import { openErasureRecords, openErasureRows } from '@playline/erasure/clickhouse';
import { openMemoryPeople } from '@playline/people/memory';
import type { ClickHouseAccount } from '@playline/stores';
import { createSqlClient } from '../../columns/tables.ts';
import type { BackupSources } from '../create-backup.ts';
import type { RestoreTargets } from '../restore-backup.ts';

/** Creates what a backup and a restore use, with an empty log. The caller must close `records` and `rows`. */
export function createTargets(account: ClickHouseAccount): BackupSources & RestoreTargets {
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
    records: openErasureRecords(account),
    rows: openErasureRows(account),
    rebuild: async () => {},
    topicPrefix: '',
    secrets: new Map(),
    generation: 0,
    wallClockMs: Date.now,
    onProgress: () => {},
    signal: new AbortController().signal,
  };
}
