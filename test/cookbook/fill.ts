import { messageRecordCodec, ZERO_KEY } from '@playline/contracts';
import {
  addConsentRow,
  addOverrideRows,
  addRejectionRow,
  createRowPlan,
  type EventTable,
  RowBuffer,
  RowTranscoder,
} from '@playline/events';
import { openEventStore } from '@playline/events/clickhouse';
import { encodeByCodec } from '../../services/gateway/src/test/expected-records.ts';
import type { OwnDatabase } from './own-database.ts';
import { addPropertyColumns } from './property-columns.ts';
import { createKeyOf, ENVIRONMENT, type World } from './world.ts';

/** Contains copies of some messages, which recipes must not count. */
const OTHER_ENVIRONMENT = 'staging';
const OTHER_ROWS = 500;

/** Stores the world as the event writer does, and keeps the copies of messages unmerged. */
export async function fill(database: OwnDatabase, world: World): Promise<void> {
  await addPropertyColumns(database);
  await database.command(`INSERT INTO environment_settings VALUES ('${ENVIRONMENT}', 'UTC', ['price', 'currency'], 1)`);
  await database.command('SYSTEM STOP MERGES events');
  // Rejections expire after 90 days, but the simulated rejections have fixed dates.
  await database.command('SYSTEM STOP TTL MERGES message_rejections');
  const store = openEventStore(database.target);
  const { signal } = new AbortController();
  const insert = (table: EventTable, add: (out: RowBuffer) => void) => {
    const out = new RowBuffer(1024);
    add(out);
    return store.insert({ table, rows: out.toBytes(), token: table, signal });
  };
  await insert('events', (out) => addEventRows(out, world));
  // Loaded before the links are stored, so that the dictionary does not contain the links.
  await database.command('SYSTEM RELOAD DICTIONARY identity_persons');
  await insert('identity_overrides', (out) => addLinks(out, world));
  await insert('consent_log', (out) => {
    for (const [offset, consent] of world.consents.entries())
      addConsentRow(
        out,
        { ...consent, environmentId: ENVIRONMENT, traceId: '' },
        { partition: 0, offset, timestampMs: 0 },
      );
  });
  await insert('message_rejections', (out) => {
    for (const [offset, rejection] of world.rejections.entries())
      for (const environmentId of [ENVIRONMENT, OTHER_ENVIRONMENT])
        addRejectionRow(out, { ...rejection, environmentId }, { partition: 0, offset, timestampMs: 0 });
  });
  await store.close();
}

function addEventRows(out: RowBuffer, { copies }: World): void {
  const [plan, transcoder] = [createRowPlan(messageRecordCodec.schema), new RowTranscoder()];
  let offset = 0;
  const add = (environmentId: string, { message, receivedAt, traceId }: World['copies'][number]) => {
    const envelope = { schemaId: 1, environmentId, receivedAt, traceId };
    for (const { value } of encodeByCodec([{ message }], envelope, createKeyOf(environmentId)))
      transcoder.add(out, plan, { value, partition: 0, offset: offset++ });
  };
  for (const copy of copies) add(ENVIRONMENT, copy);
  for (const copy of copies.slice(0, OTHER_ROWS)) add(OTHER_ENVIRONMENT, copy);
}

function addLinks(out: RowBuffer, { linked }: World): void {
  for (const [offset, { key, kind, person }] of linked.entries())
    addOverrideRows(out, {
      environmentId: ENVIRONMENT,
      generation: 0,
      partition: 0,
      offset,
      step: 0,
      messageId: ZERO_KEY,
      link: 'identify',
      aKey: key,
      aKind: kind,
      bKey: ZERO_KEY,
      bKind: 'untyped',
      outcome: 'linked',
      reason: '',
      eventTime: 0,
      receivedAt: 0,
      traceId: '',
      unlink: null,
      root: Buffer.from(person, 'hex'),
      moved: [{ key, kind, linkedAt: 0 }],
    });
}
