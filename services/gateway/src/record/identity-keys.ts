import { IDENTITY_TYPES, type IdentityKind, ZERO_KEY } from '@playline/contracts';
import { isPlaceholder, isPlaceholderBytes } from '@playline/people';
import {
  createScannedBatch,
  FIELD,
  type Field,
  isEscaped,
  ROW_SHIFT,
  type ScannedBatch,
  textOf,
} from '../scan/ranges.ts';
import type { KeyOfBytes } from './envelope.ts';

/** The two fields that name an identity; an anonymous id has no type field. */
interface IdentityFields {
  id: Field;
  type: Field | null;
}

/** The four fields in which a message may name an identity. */
export const IDENTITY_FIELDS = {
  anonymous: { id: FIELD.anonymousId, type: null },
  user: { id: FIELD.userId, type: FIELD.identityType },
  from: { id: FIELD.fromId, type: FIELD.fromType },
  to: { id: FIELD.toId, type: FIELD.toType },
  /** An id without a type that may be the message's own anonymous id. */
  fromAsAnonymous: { id: FIELD.fromId, type: null },
} as const satisfies Record<string, IdentityFields>;

function isSameText(batch: ScannedBatch, slot: number, otherSlot: number): boolean {
  const { body, starts, ends } = batch;
  const start = starts[slot]!;
  const length = ends[slot]! - start;
  const other = starts[otherSlot]!;
  if (ends[otherSlot]! - other !== length) return false;
  for (let i = 0; i < length; i++) if (body[start + i] !== body[other + i]) return false;
  return true;
}

/** True for an ASCII character that trimming does not remove. */
function isVisibleAscii(byte: number): boolean {
  return byte > 0x20 && byte < 0x80;
}

const NO_BATCH = createScannedBatch();

/**
 * Keys of the identities that the messages of a batch name in one of the four places. A batch usually comes from one
 * client, so the key of the previous message is used again when the bytes are the same.
 */
export class IdentityKeys {
  #batch: ScannedBatch = NO_BATCH;
  readonly #fields: IdentityFields;
  #keyOf: KeyOfBytes = () => ZERO_KEY;
  #last = -1;
  #key: Buffer = ZERO_KEY;

  constructor(fields: IdentityFields) {
    this.#fields = fields;
  }

  /** Starts another batch. */
  turnTo(batch: ScannedBatch, keyOf: KeyOfBytes): void {
    this.#batch = batch;
    this.#keyOf = keyOf;
    this.#last = -1;
  }

  /** @returns 16 bytes; `ZERO_KEY` itself when the field is blank or has a placeholder */
  of(message: number): Buffer {
    const slot = (message << ROW_SHIFT) + this.#fields.id;
    if (this.#batch.starts[slot] === this.#batch.ends[slot]) return ZERO_KEY;
    if (this.#last < 0 || !this.#isSameAsLast(message)) {
      this.#key = this.#compute(message);
      this.#last = message;
    }
    return this.#key;
  }

  #isSameAsLast(message: number): boolean {
    const { id, type } = this.#fields;
    const row = message << ROW_SHIFT;
    const lastRow = this.#last << ROW_SHIFT;
    if (!isSameText(this.#batch, row + id, lastRow + id)) return false;
    return type === null || isSameText(this.#batch, row + type, lastRow + type);
  }

  #compute(message: number): Buffer {
    const { body, starts, ends } = this.#batch;
    const { id } = this.#fields;
    const slot = (message << ROW_SHIFT) + id;
    const [start, end] = [starts[slot]!, ends[slot]!];
    const isPlain =
      isVisibleAscii(body[start]!) && isVisibleAscii(body[end - 1]!) && !isEscaped(this.#batch, message, id);
    if (isPlain) {
      const bytes = body.subarray(start, end);
      return isPlaceholderBytes(bytes) ? ZERO_KEY : this.#keyOf(this.#kindOf(message), bytes);
    }
    const text = textOf(this.#batch, message, id).trim();
    return isPlaceholder(text) ? ZERO_KEY : this.#keyOf(this.#kindOf(message), Buffer.from(text));
  }

  #kindOf(message: number): IdentityKind {
    if (this.#fields.type === null) return 'anonymous';
    const text = textOf(this.#batch, message, this.#fields.type);
    return IDENTITY_TYPES.find((type) => type === text) ?? 'untyped';
  }
}
