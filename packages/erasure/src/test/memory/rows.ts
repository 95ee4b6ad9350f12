import { StoreFault } from '@playline/stores';
import type { ErasureRows, ErasureTarget, FactLocation, FoundRows, SharedRows, SweepResult } from '../../rows.ts';
import type { Sweep } from '../../stores/store.ts';
import { RULINGS, SWEPT_TABLES } from '../../stores/tables.ts';

/** A row of a swept table. Keys are buffers; timestamps are epoch milliseconds. */
export type MemoryRow = { readonly environment_id: string } & Readonly<Record<string, unknown>>;

export interface MemoryErasureRows extends ErasureRows {
  add(table: string, row: MemoryRow): void;
  rowsOf(table: string): readonly MemoryRow[];
  /** Makes the next call for a batch throw this fault. */
  failNext(fault: Error): void;
}

type Cutoffs = ReadonlyMap<string, number>;
type IsErasedBy = (row: MemoryRow, column: string) => boolean;

const nameOf = (environmentId: string, key: Buffer) => `${environmentId} ${key.toString('hex')}`;

function createIsErasedBy({ timeColumns, keptRows }: Sweep, cutoffs: Cutoffs): IsErasedBy {
  return (row, column) => {
    if (keptRows?.values.includes(String(row[keptRows.column]))) return false;
    const cutoffMs = cutoffs.get(nameOf(row.environment_id, row[column] as Buffer));
    return (
      cutoffMs !== undefined &&
      timeColumns.map((name) => Number(row[name])).reduce((least, each) => Math.min(least, each)) <= cutoffMs
    );
  };
}

function findIn(table: string, rows: readonly MemoryRow[], cutoffs: Cutoffs): FoundRows[] {
  const { clearing } = SWEPT_TABLES.find(({ name }) => name === table)!;
  const isErasedBy = createIsErasedBy(clearing, cutoffs);
  const isOwn = (row: MemoryRow) => clearing.ownKeys.some((column) => isErasedBy(row, column));
  const found = new Map<string, FoundRows>();
  const count = (row: MemoryRow, column: string, as: FoundRows['as']) => {
    const [environmentId, key] = [row.environment_id, row[column] as Buffer];
    const name = `${column} ${nameOf(environmentId, key)}`;
    found.set(name, { table, column, as, environmentId, key, rows: (found.get(name)?.rows ?? 0) + 1 });
  };
  for (const row of rows) {
    for (const column of clearing.ownKeys) if (isErasedBy(row, column)) count(row, column, 'own');
    for (const { key } of clearing.carriedKeys) if (isErasedBy(row, key) && !isOwn(row)) count(row, key, 'carried');
  }
  return [...found.values()];
}

function findShared(table: string, rows: readonly MemoryRow[], cutoffs: Cutoffs): SharedRows[] {
  const { clearing } = SWEPT_TABLES.find(({ name }) => name === table)!;
  const isErasedBy = createIsErasedBy(clearing, cutoffs);
  const shared = new Map<string, SharedRows>();
  for (const row of rows) {
    const environmentId = row.environment_id;
    const keys = clearing.ownKeys.filter((column) => isErasedBy(row, column)).map((column) => row[column] as Buffer);
    if (keys.length < 2) continue;
    keys.sort(Buffer.compare);
    const name = [environmentId, ...keys.map((key) => key.toString('hex'))].join(' ');
    shared.set(name, { table, environmentId, keys, rows: (shared.get(name)?.rows ?? 0) + 1 });
  }
  return [...shared.values()];
}

function blank(row: MemoryRow, { carriedKeys, ...rest }: Sweep, cutoffs: Cutoffs): MemoryRow {
  const isErasedBy = createIsErasedBy({ carriedKeys, ...rest }, cutoffs);
  const blanked = carriedKeys
    .filter(({ key }) => isErasedBy(row, key))
    .flatMap(({ key, idColumns }) => [[key, Buffer.alloc(16)] as const, ...idColumns.map((id) => [id, ''] as const)]);
  return { ...row, ...Object.fromEntries(blanked) };
}

