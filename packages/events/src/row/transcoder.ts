import { FRAME_BYTES, IDENTITY_KEY_BYTES, ZERO_KEY } from '@playline/contracts';
import type { FieldKind } from '../columns.ts';
import { AvroCursor, refuse } from './avro-cursor.ts';
import type { RowPlan } from './plan.ts';
import { type RowBuffer, swapUuidBytes, TIME_MS_MAX, writeInt64, writeLength, writeUInt16 } from './row-buffer.ts';

/** The key columns of a row, in table order: owner, anonymous, user, from, to. */
const KEYS_PER_ROW = 5;
/** Index of the anonymous key. */
const ANONYMOUS = 1;

/** Keys and times of the last row. Stores only their positions, because most rows' keys are never read. */
export class RowHead {
  eventTimeMs = 0;
  receivedAtMs = 0;
  #source: Buffer = Buffer.alloc(0);
  readonly #cursor = new AvroCursor();
  #environmentStart = 0;
  /** Start of each key in the record, or -1 for a missing key. */
  readonly #keyStarts = new Int32Array(KEYS_PER_ROW).fill(-1);

  get environmentId(): string {
    this.#cursor.source = this.#source;
    this.#cursor.at = this.#environmentStart;
    const length = this.#cursor.size();
    return this.#source.toString('utf8', this.#cursor.at, this.#cursor.at + length);
  }

