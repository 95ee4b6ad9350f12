import { once } from 'node:events';
import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { freePorts } from '@playline/infra/ports';
import { expect, it, onTestFinished } from 'vitest';
import { waitFor } from './wait.ts';
import { openWire } from './wire.ts';

/** A server that counts requests, a wire before it, and a client of the wire. */
async function openCounted() {
  const done: string[] = [];
  const server = createServer((incoming, answer) => {
    done.push(incoming.url ?? '');
    answer.write('a');
    setImmediate(() => answer.end('b'));
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
      const sent = request({ port, path, host: '127.0.0.1', method: 'POST', agent }, (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (chunk) => {
          text += chunk;
        });
        answer.on('end', () => resolve(text)).on('error', ({ message }) => resolve(message));
      });
      sent.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message)).end();
    });
  return { wire, done, get };
}

it('passes everything while it is open, and reports when a matching request has passed', async () => {
  const { wire, done, get } = await openCounted();
  const seen = wire.sees(/\/two parts/);
  expect(await get('/one')).toBe('ab');
  expect(await get('/two%20parts')).toBe('ab');
  await seen;
  expect(done).toEqual(['/one', '/two%20parts']);
});

it('drops the answer of the matching request only: the work is done, but the client gets no answer', async () => {
  const { wire, done, get } = await openCounted();
  const lost = wire.loseAnswer(/\/lost/);
  expect(await get('/kept')).toBe('ab');
  expect(await get('/lost')).toBe('ECONNRESET');
  await lost;
  expect(await get('/lost')).toBe('ab');
  expect(done).toEqual(['/kept', '/lost', '/lost']);
});

it('holds every byte while it is frozen, and passes all of them on when it is open again', async () => {
  const { wire, done, get } = await openCounted();
  await get('/before');
  await wire.set('freeze');
  const answers = [get('/one'), get('/two')];
  await wire.set('open');
  expect(await Promise.all(answers)).toEqual(['ab', 'ab']);
  expect(done).toHaveLength(3);
});

it('passes requests on and holds the answers', async () => {
  const { wire, done, get } = await openCounted();
  await wire.set('hold-answers');
  let answered = false;
  const answer = get('/held').finally(() => {
    answered = true;
  });
  await waitFor('the server has done it', () => done.length === 1);
  expect(answered).toBe(false);
  await wire.set('open');
  expect(await answer).toBe('ab');
});

it('refuses connections on its port, and listens there again', async () => {
  const { wire, get } = await openCounted();
  await get('/before');
  await wire.set('refuse');
  // The first request may still go out on the connection that was just reset.
  await waitFor('requests are refused', async () => (await get('/refused')) === 'ECONNREFUSED');
  await wire.set('open');
  expect(await get('/after')).toBe('ab');
});