function partitionRows(rows: readonly MemoryRow[], clearing: Sweep, cutoffs: Cutoffs) {
  const isErasedBy = createIsErasedBy(clearing, cutoffs);
  const isOwn = (row: MemoryRow) => clearing.ownKeys.some((column) => isErasedBy(row, column));
  const remaining = rows.filter((row) => !isOwn(row)).map((row) => blank(row, clearing, cutoffs));
  return { remaining, deleted: rows.filter(isOwn) };
}

interface Store {
  readonly tables: Map<string, MemoryRow[]>;
  /** Deleted rows, which remain until `removeDeleted`. */
  readonly masked: Map<string, MemoryRow[]>;
  readonly batches: Map<string, Map<string, number>>;
  readonly sweepResults: Map<string, SweepResult>;
  readonly faults: Error[];
}

function createStore(): Store {
  const empty = () => new Map<string, MemoryRow[]>(SWEPT_TABLES.map(({ name }) => [name, []]));
  return { tables: empty(), masked: empty(), batches: new Map(), sweepResults: new Map(), faults: [] };
}

/** Returns a batch's cut-offs. @throws the fault set by `failNext` */
function beginCall({ faults, batches }: Store, batchId: Buffer): Map<string, number> {
  const fault = faults.shift();
  if (fault !== undefined) throw fault;
  const cutoffs = batches.get(batchId.toString('hex'));
  if (cutoffs !== undefined) return cutoffs;
  throw new StoreFault('The batch has no targets, so nothing was searched', { kind: 'permanent', code: 'NO_TARGETS' });
}

function sweep(store: Store, batchId: Buffer): FoundRows[] {
  const { tables, masked } = store;
  const cutoffs = beginCall(store, batchId);
  const found = [...tables].flatMap(([table, rows]) => findIn(table, rows, cutoffs));
  const shared = [...tables].flatMap(([table, rows]) => findShared(table, rows, cutoffs));
  store.sweepResults.set(batchId.toString('hex'), { found, shared });
  for (const { name, clearing } of SWEPT_TABLES) {
    const { remaining, deleted } = partitionRows(tables.get(name)!, clearing, cutoffs);
    for (const each of deleted) masked.get(name)!.push(each);
    tables.set(name, remaining);
  }
  return found;
}

const toOrder = ({ link_generation, link_offset }: MemoryRow) => {
  return { generation: Number(link_generation), offset: Number(link_offset) };
};

/** Whether the decision linked a target in the batch or found it already linked. */
function isTargetLink(row: MemoryRow, cutoffs: Cutoffs): boolean {
  const isTarget = (key: unknown) => cutoffs.has(nameOf(row.environment_id, key as Buffer));
  const isLink = (row.outcome === 'linked' || row.outcome === 'unchanged') && row.link !== 'unlink';
  return isLink && !RULINGS.includes(String(row.reason)) && (isTarget(row.a_key) || isTarget(row.b_key));
}

function createCounts(store: Store): Pick<ErasureRows, 'findSurvivors' | 'findOnDisk'> {
  const { tables, masked } = store;
  return {
    async findSurvivors(batchId) {
      const cutoffs = beginCall(store, batchId);
      return [...tables].flatMap(([table, rows]) => findIn(table, rows, cutoffs));
    },
    async findOnDisk(batchId) {
      const cutoffs = beginCall(store, batchId);
      return [...tables].flatMap(([table, rows]) => findIn(table, [...rows, ...masked.get(table)!], cutoffs));
    },
  };
}

function findLaterLinks({ tables }: Store, cutoffs: Cutoffs): FactLocation[] {
  const { clearing } = SWEPT_TABLES.find(({ name }) => name === 'identity_links')!;
  const isErasedBy = createIsErasedBy(clearing, cutoffs);
  const later = tables.get('identity_links')!.flatMap((row) => {
    if (!isTargetLink(row, cutoffs) || isErasedBy(row, 'a_key') || isErasedBy(row, 'b_key')) return [];
    const order = [row.link_generation, row.link_partition, row.link_offset].map(Number);
    const [generation, partition, offset] = order as [number, number, number];
    return [{ message: String(row.message_id), environmentId: row.environment_id, generation, partition, offset }];
  });
  const byMessage = Map.groupBy(later, ({ environmentId, message }) => `${environmentId} ${message}`);
  return [...byMessage.values()].map((copies) => {
    const [{ message: _, ...first }] = copies.sort((a, b) => a.generation - b.generation || a.offset - b.offset) as [
      (typeof copies)[number],
    ];
    return first;
  });
}

