import type { RecordEnvelope } from './envelope.ts';
import { encodeEnvelope, KEY_BYTES } from './layout.ts';

const NO_BYTES = Buffer.alloc(0);

/**
 * The parts of records that are the same for every message of a request, encoded. Most requests differ in time and
 * trace only: a batch of one message should not pay for encoding the rest again.
 */
export class ScannedEnvelope {
  /** Frame and environmentId. */
  head: Buffer = NO_BYTES;
  /** The environment id, raw. */
  environment: Buffer = NO_BYTES;
  /** Epoch milliseconds. */
  receivedAt = 0;
  /** traceId, encoded. */
  tail: Buffer = NO_BYTES;
  /** Bytes of a record and of its key beside the strings of its message, at most. */
  bytesMax = 0;
  #schemaId = -1;
  #environmentId: string | null = null;
  #traceBytes = -1;

  turnTo(envelope: RecordEnvelope): void {
    const { schemaId, environmentId, receivedAt, traceId } = envelope;
    this.receivedAt = receivedAt;
    const isSame = schemaId === this.#schemaId && environmentId === this.#environmentId;
    if (isSame && this.#rewriteTrace(traceId)) return;
    const { head, tail, bytesMax } = encodeEnvelope(envelope);
    this.head = head;
    this.tail = tail;
    this.environment = Buffer.from(environmentId);
    this.bytesMax = bytesMax + this.environment.length + KEY_BYTES;
    this.#schemaId = schemaId;
    this.#environmentId = environmentId;
    this.#traceBytes = Buffer.byteLength(traceId);
  }

  /** A trace of as many bytes takes the place of the one before. @returns false when it has another length */
  #rewriteTrace(traceId: string): boolean {
    if (Buffer.byteLength(traceId) !== this.#traceBytes) return false;
    this.tail.write(traceId, this.tail.length - this.#traceBytes);
    return true;
  }
}
