import type { BlockBuilder, BlockName, BlockSink, Outcome, StreamRecord } from '../ports.ts';

export interface StoredRow {
  topic: string;
  partition: number;
  offset: number;
  text: string;
}

/**
 * A store that keeps every row it is given, except those of a token it has seen: as a plain ClickHouse table does.
 * A consumer that writes a record twice under different blocks shows here as two rows.
 */
export class TokenStore {
  readonly rows: StoredRow[] = [];
  /** Buffers given back while they were being written, or twice: rows of another block could go out under this token. */
  readonly misuse: string[] = [];
  readonly #tokens = new Set<string>();
  /** Called before and after rows are stored; may throw or wait. */
  onWrite: (block: BlockName, moment: 'before' | 'after') => Promise<void> | void = () => {};

  async write(block: BlockName, rows: readonly StoredRow[], transformVersion: number): Promise<void> {
    await this.onWrite(block, 'before');
    const { topic, partition, start, end, firstTimestampMs, logDecidedAtMs = '' } = block;
    const place = `${topic}|${partition}|${start}|${end - 1}|${firstTimestampMs}`;
    const token = `${place}|${transformVersion}|${logDecidedAtMs}`;
    if (!this.#tokens.has(token)) this.rows.push(...rows);
    this.#tokens.add(token);
    await this.onWrite(block, 'after');
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
    if (text.startsWith('refuse')) return { kind: 'deadLetter', reason: 'refused' };
    if (text.startsWith('drop')) return { kind: 'drop', reason: 'unwanted' };
    this.#rows.push({ topic, partition, offset, text });
    this.bytes += text.length;
    return { kind: 'ok' };
  }

  async write(block: BlockName): Promise<void> {
    try {
      await this.#store.write(block, [...this.#rows], this.#transformVersion);
    } finally {
      if (this.#released) this.#store.misuse.push('released before its write had ended');
    }
  }

  release(): void {
    if (this.#released) this.#store.misuse.push('released twice');
    this.#released = true;
  }
}

export function createTokenSink(store: TokenStore, transformVersion = 1): BlockSink {
  return {
    transformVersion,
    openBlock: (_topic, _partition, version) => new TokenBlock(store, version ?? transformVersion),
  };
}
