import type { PortPool } from './port-pool.ts';
import { openWire, type Wire } from './wire.ts';

const STORES = ['kafka', 'redis', 'clickhouse', 'registry'] as const;
export type Store = (typeof STORES)[number];

/** A wire before each store. */
export interface Wires extends Readonly<Record<Store, Wire>> {
  /** Sets every wire to `open`. */
  openAll(): Promise<void>;
  close(): Promise<void>;
}

/** @param portOf returns the port of a store; called for each connection, so the wires may exist first */
export async function openWires(pool: PortPool, portOf: (store: Store) => number): Promise<Wires> {
  const opened = await Promise.all(
    STORES.map(async (store) => [store, await openWire(pool.take(), () => portOf(store))] as const),
  );
  const onAll = async (action: (wire: Wire) => Promise<void>) =>
    void (await Promise.all(opened.map(([, wire]) => action(wire))));
  return {
    ...(Object.fromEntries(opened) as Record<Store, Wire>),
    openAll: () => onAll((wire) => wire.set('open')),
    close: () => onAll((wire) => wire.close()),
  };
}
