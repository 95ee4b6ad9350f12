import type { Addresses } from '../addresses.ts';
import type { CreateCommand } from '../command.ts';
import { createLogSources, type LogOpeners, type StoreOpeners } from '../store-openers.ts';
import { createDeadLettersCommand } from './dead-letters.ts';
import { createDeriveCommand } from './derive.ts';
import { createOffsetsCommand } from './offsets.ts';
import { createTraceCommand } from './trace.ts';
import { createVerifyCommand } from './verify.ts';

/** `verify`, `trace`, `derive`, `offsets` and `dead-letters`. */
export function createLogCommands(
  stores: LogOpeners & Pick<StoreOpeners, 'openOffsets' | 'openPublisher' | 'openErasureRecords' | 'openPeople'>,
  {
    addresses,
    topicPrefix,
    stop,
  }: { addresses: Pick<Addresses, 'clickhouse'>; topicPrefix: string; stop: AbortSignal },
): CreateCommand[] {
  const { openOffsets, openPublisher, openErasureRecords: openRecords, openPeople } = stores;
  const shared = { topicPrefix, ...createLogSources(stores) };
  return [
    createVerifyCommand({ ...shared, openOffsets, openRecords, openPeople, clickhouse: addresses.clickhouse }),
    createTraceCommand({ ...shared, openPeople, clickhouse: addresses.clickhouse }),
    createDeriveCommand({ clickhouse: addresses.clickhouse }),
    createOffsetsCommand({ openOffsets }),
    createDeadLettersCommand({ ...shared, stop, openPublisher }),
  ];
}
