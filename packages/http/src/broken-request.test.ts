import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { createHttpApp } from './app.ts';
import { answerBrokenRequest } from './server.ts';

it('a connection is told once of broken bytes, and left to read its answer, in however many pieces they come', async () => {
  const statuses: number[] = [];
  const app = createHttpApp({
    publishableKeyHeader: 'x-service-publishable-key',
    link: (code) => code,
    onAnswer: (_exchange, status) => statuses.push(status),
    routes: [],
  });
  let atServer: Socket | undefined;
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    atServer = socket;
    for (let piece = 0; piece < 30; piece++) answerBrokenRequest(app, new Error('no HTTP'), socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as { port: number };
  const caller = connect(port, '127.0.0.1').setEncoding('latin1');
  let text = '';
  caller.on('data', (chunk) => {
    text += chunk;
  });
  await once(caller, 'end');
  expect(text).toMatch(/^HTTP\/1\.1 400 /);
  expect([statuses, atServer?.destroyed]).toEqual([[400], false]);
});
