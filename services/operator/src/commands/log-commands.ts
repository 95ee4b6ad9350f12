import type { ErasureRecords } from '@playline/erasure';
import type { AtomicPublisher, GroupOffsets, LogReader } from '@playline/stream';
import type { Addresses, KafkaAddress, RegistryAddress } from '../addresses.ts';
import type { Schemas } from '../await-schema.ts';
import type { Command } from '../command.ts';
import { createDeadLettersCommand } from './dead-letters.ts';
import { createDeriveCommand } from './derive.ts';
import { createOffsetsCommand } from './offsets.ts';
import { createVerifyCommand } from './verify.ts';

/** Opens the log and the registry of a deployment; `@playline/stream/kafka` has all of them. */
export interface LogAdapters {
  readonly openLogReader: (options: KafkaAddress & { clientId: string }) => LogReader;
  readonly openGroupOffsets: (options: KafkaAddress & { clientId: string }) => GroupOffsets;
  readonly openAtomicPublisher: (options: KafkaAddress & { name: string }) => Promise<AtomicPublisher>;
  readonly createSchemaRegistry: (options: RegistryAddress) => Schemas;
}

export interface LogCommandsContext {
  readonly addresses: Addresses;
  readonly openRecords: () => ErasureRecords;
  /** TOPIC_PREFIX */
  readonly topicPrefix: string;
  readonly stop: AbortSignal;
}

/** What commands read of the log; the registry is opened with the first question. */
export function createLogSources(
  adapters: Pick<LogAdapters, 'openLogReader' | 'createSchemaRegistry'>,
  addresses: Addresses,
) {
  let opened: Schemas | null = null;
  const registry = () => {
    opened ??= adapters.createSchemaRegistry(addresses.registry());
    return opened;
  };
  const schemas: Schemas = {
    idOf: (subject, schema) => registry().idOf(subject, schema),
    schemaOf: (id) => registry().schemaOf(id),
  };
  return {
    openLog: () => adapters.openLogReader({ ...addresses.kafka(), clientId: 'operator' }),
    schemas,
    schemaOf: schemas.schemaOf,
  };
}

/** The commands about the log and what was made of it: `verify`, `derive`, `dead-letters` and `offsets`. */
export function createLogCommands(adapters: LogAdapters, context: LogCommandsContext): Command[] {
  const { addresses, openRecords, topicPrefix, stop } = context;
  const shared = { topicPrefix, ...createLogSources(adapters, addresses) };
  const openOffsets = () => adapters.openGroupOffsets({ ...addresses.kafka(), clientId: 'operator' });
  return [
    createVerifyCommand({ ...shared, openOffsets, openRecords, clickhouse: addresses.clickhouse }),
    createDeriveCommand({ clickhouse: addresses.clickhouse }),
    createOffsetsCommand({ openOffsets }),
    createDeadLettersCommand({
      ...shared,
      stop,
      openPublisher: (name) => adapters.openAtomicPublisher({ ...addresses.kafka(), name }),
    }),
  ];
}
