import type { PortPool } from './port-pool.ts';
import { openWire, type Wire } from './wire.ts';

/** A wire before each store. */
export interface Wires {
  readonly kafka: Wire;
  readonly redis: Wire;
  readonly clickhouse: Wire;
  readonly registry: Wire;
  /** Sets every wire to `open`. */
  openAll(): Promise<void>;
  close(): Promise<void>;
}

export type Store = 'kafka' | 'redis' | 'clickhouse' | 'registry';

/** @param portOf returns the port of a store; called for each connection, so the wires may exist first */
export async function openWires(pool: PortPool, portOf: (store: Store) => number): Promise<Wires> {
  const open = (store: Store) => openWire(pool.take(), () => portOf(store));
  const [kafka, redis, clickhouse, registry] = await Promise.all([
    open('kafka'),
    open('redis'),
    open('clickhouse'),
    open('registry'),
  ]);
  const all = [kafka, redis, clickhouse, registry];
  return {
    kafka,
    redis,
    clickhouse,
    registry,
    openAll: async () => void (await Promise.all(all.map((wire) => wire.set('open')))),
    close: async () => void (await Promise.all(all.map((wire) => wire.close()))),
  };
}
