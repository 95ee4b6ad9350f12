import { once } from 'node:events';
import { connect } from 'node:net';

/** A client without ClientInfo, which keeps its packets this short. */
const REVISION = 54_031;
const [HELLO, QUERY, DATA] = [0, 1, 2];
const COMPLETE_STAGE = 2;

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let left = value;
  for (; left >= 0x80; left >>>= 7) bytes.push((left & 0x7f) | 0x80);
  return Buffer.from([...bytes, left]);
}

const text = (value: string) => Buffer.concat([varint(Buffer.byteLength(value)), Buffer.from(value)]);
const packet = (...parts: readonly (number | string)[]) =>
  Buffer.concat(parts.map((part) => (typeof part === 'number' ? varint(part) : text(part))));

/** An empty block: block info (no overflow, bucket -1), no columns, no rows. */
const NO_DATA = Buffer.concat([packet(DATA, ''), Buffer.from([1, 0, 2, 0xff, 0xff, 0xff, 0xff, 0, 0, 0])]);

export interface NativeQuery {
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly sql: string;
}

/** Sends one query by ClickHouse's native protocol. @returns the text in what the server sent, up to a result or error */
export async function queryNatively({ port, user, password, sql }: NativeQuery): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  try {
    socket.write(packet(HELLO, 'test', 1, 1, REVISION, 'playline', user, password));
    await once(socket, 'data');
    socket.write(Buffer.concat([packet(QUERY, '', '', COMPLETE_STAGE, 0, sql), NO_DATA]));
    let seen = '';
    for await (const chunk of socket) {
      seen += (chunk as Buffer).toString('latin1');
      // An exception has its stack trace at its end; EndOfStream is a single 5.
      if (seen.includes('DB::Exception') || seen.endsWith('\x05')) break;
    }
    return seen;
  } finally {
    socket.destroy();
  }
}