const latestOf = (times: Iterable<number>) => [...times].reduce((latest, time) => Math.max(latest, time), 0);

function createQueries(store: Store) {
  const { tables } = store;
  return {
    readFound: async (batchId) => [store.sweepResults.get(batchId.toString('hex')) ?? { found: [], shared: [] }],
    async findConsents(batchId) {
      const cutoffs = beginCall(store, batchId);
      return tables.get('consent_log')!.flatMap((row) => {
        const [environmentId, identityKey] = [row.environment_id, row.identity_key as Buffer];
        if (!cutoffs.has(nameOf(environmentId, identityKey))) return [];
        const [partition, offset, loggedAtMs] = [row.kafka_partition, row.kafka_offset, row.logged_at].map(Number);
        const position = { partition: partition!, offset: offset!, loggedAtMs: loggedAtMs! };
        return [
          { environmentId, identityKey, status: String(row.status), receivedAt: Number(row.received_at), position },
        ];
      });
    },
    async *findLinks(batchId) {
      const cutoffs = beginCall(store, batchId);
      const cutoffMs = latestOf(cutoffs.values());
      for (const row of tables.get('identity_links')!) {
        const receivedAtMs = Number(row.received_at);
        if (!isTargetLink(row, cutoffs) || receivedAtMs > cutoffMs) continue;
        const [environmentId, a, b] = [row.environment_id, row.a_key as Buffer, row.b_key as Buffer];
        yield { environmentId, a, b, receivedAtMs, last: toOrder(row) };
      }
    },
    async findUnlinks(batchId) {
      const cutoffs = beginCall(store, batchId);
      const cutoffMs = latestOf(cutoffs.values());
      return tables.get('identity_unlinks')!.flatMap((row) => {
        const [environmentId, key, side] = [row.environment_id, row.identity_key as Buffer, row.side];
        const unlinkedAtMs = Number(row.unlinked_at);
        if (!cutoffs.has(nameOf(environmentId, key)) || unlinkedAtMs > cutoffMs) return [];
        if (side !== 'split' && side !== 'stayed') return [];
        return [{ environmentId, key, side, at: toOrder(row), unlinkedAtMs }];
      });
    },
    findLaterLinks: async (batchId) => findLaterLinks(store, beginCall(store, batchId)),
  } satisfies Partial<ErasureRows>;
}

export function openMemoryErasureRows(): MemoryErasureRows {
  const store = createStore();
  const { tables, masked, batches } = store;
  return {
    ...createCounts(store),
    ...createQueries(store),
    add: (table, row) => void tables.get(table)!.push(row),
    rowsOf: (table) => tables.get(table)!,
    failNext: (fault) => void store.faults.push(fault),
    async putTargets(batchId, targets: readonly ErasureTarget[]) {
      const cutoffs = batches.get(batchId.toString('hex')) ?? new Map<string, number>();
      for (const { environmentId, key, cutoffMs } of targets) {
        if (key.every((byte) => byte === 0)) throw new RangeError('an identity key must not be zero');
        const name = nameOf(environmentId, key);
        cutoffs.set(name, Math.max(cutoffMs, cutoffs.get(name) ?? cutoffMs));
      }
      if (cutoffs.size > 0) batches.set(batchId.toString('hex'), cutoffs);
    },
    sweep: async (batchId) => sweep(store, batchId),
    readBatches: async () => [...batches.keys()].map((id) => Buffer.from(id, 'hex')),
    awaitInserts: async () => {},
    removeDeleted: async () => {
      for (const rows of masked.values()) rows.length = 0;
      return 0;
    },
    countReplaced: async () => 0,
    dropTargets: async (batchId) => {
      for (const known of [batches, store.sweepResults]) known.delete(batchId.toString('hex'));
    },
    ready: async () => true,
    close: async () => {},
  };
}
