import type { Sweep } from '../places/place.ts';
import { SWEPT_TABLES } from '../places/tables.ts';
import { type ErasureRows, type ErasureTarget, type FoundRows, RowsFault } from '../rows.ts';

/** A row of a swept table: keys as bytes, times as epoch milliseconds. */
export type MemoryRow = { readonly environment_id: string } & Readonly<Record<string, unknown>>;

/** Rows in this process, for tests. */
export interface MemoryErasureRows extends ErasureRows {
  add(table: string, row: MemoryRow): void;
  rowsOf(table: string): readonly MemoryRow[];
  /** The next call that is about a batch throws this instead. */
  failNext(fault: Error): void;
}

type Cutoffs = ReadonlyMap<string, number>;
type Falls = (row: MemoryRow, column: string) => boolean;

const nameOf = (environmentId: string, key: Buffer) => `${environmentId} ${key.toString('hex')}`;

function createFalls({ times }: Sweep, cutoffs: Cutoffs): Falls {
  return (row, column) => {
    const cutoffMs = cutoffs.get(nameOf(row.environment_id, row[column] as Buffer));
    return cutoffMs !== undefined && Math.min(...times.map((time) => Number(row[time]))) <= cutoffMs;
  };
}

function findIn(table: string, rows: readonly MemoryRow[], cutoffs: Cutoffs): FoundRows[] {
  const { clearing } = SWEPT_TABLES.find(({ name }) => name === table)!;
  const falls = createFalls(clearing, cutoffs);
  const isOwn = (row: MemoryRow) => clearing.own.some((column) => falls(row, column));
  const found = new Map<string, FoundRows>();
  const count = (row: MemoryRow, column: string, as: FoundRows['as']) => {
    const [environmentId, key] = [row.environment_id, row[column] as Buffer];
    const name = `${column} ${nameOf(environmentId, key)}`;
    found.set(name, { table, column, as, environmentId, key, rows: (found.get(name)?.rows ?? 0) + 1 });
  };
  for (const row of rows) {
    for (const column of clearing.own) if (falls(row, column)) count(row, column, 'own');
    for (const { key } of clearing.carried) if (falls(row, key) && !isOwn(row)) count(row, key, 'carried');
  }
  return [...found.values()];
}

function blank(row: MemoryRow, { carried, ...rest }: Sweep, cutoffs: Cutoffs): MemoryRow {
  const falls = createFalls({ carried, ...rest }, cutoffs);
  const blanked = carried
    .filter(({ key }) => falls(row, key))
    .flatMap(({ key, texts }) => [[key, Buffer.alloc(16)] as const, ...texts.map((text) => [text, ''] as const)]);
  return { ...row, ...Object.fromEntries(blanked) };
}

function part(rows: readonly MemoryRow[], clearing: Sweep, cutoffs: Cutoffs) {
  const falls = createFalls(clearing, cutoffs);
  const isOwn = (row: MemoryRow) => clearing.own.some((column) => falls(row, column));
  const left = rows.filter((row) => !isOwn(row)).map((row) => blank(row, clearing, cutoffs));
  return { left, deleted: rows.filter(isOwn) };
}

export function openMemoryErasureRows(): MemoryErasureRows {
  const tables = new Map<string, MemoryRow[]>(SWEPT_TABLES.map(({ name }) => [name, []]));
  /** Deleted, and still there until `removeDeleted`. */
  const masked = new Map<string, MemoryRow[]>(SWEPT_TABLES.map(({ name }) => [name, []]));
  const batches = new Map<string, Map<string, number>>();
  const faults: Error[] = [];
  const begin = (batchId: Buffer): Map<string, number> => {
    const fault = faults.shift();
    if (fault !== undefined) throw fault;
    const cutoffs = batches.get(batchId.toString('hex'));
    if (cutoffs !== undefined) return cutoffs;
    throw new RowsFault('the batch has no targets: nothing was looked for', { isRetryable: false, code: 'NO_TARGETS' });
  };
  const findAll = (cutoffs: Cutoffs, rowsOf: (table: string) => readonly MemoryRow[]) =>
    [...tables.keys()].flatMap((table) => findIn(table, rowsOf(table), cutoffs));
  return {
    add: (table, row) => void tables.get(table)!.push(row),
    rowsOf: (table) => tables.get(table)!,
    failNext: (fault) => void faults.push(fault),
    async putTargets(batchId, targets: readonly ErasureTarget[]) {
      const cutoffs = batches.get(batchId.toString('hex')) ?? new Map<string, number>();
      for (const { environmentId, key, cutoffMs } of targets) {
        if (key.every((byte) => byte === 0)) throw new RangeError('nobody cannot be erased');
        const name = nameOf(environmentId, key);
        cutoffs.set(name, Math.max(cutoffMs, cutoffs.get(name) ?? cutoffMs));
      }
      if (cutoffs.size > 0) batches.set(batchId.toString('hex'), cutoffs);
    },
    async sweep(batchId) {
      const cutoffs = begin(batchId);
      const found = findAll(cutoffs, (table) => tables.get(table)!);
      for (const { name, clearing } of SWEPT_TABLES) {
        const { left, deleted } = part(tables.get(name)!, clearing, cutoffs);
        masked.get(name)!.push(...deleted);
        tables.set(name, left);
      }
      return found;
    },
    findSurvivors: async (batchId) => findAll(begin(batchId), (table) => tables.get(table)!),
    findOnDisk: async (batchId) => findAll(begin(batchId), (table) => [...tables.get(table)!, ...masked.get(table)!]),
    removeDeleted: async () => {
      for (const rows of masked.values()) rows.length = 0;
      return 0;
    },
    readBatches: async () => [...batches.keys()].map((id) => Buffer.from(id, 'hex')),
    countReplaced: async () => 0,
    dropTargets: async (batchId) => void batches.delete(batchId.toString('hex')),
    close: async () => {},
  };
}
