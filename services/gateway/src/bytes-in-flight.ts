import { PublicError } from '@playline/errors';
import type { OutgoingRecord } from '@playline/stream';

/** The bytes in memory of one request. */
export interface Hold {
  /** Raises the count to `bytes`. @throws PublicError TOO_MANY_REQUESTS_ERROR when there is no room for it */
  grow(bytes: number): void;
  /** Sets the count to `bytes`, which are in memory already, even beyond the bound. */
  settle(bytes: number): void;
  /** Sets the count to zero; a second call does nothing. */
  release(): void;
}

/** Bounds the memory of everything received and not yet acknowledged by the brokers. */
export interface BytesInFlight {
  readonly held: number;
  /**
   * Admits a request that announces `expectedBytes`. Only bytes that have arrived are counted, so a caller that
   * announces many and sends none takes no room from others.
   * @throws PublicError TOO_MANY_REQUESTS_ERROR when there is no room; a lone request is always admitted
   */
  admit(expectedBytes: number): Hold;
}

export function createBytesInFlight(bytesMax: number): BytesInFlight {
  let held = 0;
  const checkRoom = (own: number, wanted: number) => {
    const others = held - own;
    if (others > 0 && others + wanted > bytesMax) throw new PublicError('TOO_MANY_REQUESTS_ERROR');
  };
  return {
    get held() {
      return held;
    },
    admit: (expectedBytes) => {
      checkRoom(0, expectedBytes);
      let own = 0;
      let released = false;
      const settle = (to: number) => {
        if (released) return;
        held += to - own;
        own = to;
      };
      return {
        settle,
        grow: (to) => {
          if (to <= own) return;
          checkRoom(own, to);
          settle(to);
        },
        release: () => {
          settle(0);
          released = true;
        },
      };
    },
  };
}

/** Name and value of a header have a length byte each. */
const HEADER_FRAME_BYTES = 2;

type Headers = OutgoingRecord['headers'];

/** Bytes that the headers take in every record that has them. */
function headerBytesOf(headers: Headers): number {
  let bytes = 0;
  for (const name in headers) bytes += HEADER_FRAME_BYTES + name.length + headers[name]!.length;
  return bytes;
}

/** Bytes that the records take in memory until they are acknowledged. */
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
