import type { IncomingMessage } from 'node:http';
import type { OutgoingRecord } from '@playline/stream';

/**
 * A batch may take at most so many bytes on the log for each byte received (head and body, decompressed). Batches of client
 * libraries take less than one. Without the bound a hundred numbers in 200 bytes would take 41: as errors told to the log.
 */
export const AMPLIFICATION_MAX = 3;

/** Framing of a record in Kafka's format 2, rounded up: attributes and the varints of length, times, key and value. */
export const RECORD_FRAME_BYTES = 12;
/** Head of a record batch in the same format. */
export const BATCH_HEAD_BYTES = 61;
/** Name and value of a header have a length byte each. */
const HEADER_FRAME_BYTES = 2;

type Headers = OutgoingRecord['headers'];

/** Bytes that the headers take in every record that has them. */
function headerBytesOf(headers: Headers): number {
  let bytes = 0;
  for (const name in headers) bytes += HEADER_FRAME_BYTES + name.length + headers[name]!.length;
  return bytes;
}

/** Bytes that the records keep in memory until they are acknowledged: each is written whole into its batch. */
export function bytesOf(records: readonly OutgoingRecord[]): number {
  let bytes = 0;
  let headers: Headers;
  let headerBytes = 0;
  for (const record of records) {
    // Records of one request share their headers.
    if (record.headers !== headers) {
      headers = record.headers;
      headerBytes = headerBytesOf(headers);
    }
    bytes += record.value.length + (record.key?.length ?? 0) + headerBytes;
  }
  return bytes;
}

/** Bytes that a batch has left on the log when its accepted messages stand there. */
export function roomOnLog(request: IncomingMessage, bodyBytes: number, accepted: readonly OutgoingRecord[]): number {
  // Each may travel in a record batch of its own.
  const taken = bytesOf(accepted) + accepted.length * (RECORD_FRAME_BYTES + BATCH_HEAD_BYTES);
  return AMPLIFICATION_MAX * (headBytesOf(request) + bodyBytes) - taken;
}

/** Colon, blank and the end of the line. */
const LINE_FRAME_BYTES = 4;
/** Two blanks, `HTTP/1.1` and the end of the line. */
const FIRST_LINE_FRAME_BYTES = 12;

/** Bytes of a request before its body. */
function headBytesOf({ method = '', url = '', rawHeaders }: IncomingMessage): number {
  const lines = rawHeaders.reduce((sum, text) => sum + text.length, 0) + (rawHeaders.length / 2) * LINE_FRAME_BYTES;
  return method.length + url.length + FIRST_LINE_FRAME_BYTES + lines + '\r\n'.length;
}
