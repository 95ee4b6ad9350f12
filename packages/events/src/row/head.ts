import { IDENTITY_KEY_BYTES, ZERO_KEY } from '@playline/contracts';
import { AvroCursor } from './avro-cursor.ts';

/** The key columns of a row, in table order: owner, anonymous, user, from, to. */
export const KEYS_PER_ROW = 5;
/** Index of the anonymous key among them. */
const ANONYMOUS = 1;

/**
 * What can be asked about the row that was added last. It stores positions in the record and reads them only on demand:
 * almost every row is written without a question.
 */
export class RowHead {
  eventTimeMs = 0;
  receivedAtMs = 0;
  #source: Buffer = Buffer.alloc(0);
  readonly #cursor = new AvroCursor();
  #environmentStart = 0;
  /** Where each key begins in the record; -1 for a missing key. */
  readonly #keyStarts = new Int32Array(KEYS_PER_ROW).fill(-1);

  get environmentId(): string {
    this.#cursor.source = this.#source;
    this.#cursor.at = this.#environmentStart;
    const length = this.#cursor.size();
    return this.#source.toString('utf8', this.#cursor.at, this.#cursor.at + length);
  }

  /** Whether `test` is true for any key of the row. It gets the position of the sixteen bytes, so nothing is copied. */
  someKey(test: (source: Buffer, start: number) => boolean): boolean {
    for (let key = 0; key < KEYS_PER_ROW; key++) {
      const start = this.#keyStarts[key]!;
      if (start !== -1 && test(this.#source, start)) return true;
    }
    return false;
  }

  /**
   * Whether `test` is true for a key of somebody whom the row is about: its owner, its user, either side of an alias.
   */
  someOwnKey(test: (key: Buffer) => boolean): boolean {
    return this.#keyStarts.some((start, key) => key !== ANONYMOUS && start !== -1 && test(this.#keyAt(start)));
  }

  /** Key of the anonymous id, which may be that of a device of several people; zero bytes when there is none. */
  get anonymousKey(): Buffer {
    const start = this.#keyStarts[ANONYMOUS]!;
    return start === -1 ? ZERO_KEY : this.#keyAt(start);
  }

  #keyAt(start: number): Buffer {
    return this.#source.subarray(start, start + IDENTITY_KEY_BYTES);
  }

  /** Starts a new row. For the transcoder only. */
  begin(source: Buffer): void {
    this.#source = source;
    this.#keyStarts.fill(-1);
  }

  /** Sets where the field of the environment begins, with its length prefix. */
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
