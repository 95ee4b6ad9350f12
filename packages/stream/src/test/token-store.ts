import { createTokenNotes, storeOnce } from '../partitions/store-once.ts';
import type { BlockBuilder, BlockName, BlockSink, Outcome, StreamRecord } from '../ports.ts';
import { OversizeFault, RetryableFault } from '../ports.ts';

export interface StoredRow {
  topic: string;
  partition: number;
  offset: number;
  text: string;
}

/**
 * Outcome of an insert. `refused`: nothing is stored. `partial`: the rows of one table partition are stored. `response
 * lost`: all rows are stored, but the call fails. `token only`: the token is stored without its rows. `broken`: a
 * permanent fault.
 */
export type InsertOutcome = 'stored' | 'refused' | 'partial' | 'response lost' | 'token only' | 'broken';

/** Tokens are stored per table partition, as in ClickHouse. */
const TABLE_PARTITIONS = 2;
const tablePartitionOf = (offset: number) => offset % TABLE_PARTITIONS;

/** A store that drops inserts with a known token, like a ClickHouse table. */
export class TokenStore {
  readonly rows: StoredRow[] = [];
  /** Buffers that were released twice or during a write, and could therefore contain rows of another block. */
  readonly misuse: string[] = [];
  released = 0;
  /** Inserts with more rows are rejected because of their size. */
  rowsMax = Number.POSITIVE_INFINITY;
  /** Trusts every acknowledgement, even for blocks that were tried before, and therefore loses rows. */
  trustsAcknowledgements = false;
  readonly insertSizes: number[] = [];
  readonly #tokens = new Set<string>();
  onWrite: (block: BlockName, phase: 'before' | 'after') => Promise<void> | void = () => {};
  onInsert: () => Promise<InsertOutcome> | InsertOutcome = () => 'stored';

  async insert(rows: readonly StoredRow[], token: string): Promise<void> {
    this.insertSizes.push(rows.length);
    if (rows.length > this.rowsMax) throw new OversizeFault(`${rows.length} rows are too many`);
    const outcome = await this.onInsert();
    if (outcome === 'broken') throw new Error('no such column');
    if (outcome === 'refused') throw new RetryableFault('busy');
    for (const tablePartition of new Set(rows.map(({ offset }) => tablePartitionOf(offset)))) {
      const isNew = !this.#tokens.has(`${tablePartition}|${token}`);
      this.#tokens.add(`${tablePartition}|${token}`);
      if (isNew && outcome !== 'token only')
        this.rows.push(...rows.filter(({ offset }) => tablePartitionOf(offset) === tablePartition));
      if (outcome === 'partial') break;
    }
    if (outcome !== 'stored') throw new RetryableFault(outcome);
  }

  /**
   * Returns the offsets of candidates that are stored. A row from a lost log at the same offset has a different text.
   */
  storedOffsets(candidates: readonly StoredRow[]): ReadonlySet<number> {
    const nameOf = ({ topic, partition, offset, text }: StoredRow) => JSON.stringify([topic, partition, offset, text]);
    const stored = new Set(this.rows.map(nameOf));
    return new Set(candidates.filter((row) => stored.has(nameOf(row))).map(({ offset }) => offset));
  }

  /** Returns `partition/offset` of every row, sorted. A duplicate row is listed twice. */
  offsets(topic: string): string[] {
    const matching = this.rows.filter((row) => row.topic === topic);
    matching.sort((a, b) => a.partition - b.partition || a.offset - b.offset);
    return matching.map(({ partition, offset }) => `${partition}/${offset}`);
  }
}

class TokenBlock implements BlockBuilder {
  readonly #store: TokenStore;
  readonly #rows: StoredRow[] = [];
  readonly #notes = createTokenNotes();
  #released = false;
  bytes = 0;

  constructor(store: TokenStore) {
    this.#store = store;
  }

  get rows(): number {
    return this.#rows.length;
  }

  add({ topic, partition, offset, value }: StreamRecord): Outcome {
    const text = value?.toString() ?? '';
    if (text.startsWith('poison')) throw new TypeError(`cannot read ${text}`);
    if (text.startsWith('refuse')) return { kind: 'deadLetter', reason: `refused: ${text}` };
    if (text.startsWith('drop')) return { kind: 'drop', reason: 'unwanted' };
    this.#rows.push({ topic, partition, offset, text });
    this.bytes += text.length;
    return { kind: 'ok' };
  }

  async write(block: BlockName): Promise<void> {
    const store = this.#store;
    // Copied, because rows that are added after a release must not be written with this token.
    const rows = [...this.#rows];
    const selectRows = (indexes: readonly number[]) => indexes.map((index) => rows[index]!);
    const { topic, partition, start, end, firstTimestampMs, transformVersion, triedBefore = false } = block;
    const name = `${topic}|${partition}|${firstTimestampMs}|${transformVersion}|${block.logDecidedAtMs ?? ''}`;
    try {
      await store.onWrite(block, 'before');
      await storeOnce({
        start,
        end,
        notes: this.#notes,
        triedBefore: triedBefore && !store.trustsAcknowledgements,
        tokenOf: (from, to) => `${name}|${from}|${to - 1}`,
        rows: {
          count: rows.length,
          offsetOf: (row) => rows[row]!.offset,
          partOf: (row) => tablePartitionOf(rows[row]!.offset),
          insert: (indexes, token) => store.insert(selectRows(indexes), token),
          storedOffsets: async (indexes) => store.storedOffsets(selectRows(indexes)),
        },
      });
      await store.onWrite(block, 'after');
    } finally {
      if (this.#released) store.misuse.push('released before its write had ended');
    }
  }

  release(): void {
    if (this.#released) this.#store.misuse.push('released twice');
    else this.#store.released++;
    this.#released = true;
  }
}

export function createTokenSink(store: TokenStore): BlockSink {
  return { transformVersion: 1, openBlock: () => new TokenBlock(store) };
}
