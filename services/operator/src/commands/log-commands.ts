import type { Addresses } from '../addresses.ts';
import type { Schemas } from '../await-schema.ts';
import type { CreateCommand } from '../command.ts';
import type { LogOpeners, StoreOpeners } from '../store-openers.ts';
import { createDeadLettersCommand } from './dead-letters.ts';
import { createDeriveCommand } from './derive.ts';
import { createOffsetsCommand } from './offsets.ts';
import { createVerifyCommand } from './verify.ts';

export interface LogCommandsContext {
  readonly addresses: Pick<Addresses, 'clickhouse'>;
  readonly topicPrefix: string;
  readonly stop: AbortSignal;
}

/** The registry is opened with the first request. */
export function createLogSources({ openLog, createSchemas }: LogOpeners) {
  let opened: Promise<Schemas> | null = null;
  const registry = () => {
    opened ??= createSchemas();
    return opened;
  };
  const schemas: Schemas = {
    idOf: async (subject, schema) => (await registry()).idOf(subject, schema),
    schemaOf: async (id) => (await registry()).schemaOf(id),
  };
  return { openLog, schemas, schemaOf: schemas.schemaOf };
}

/** `verify`, `derive`, `offsets` and `dead-letters`. */
export function createLogCommands(
  stores: LogOpeners & Pick<StoreOpeners, 'openOffsets' | 'openPublisher' | 'openErasureRecords' | 'openPeople'>,
  { addresses, topicPrefix, stop }: LogCommandsContext,
): CreateCommand[] {
  const { openOffsets, openPublisher, openErasureRecords: openRecords, openPeople } = stores;
  const shared = { topicPrefix, ...createLogSources(stores) };
  return [
    createVerifyCommand({ ...shared, openOffsets, openRecords, openPeople, clickhouse: addresses.clickhouse }),
    createDeriveCommand({ clickhouse: addresses.clickhouse }),
    createOffsetsCommand({ openOffsets }),
    createDeadLettersCommand({ ...shared, stop, openPublisher }),
  ];
}
