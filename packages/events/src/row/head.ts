import { ZERO_KEY } from '@playline/contracts';
import { AvroCursor } from './avro-cursor.ts';

/** Owner, anonymous, user, from and to: the columns of keys of one row, in table order. */
export const KEYS_PER_ROW = 5;
const KEY_BYTES = 16;
/** Place of the anonymous key among them. */
const ANONYMOUS = 1;

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

  /** Whether `test` takes any key of the row, asked by where its sixteen bytes begin; without a copy of them. */
  someKey(test: (source: Buffer, start: number) => boolean): boolean {
    for (let key = 0; key < KEYS_PER_ROW; key++) {
      const start = this.#keyStarts[key]!;
      if (start !== -1 && test(this.#source, start)) return true;
    }
    return false;
  }

  /** Whether `test` takes the key of anybody whom the row is about: its owner, its user, either side of an alias. */
  someOwnKey(test: (key: Buffer) => boolean): boolean {
    return this.#keyStarts.some((start, key) => key !== ANONYMOUS && start !== -1 && test(this.#keyAt(start)));
  }

  /** Key of the anonymous id, which may be that of a device of several people; zero bytes when there is none. */
  get anonymousKey(): Buffer {
    const start = this.#keyStarts[ANONYMOUS]!;
    return start === -1 ? ZERO_KEY : this.#keyAt(start);
  }

  #keyAt(start: number): Buffer {
    return this.#source.subarray(start, start + KEY_BYTES);
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