  /** Returns true if `test` is true for any key of the row, given the position of its sixteen bytes. */
  someKey(test: (source: Buffer, start: number) => boolean): boolean {
    for (let key = 0; key < KEYS_PER_ROW; key++) {
      const start = this.#keyStarts[key]!;
      if (start !== -1 && test(this.#source, start)) return true;
    }
    return false;
  }

  /** Returns true if `test` is true for the owner, the user or a side of an alias. */
  someOwnKey(test: (key: Buffer) => boolean): boolean {
    return this.#keyStarts.some((start, key) => key !== ANONYMOUS && start !== -1 && test(this.#keyAt(start)));
  }

  /** Key of the anonymous id, which may belong to a shared device; zero bytes if missing. */
  get anonymousKey(): Buffer {
    const start = this.#keyStarts[ANONYMOUS]!;
    return start === -1 ? ZERO_KEY : this.#keyAt(start);
  }

  #keyAt(start: number): Buffer {
    return this.#source.subarray(start, start + IDENTITY_KEY_BYTES);
  }

  begin(source: Buffer): void {
    this.#source = source;
    this.#keyStarts.fill(-1);
  }

  /** Sets the start of the environment id, including its length prefix. */
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

export interface LogPosition {
  readonly partition: number;
  readonly offset: number;
}

/** Maximum growth of a row compared with its record, due to times (8 bytes), defaults (16) and the position (10). */
const GROWTH_BYTES_MAX = 1024;
/** Maximum number of length bytes to patch in one run, at most two per string. */
const PATCHES_MAX = 256;
const AVRO_NULL = 0;
const AVRO_DOUBLE = 2;
const NULL = 1;
const NOT_NULL = 0;

/**
 * Converts framed Avro records to RowBinary rows of `events` without creating objects. Both formats have length
 * prefixes, so runs of fields are copied and only differing bytes are rewritten.
 */
export class RowTranscoder {
  readonly head = new RowHead();
  readonly #cursor = new AvroCursor();
  readonly #patchAt = new Int32Array(PATCHES_MAX);
  readonly #patchValue = new Uint8Array(PATCHES_MAX);
  #patches = 0;
  #target: Buffer = Buffer.alloc(0);
  #write = 0;
  /** Start of the run of source bytes that has not been copied yet. */
  #run = 0;
  #fieldStarts: number[] = [];

  /**
   * Adds one row.
   * @param record a Confluent frame with an Avro record of the plan's schema
   * @throws RangeError for invalid bytes, without changing `out`
   */
  add(out: RowBuffer, plan: RowPlan, record: LogPosition & { readonly value: Buffer }): void {
    const source = plan.rewrite === null ? record.value : plan.rewrite(record.value);
    out.reserve(source.length + GROWTH_BYTES_MAX);
    this.#target = out.bytes;
    this.#write = out.length;
    this.head.begin(source);
    if (plan.isInColumnOrder) this.#copyRuns(plan.kinds, source);
    else this.#copyFields(plan, source);
    const end = writeUInt16(this.#target, this.#write, record.partition);
    // An earlier exception does not change the rows or the length.
    out.endRow(writeInt64(this.#target, end, record.offset));
  }

  /** Copies records whose fields are in column order. */
  #copyRuns(kinds: readonly FieldKind[], source: Buffer): void {
    let at = FRAME_BYTES;
    this.head.setEnvironment(at);
    this.#run = at;
    this.#patches = 0;
    let keys = 0;
    let times = 0;
    for (let column = 0; column < kinds.length; column++) {
      switch (kinds[column]) {
        case 'string': {
          const first = source[at]!;
          // Most strings have one length byte in both formats.
          if (first < 128 && (first & 1) === 0) {
            this.#patch(this.#write + at - this.#run, first >> 1);
            at += 1 + (first >> 1);
          } else at = this.#longString(source, at);
          break;
        }
        case 'key':
          this.head.setKey(keys++, at);
          at += 16;
          break;
        case 'time':
          at = this.#time(source, at, times++);
          break;
        case 'uuid':
          at += 16;
          this.#flush(source, at);
          swapUuidBytes(this.#target, this.#write - 16);
          break;
        case 'boolean':
          if (source[at]! > 1) refuse();
          at += 1;
          break;
        default:
          at = this.#nullableDouble(source, at);
      }
    }
    if (at !== source.length) refuse();
    this.#flush(source, at);
  }

  #patch(at: number, value: number): void {
    this.#patchAt[this.#patches] = at;
    this.#patchValue[this.#patches++] = value;
  }

  /** Copies the run up to `end`, then replaces Avro lengths with RowBinary lengths. */
  #flush(source: Buffer, end: number): void {
    if (end > source.length) refuse();
    if (end > this.#run) source.copy(this.#target, this.#write, this.#run, end);
    this.#write += end - this.#run;
    for (let patch = 0; patch < this.#patches; patch++) this.#target[this.#patchAt[patch]!] = this.#patchValue[patch]!;
    this.#patches = 0;
    this.#run = end;
  }

  #read(source: Buffer, at: number): AvroCursor {
    this.#cursor.source = source;
    this.#cursor.at = at;
    return this.#cursor;
  }

  /** Copies a string whose length has more than one byte in Avro. */
  #longString(source: Buffer, at: number): number {
    const cursor = this.#read(source, at);
    const length = cursor.size();
    // If the length has two bytes in both formats, it can be patched as well.
    if (length >= 128 && length < 8192 && cursor.at - at === 2) {
      this.#patch(this.#write + at - this.#run, (length & 127) | 128);
      this.#patch(this.#write + at - this.#run + 1, length >> 7);
      return cursor.at + length;
    }
    this.#flush(source, at);
    this.#write = writeLength(this.#target, this.#write, length);
    this.#run = cursor.at;
    return cursor.at + length;
  }

  #time(source: Buffer, at: number, index: number): number {
    this.#flush(source, at);
    const cursor = this.#read(source, at);
    const value = cursor.long();
    if (value < 0 || value > TIME_MS_MAX) refuse();
    this.head.setTime(index, value);
    this.#write = writeInt64(this.#target, this.#write, value);
    this.#run = cursor.at;
    return cursor.at;
  }

  #nullableDouble(source: Buffer, at: number): number {
    const branch = source[at];
    const position = this.#write + at - this.#run;
    if (branch === AVRO_NULL) {
      this.#patch(position, NULL);
      return at + 1;
    }
    if (branch !== AVRO_DOUBLE) refuse();
    this.#patch(position, NOT_NULL);
    return at + 9;
  }

  /** Copies records whose fields are not in column order: finds each field, then writes column by column. */
  #copyFields(plan: RowPlan, source: Buffer): void {
    const cursor = this.#read(source, FRAME_BYTES);
    const starts = this.#fieldStarts;
    starts.length = 0;
    for (const field of plan.fields) {
      starts.push(cursor.at);
      cursor.skip(field.type);
    }
    if (cursor.at !== source.length) refuse();
    this.#patches = 0;
    let keys = 0;
    let times = 0;
    for (let column = 0; column < plan.kinds.length; column++) {
      const kind = plan.kinds[column]!;
      const start = starts[plan.fieldOfColumn[column]!];
      const index = kind === 'key' ? keys++ : kind === 'time' ? times++ : column;
      if (start === undefined) this.#writeDefault(kind);
      else this.#copyField(kind, source, { start, index });
    }
  }

  #writeDefault(kind: FieldKind): void {
    const length = kind === 'key' || kind === 'uuid' ? 16 : kind === 'time' ? 8 : 1;
    this.#target.fill(0, this.#write, this.#write + length);
    if (kind === 'nullableDouble') this.#target[this.#write] = NULL;
    this.#write += length;
  }

  /** @param field.index column index; for keys and times, the index among columns of the same kind */
  #copyField(kind: FieldKind, source: Buffer, field: { start: number; index: number }): void {
    const { start, index } = field;
    this.#run = start;
    switch (kind) {
      case 'string': {
        if (index === 0) this.head.setEnvironment(start);
        const cursor = this.#read(source, start);
        const length = cursor.size();
        this.#write = writeLength(this.#target, this.#write, length);
        this.#run = cursor.at;
        this.#flush(source, cursor.at + length);
        break;
      }
      case 'key':
        this.head.setKey(index, start);
        this.#flush(source, start + 16);
        break;
      case 'time':
        this.#time(source, start, index);
        break;
      case 'uuid':
        this.#flush(source, start + 16);
        swapUuidBytes(this.#target, this.#write - 16);
        break;
      case 'boolean':
        if (source[start]! > 1) refuse();
        this.#flush(source, start + 1);
        break;
      default:
        this.#flush(source, this.#nullableDouble(source, start));
    }
  }
}
