import { once } from 'node:events';
import { createRequire } from 'node:module';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import fc from 'fast-check';
import type { ISocketFactoryArgs } from 'kafkajs';
import { expect, it } from 'vitest';
import { createSocketFactory, ResponseReader } from './kafkajs-overrides.ts';

const { prototype } = createRequire(import.meta.url)('kafkajs/src/network/connection');

function frame(content: Uint8Array): Buffer {
  const size = Buffer.alloc(4);
  size.writeInt32BE(content.length);
  return Buffer.concat([size, content]);
}

/** Cuts bytes at the given places, whatever their order and however often they stand there. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const sorted = [0, ...places.map((place) => place % (bytes.length + 1)).sort((one, other) => one - other)];
  return sorted.map((from, index) => bytes.subarray(from, sorted[index + 1] ?? bytes.length));
}

const contents = fc.array(fc.uint8Array({ minLength: 1, maxLength: 5_000 }), { minLength: 1, maxLength: 8 });

it('answers are the same however the socket splits them, also when its buffer is reused', () => {
  fc.assert(
    fc.property(contents, fc.array(fc.nat(), { maxLength: 40 }), (answers, places) => {
      const read: Buffer[] = [];
      const reader = new ResponseReader((response) => read.push(response));
      for (const chunk of cut(Buffer.concat(answers.map(frame)), places)) {
        const lent = Buffer.from(chunk);
        reader.push(lent);
        lent.fill(0xee);
      }
      expect(read).toEqual(answers.map(frame));
    }),
  );
});

it.each([0, -1, 0x7fffffff])('an announced size of %i ends the connection with an error', async (size) => {
  const head = Buffer.alloc(4);
  head.writeInt32BE(size);
  const { socket, close } = await connectTo((peer) => peer.write(head));
  const [error] = await once(socket, 'error');
  expect(error).toBeInstanceOf(RangeError);
  close();
});

it('a socket returns whole answers, also those larger than its buffer', async () => {
  const large = Buffer.alloc(1_000_000, 'answer');
  const { socket, close } = await connectTo((peer) => peer.write(Buffer.concat([frame(large), frame(large)])));
  const received: Buffer[] = [];
  await new Promise<void>((resolve) => {
    socket.on('data', (data: Buffer) => {
      received.push(data);
      if (received.length === 2) resolve();
    });
  });
  expect(received).toEqual([frame(large), frame(large)]);
  close();
});

it('kafkajs passes a whole answer on without copying it, also after another one', () => {
  const payloads: { correlationId: number; payload: Buffer }[] = [];
  const connection = Object.assign(Object.create(prototype), {
    chunks: [],
    bytesBuffered: 0,
    bytesNeeded: 4,
    authHandlers: null,
    requestQueue: { fulfillRequest: (answer: (typeof payloads)[number]) => payloads.push(answer) },
  });
  const answers = [1, 2, 3].map((correlationId) => frame(Buffer.from([0, 0, 0, correlationId, 7, 7])));
  for (const answer of answers) connection.processData(answer);
  expect(payloads.map(({ correlationId }) => correlationId)).toEqual([1, 2, 3]);
  for (const [place, { payload }] of payloads.entries()) {
    expect(payload.buffer).toBe(answers[place]!.buffer);
    expect([...payload]).toEqual([7, 7]);
  }
});

async function connectTo(onPeer: (peer: Socket) => void): Promise<{ socket: Socket; close(): void }> {
  const server = createServer(onPeer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const options = { host: '127.0.0.1', port, onConnect: () => {} };
  const socket = createSocketFactory()(options as ISocketFactoryArgs);
  const close = () => {
    socket.destroy();
    server.close();
  };
  return { socket, close };
}
