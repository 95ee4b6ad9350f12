import { AvroCursor } from './avro-cursor.ts';

/** Owner, anonymous, user, from and to: the columns of keys of one row, in table order. */
export const KEYS_PER_ROW = 5;
const ZERO_KEY_TEXT = '0'.repeat(32);

/**
 * What a step may ask about the row just made. Kept as places in the record, read only when asked: almost every row
 * is written unread.
 */
export class RowHead {
  eventTimeMs = 0;
  receivedAtMs = 0;
  #source: Buffer = Buffer.alloc(0);
  readonly #cursor = new AvroCursor();
  #environmentStart = 0;
  /** Where each key begins in the record; -1 for a key the record does not have. */
  readonly #keyStarts = new Int32Array(KEYS_PER_ROW).fill(-1);

  get environmentId(): string {
    this.#cursor.source = this.#source;
    this.#cursor.at = this.#environmentStart;
    const length = this.#cursor.size();
    return this.#source.toString('utf8', this.#cursor.at, this.#cursor.at + length);
  }

  /** Keys of everybody the row speaks of, hexadecimal; nobody's key is left out. */
  get keys(): string[] {
    const keys = Array.from(this.#keyStarts, (start) =>
      start === -1 ? ZERO_KEY_TEXT : this.#source.toString('hex', start, start + 16),
    );
    return keys.filter((key) => key !== ZERO_KEY_TEXT);
  }

  /** For the transcoder: forgets the row before. */
  begin(source: Buffer): void {
    this.#source = source;
    this.#keyStarts.fill(-1);
  }

  /** Where the field begins, its length first. */
  setEnvironment(start: number): void {
    this.#environmentStart = start;
  }

  setKey(index: number, start: number): void {
    this.#keyStarts[index] = start;
  }

  setTime(index: number, valueMs: number): void {
    if (index === 0) this.eventTimeMs = valueMs;
    else this.receivedAtMs = valueMs;
  }
}
