import { createRecordReader, type MintRequestRecord, mintRequestCodec, type SchemaSource } from '@playline/contracts';
import type { DeadLetter, StreamRecord } from '@playline/stream';
import type { PlacedRequest } from '../ports.ts';

export interface DecodedRequests {
  readonly placed: readonly PlacedRequest[];
  readonly letters: readonly DeadLetter[];
}

/** Creates the step that decodes the requests of a batch; a record that is no request becomes a dead letter. */
export function createDecodeRequests(schemaOf: SchemaSource) {
  const readValue = createRecordReader({ schemaOf, createReader: mintRequestCodec.decoderOf });
  return async (records: readonly StreamRecord[]): Promise<DecodedRequests> => {
    const placed: PlacedRequest[] = [];
    const letters: DeadLetter[] = [];
    for (const record of records) {
      const read = await readValue(record.value);
      if (read.kind === 'unreadable') letters.push({ record, reason: read.reason });
      else placed.push({ request: toPlain(read.record), partition: record.partition, offset: record.offset });
    }
    return { placed, letters };
  };
}

/** An instance of the codec's class would not equal a record from elsewhere. */
const toPlain = (record: MintRequestRecord): MintRequestRecord => ({ ...record });
