import { EVENT_FIELDS } from './row/fields.ts';
import type { EventTable } from './store.ts';

/** A column of a block insert, and its type in the list of `input()`. */
export interface InsertColumn {
  readonly name: string;
  readonly type: string;
}

const POSITION: readonly InsertColumn[] = [
  { name: 'kafka_partition', type: 'UInt16' },
  { name: 'kafka_offset', type: 'UInt64' },
];

const toColumns = (types: Record<string, string>): InsertColumn[] =>
  Object.entries(types).map(([name, type]) => ({ name, type }));

const KEY = 'FixedString(16)';
const TIME = "DateTime64(3, 'UTC')";

/** Columns of a block insert, in order. Plain types: ClickHouse converts them to the types of the table. */
export const EVENT_TABLE_COLUMNS: Record<EventTable, readonly InsertColumn[]> = {
  events: [...EVENT_FIELDS.map(({ column, inputType }) => ({ name: column, type: inputType })), ...POSITION],
  identity_links: [
    ...toColumns({
      environment_id: 'String',
      link_generation: 'UInt8',
      link_partition: 'UInt16',
      link_offset: 'UInt64',
      step: 'UInt8',
      message_id: 'UUID',
      link: 'String',
      a_key: KEY,
      a_kind: 'String',
      b_key: KEY,
      b_kind: 'String',
      outcome: 'String',
      reason: 'String',
      person_key: KEY,
      moved_count: 'UInt16',
      event_time: TIME,
      received_at: TIME,
      trace_id: 'String',
    }),
    ...POSITION,
  ],
  identity_overrides: toColumns({
    environment_id: 'String',
    identity_key: KEY,
    person_key: KEY,
    kind: 'String',
    linked_at: TIME,
    version: 'UInt64',
  }),
  identity_unlinks: toColumns({
    environment_id: 'String',
    identity_key: KEY,
    link_generation: 'UInt8',
    link_offset: 'UInt64',
    side: 'String',
    unlinked_at: TIME,
  }),
  consent_log: [
    ...toColumns({
      environment_id: 'String',
      identity_key: KEY,
      status: 'String',
      source: 'String',
      received_at: TIME,
      logged_at: TIME,
      trace_id: 'String',
    }),
    ...POSITION,
  ],
  message_rejections: [
    ...toColumns({
      environment_id: 'String',
      code: 'String',
      field: 'String',
      surface: 'String',
      library: 'String',
      library_version: 'String',
      received_at: TIME,
      trace_id: 'String',
    }),
    ...POSITION,
  ],
  audit_log: toColumns({
    project_id: 'String',
    environment_id: 'String',
    happened_at: TIME,
    entry_id: 'String',
    kind: 'String',
    object: 'String',
    revision: 'UInt64',
    action: 'String',
    actor: 'String',
    request_id: 'String',
    address: 'String',
    detail: 'String',
  }),
};
