import { createNameNotes, storeOnce } from '../partitions/store-once.ts';
import type { BlockBuilder, BlockName, BlockSink, Outcome, StreamRecord } from '../ports.ts';
import { OversizeFault, RetryableFault } from '../ports.ts';

export interface StoredRow {
  topic: string;
  partition: number;
  offset: number;
  text: string;
}

/**
 * What becomes of an insert. `refused`: nothing of it stands. `halfway`: the rows of one part stand. `unanswered`: it
 * stands, and the answer is lost. `forgotten`: the token is remembered and the rows are nowhere, as with an engine that
 * dies between the two. `broken`: a fault that does not pass.
 */
export type Fate = 'stored' | 'refused' | 'halfway' | 'unanswered' | 'forgotten' | 'broken';

/** The table has parts, as a partitioned one of ClickHouse has: a token is remembered for each by itself. */
const PARTS = 2;
const partOf = (offset: number) => offset % PARTS;

/**
 * A store that keeps every row it is given, except those of a token it has seen: as a plain ClickHouse table does.
 * A consumer that writes a record twice under different blocks shows here as two rows.
 */
export class TokenStore {
  readonly rows: StoredRow[] = [];
  /** Buffers given back while they were being written, or twice: rows of another block could go out under this token. */
  readonly misuse: string[] = [];
  /** Blocks whose buffers were given back. */
  released = 0;
  /** Inserts of more rows than this are refused for their size. */
  rowsMax = Number.POSITIVE_INFINITY;
  /** Blocks take every acknowledgement for their rows, as if nobody had tried them before: a control, which loses rows. */
  withoutLook = false;
  /** Rows of each insert that was asked for. */
  readonly asked: number[] = [];
  readonly #tokens = new Set<string>();
  /** Called before and after a block is written; may throw or wait. */
  onWrite: (block: BlockName, moment: 'before' | 'after') => Promise<void> | void = () => {};
  /** Says what becomes of an insert; what it waits for, rows on their way wait for. */
  onInsert: () => Promise<Fate> | Fate = () => 'stored';

  /** @throws OversizeFault, RetryableFault, Error */
  async insert(rows: readonly StoredRow[], token: string): Promise<void> {
    this.asked.push(rows.length);
    if (rows.length > this.rowsMax) throw new OversizeFault(`${rows.length} rows are too many`);
    const fate = await this.onInsert();
    if (fate === 'broken') throw new Error('no such column');
    if (fate === 'refused') throw new RetryableFault('busy');
    for (const part of new Set(rows.map(({ offset }) => partOf(offset)))) {
      const isNew = !this.#tokens.has(`${part}|${token}`);
      this.#tokens.add(`${part}|${token}`);
      if (isNew && fate !== 'forgotten') this.rows.push(...rows.filter(({ offset }) => partOf(offset) === part));
      if (fate === 'halfway') break;
    }
    if (fate !== 'stored') throw new RetryableFault(fate);
  }

  /** Which of these rows stand, by their offsets; a row of a lost log at the same offset has another text. */
  storedOffsets(asked: readonly StoredRow[]): ReadonlySet<number> {
    const nameOf = ({ topic, partition, offset, text }: StoredRow) => JSON.stringify([topic, partition, offset, text]);
    const stored = new Set(this.rows.map(nameOf));
    return new Set(asked.filter((row) => stored.has(nameOf(row))).map(({ offset }) => offset));
  }

  /** `partition/offset` of every row, sorted; a doubled row stands twice. */
  offsets(topic: string): string[] {
    const own = this.rows.filter((row) => row.topic === topic);
    own.sort((a, b) => a.partition - b.partition || a.offset - b.offset);
    return own.map(({ partition, offset }) => `${partition}/${offset}`);
  }
}

/** Rows of one block; the texts `poison`, `drop` and `refuse` give the three other outcomes. */
class TokenBlock implements BlockBuilder {
  readonly #store: TokenStore;
  readonly #transformVersion: number;
  readonly #rows: StoredRow[] = [];
  readonly #notes = createNameNotes();
  #released = false;
  bytes = 0;

  constructor(store: TokenStore, transformVersion: number) {
    this.#store = store;
    this.#transformVersion = transformVersion;
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
    // Of this moment: rows that a released builder takes must not go out under this name.
    const rows = [...this.#rows];
    const named = (asked: readonly number[]) => asked.map((index) => rows[index]!);
    const { topic, partition, start, end, firstTimestampMs, triedBefore = false, logDecidedAtMs = '' } = block;
    const name = `${topic}|${partition}|${firstTimestampMs}|${this.#transformVersion}|${logDecidedAtMs}`;
    try {
      await store.onWrite(block, 'before');
      await storeOnce({
        ...{ start, end, notes: this.#notes },
        triedBefore: triedBefore && !store.withoutLook,
        tokenOf: (from, to) => `${name}|${from}|${to - 1}`,
        rows: {
          count: rows.length,
          offsetOf: (row) => rows[row]!.offset,
          partOf: (row) => partOf(rows[row]!.offset),
          insert: (asked, token) => store.insert(named(asked), token),
          storedOffsets: async (asked) => store.storedOffsets(named(asked)),
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

export function createTokenSink(store: TokenStore, transformVersion = 1): BlockSink {
  return {
    transformVersion,
    openBlock: (_topic, _partition, version) => new TokenBlock(store, version ?? transformVersion),
  };
}
