import { once } from 'node:events';
import { connect } from 'node:net';

/** A protocol revision without ClientInfo, so that packets are short. */
const REVISION = 54_031;
const [HELLO, QUERY, DATA] = [0, 1, 2];
const COMPLETE_STAGE = 2;

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  return Buffer.from([...bytes, rest]);
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

/** Sends one query over ClickHouse's native protocol. @returns the response as Latin-1, up to a result or error */
export async function queryNatively({ port, user, password, sql }: NativeQuery): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  try {
    socket.write(packet(HELLO, 'test', 1, 1, REVISION, 'playline', user, password));
    await once(socket, 'data');
    socket.write(Buffer.concat([packet(QUERY, '', '', COMPLETE_STAGE, 0, sql), NO_DATA]));
    let received = '';
    for await (const chunk of socket) {
      received += (chunk as Buffer).toString('latin1');
      // An exception ends with its stack trace; EndOfStream is a single byte 5.
      if (received.includes('DB::Exception') || received.endsWith('\x05')) break;
    }
    return received;
  } finally {
    socket.destroy();
  }
}
