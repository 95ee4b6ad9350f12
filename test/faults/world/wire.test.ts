import { once } from 'node:events';
import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { freePorts } from '@playline/infra/ports';
import { expect, it, onTestFinished } from 'vitest';
import { waitFor } from './wait.ts';
import { openWire } from './wire.ts';

async function openRecordingServer() {
  const done: string[] = [];
  const server = createServer((incoming, response) => {
    done.push(incoming.url ?? '');
    response.write('a');
    setImmediate(() => response.end('b'));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const [port = 0] = await freePorts(1);
  const wire = await openWire(port, () => (server.address() as AddressInfo).port);
  const agent = new Agent({ keepAlive: true });
  onTestFinished(async () => {
    agent.destroy();
    await wire.close();
    server.close();
  });
  const get = (path: string) =>
    new Promise<string>((resolve) => {
      const sent = request({ port, path, host: '127.0.0.1', method: 'POST', agent }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk) => {
          text += chunk;
        });
        response.on('end', () => resolve(text)).on('error', ({ message }) => resolve(message));
      });
      sent.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message)).end();
    });
  return { wire, done, get };
}

it('an open wire forwards all bytes and reports a matching request', async () => {
  const { wire, done, get } = await openRecordingServer();
  const seen = wire.sees(/\/two parts/);
  expect(await get('/one')).toBe('ab');
  expect(await get('/two%20parts')).toBe('ab');
  await seen;
  expect(done).toEqual(['/one', '/two%20parts']);
});

it('loseAnswer drops the response to a matching request that the server has handled, and no other', async () => {
  const { wire, done, get } = await openRecordingServer();
  const lost = wire.loseAnswer(/\/lost/);
  expect(await get('/kept')).toBe('ab');
  expect(await get('/lost')).toBe('ECONNRESET');
  await lost;
  expect(await get('/lost')).toBe('ab');
  expect(done).toEqual(['/kept', '/lost', '/lost']);
});

it('a frozen wire forwards no bytes until it is opened', async () => {
  const { wire, done, get } = await openRecordingServer();
  await get('/before');
  await wire.set('freeze');
  const responses = [get('/one'), get('/two')];
  await wire.set('open');
  expect(await Promise.all(responses)).toEqual(['ab', 'ab']);
  expect(done).toHaveLength(3);
});

it('a wire in mode hold-responses forwards requests and delays responses until it is opened', async () => {
  const { wire, done, get } = await openRecordingServer();
  await wire.set('hold-responses');
  let isComplete = false;
  const response = get('/held').finally(() => {
    isComplete = true;
  });
  await waitFor('the server has received the request', () => done.length === 1);
  expect(isComplete).toBe(false);
  await wire.set('open');
  expect(await response).toBe('ab');
});

it('a wire in mode refuse refuses connections, and listens on the same port after it is opened', async () => {
  const { wire, get } = await openRecordingServer();
  await get('/before');
  await wire.set('refuse');
  // The agent may send the first request on the connection that was just reset.
  await waitFor('requests are refused', async () => (await get('/refused')) === 'ECONNREFUSED');
  await wire.set('open');
  expect(await get('/after')).toBe('ab');
});
