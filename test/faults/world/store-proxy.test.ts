import { once } from 'node:events';
import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { freePorts } from '@playline/infra/ports';
import { expect, it, onTestFinished } from 'vitest';
import { startStoreProxy } from './store-proxy.ts';
import { waitFor } from './wait.ts';

async function startRecordingServer() {
  const received: string[] = [];
  const server = createServer((incoming, response) => {
    received.push(incoming.url ?? '');
    response.write('a');
    setImmediate(() => response.end('b'));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const [port = 0] = await freePorts(1);
  const proxy = await startStoreProxy(port, () => (server.address() as AddressInfo).port);
  const agent = new Agent({ keepAlive: true });
  onTestFinished(async () => {
    agent.destroy();
    await proxy.close();
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
  return { proxy, received, get };
}

it('a proxy in mode open forwards all bytes, and waitForRequest resolves after a matching request', async () => {
  const { proxy, received, get } = await startRecordingServer();
  const forwarded = proxy.waitForRequest(/\/two parts/);
  expect(await get('/one')).toBe('ab');
  expect(await get('/two%20parts')).toBe('ab');
  await forwarded;
  expect(received).toEqual(['/one', '/two%20parts']);
});

it('dropResponse drops the response to the next matching request, which the server has handled', async () => {
  const { proxy, received, get } = await startRecordingServer();
  const dropped = proxy.dropResponse(/\/lost/);
  expect(await get('/kept')).toBe('ab');
  expect(await get('/lost')).toBe('ECONNRESET');
  await dropped;
  expect(await get('/lost')).toBe('ab');
  expect(received).toEqual(['/kept', '/lost', '/lost']);
});

it('a proxy in mode freeze forwards no bytes until it is set to open', async () => {
  const { proxy, received, get } = await startRecordingServer();
  await get('/before');
  await proxy.set('freeze');
  const responses = [get('/one'), get('/two')];
  await proxy.set('open');
  expect(await Promise.all(responses)).toEqual(['ab', 'ab']);
  expect(received).toHaveLength(3);
});

it('a proxy in mode hold-responses forwards requests, and delays responses until it is set to open', async () => {
  const { proxy, received, get } = await startRecordingServer();
  await proxy.set('hold-responses');
  let isComplete = false;
  const response = get('/held').finally(() => {
    isComplete = true;
  });
  await waitFor('the server has received the request', () => received.length === 1);
  expect(isComplete).toBe(false);
  await proxy.set('open');
  expect(await response).toBe('ab');
});

it('a proxy in mode refuse refuses connections, and listens on the same port when set to open', async () => {
  const { proxy, get } = await startRecordingServer();
  await get('/before');
  await proxy.set('refuse');
  // The agent may send the first request on the connection that was just reset.
  await waitFor('requests are refused', async () => (await get('/refused')) === 'ECONNREFUSED');
  await proxy.set('open');
  expect(await get('/after')).toBe('ab');
});
