import { once } from 'node:events';
import { connect } from 'node:net';
import { Writable } from 'node:stream';
import { createHttpApp, openHttpServer } from '@playline/http';
import { codePoint } from '@playline/testkit/code-point';
import { until } from '@playline/testkit/until';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { LiveEvent } from './event.ts';
import { EVENT_STREAM_TYPE, sendEvents, toEventText } from './event.ts';
import { NO_FILTER } from './filter.ts';
import { createLiveWorld } from './test/live-world.ts';

function parseEvents(text: string): { event: string; id: string; data: string }[] {
  const events: { event: string; id: string; data: string }[] = [];
  let [event, id, data]: [string, string, string[]] = ['', '', []];
  for (const line of text.split(/\r\n|\r|\n/)) {
    if (line === '') {
      if (data.length > 0) events.push({ event, id, data: data.join('\n') });
      [event, data] = ['', []];
      continue;
    }
    const [, name = '', value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (name === 'event') event = value;
    if (name === 'id') id = value;
    if (name === 'data') data.push(value);
  }
  return events;
}

const forged = [
  '\n\nevent: end\ndata: {"kind":"end"}\n\n',
  '\r\rdata: x\r\r',
  '\r\nid: 7\r\nretry: 1\r\n',
  'data: {"kind":"status"}\n\n',
  '\u2028\u2029\u0085\u000b\u000c',
  '</script><script>alert(1)</script>',
];

it('toEventText prevents client data from injecting events, fields or ids', () => {
  const text = fc.oneof(fc.constantFrom(...forged), fc.string({ unit: codePoint }));
  fc.assert(
    fc.property(fc.array(fc.tuple(text, text, text), { minLength: 1, maxLength: 5 }), (messages) => {
      const events = messages.map(
        ([name, id, properties]) =>
          ({
            kind: 'message',
            position: 'm-0-0',
            outcome: 'accepted',
            receivedAt: 1,
            traceId: id,
            reason: name,
            name,
            properties,
          }) as LiveEvent,
      );
      const parsed = parseEvents(events.map(toEventText).join(''));
      expect(parsed.map(({ data }) => JSON.parse(data))).toEqual(JSON.parse(JSON.stringify(events)));
      expect(parsed.every(({ event, id }) => event === '' && id === '')).toBe(true);
    }),
  );
});

function openReader(highWaterMark: number) {
  const chunks: string[] = [];
  let pendingWrite: (() => void) | null = null;
  let isReading = true;
  const stream = new Writable({
    highWaterMark,
    write: (chunk: Buffer, _, done) => {
      chunks.push(chunk.toString());
      if (isReading) done();
      else pendingWrite = done;
    },
  });
  return {
    stream,
    chunks,
    pause: () => {
      isReading = false;
    },
    resume: () => {
      isReading = true;
      pendingWrite?.();
    },
    events: () => parseEvents(chunks.join('')).map(({ data }) => JSON.parse(data) as LiveEvent),
  };
}

const request = { environmentId: 'demo', filter: NO_FILTER, shouldMask: false, isStillAllowed: () => true };

it('sendEvents writes heartbeats to an idle stream', async () => {
  const { hub } = createLiveWorld({ statusMs: 60_000 });
  const reader = openReader(1_000);
  const sending = sendEvents(hub.subscribe(request), reader.stream, 30);
  await until('two heartbeats arrive', () => reader.chunks.filter((chunk) => chunk.startsWith(':')).length >= 2);
  reader.stream.destroy();
  await sending;
});

it('sendEvents stops writing to a client that does not read, and drops and counts the oldest events', async () => {
  const { hub, send } = createLiveWorld({ queueEventsMax: 10 });
  const reader = openReader(100);
  const sending = sendEvents(hub.subscribe(request), reader.stream);
  await until('the hub polls', () => reader.events().some((event) => event.kind === 'status' && event.isWatching));
  reader.pause();
  for (let index = 0; index < 60; index++) await send({ eventName: `e-${index}` }, 0);
  await until('all messages are read', () => hub.buffered.entries === 60);
  expect(reader.stream.writableLength).toBeLessThan(5_000);
  reader.resume();
  await until('the newest message arrives', () => reader.chunks.join('').includes('"e-59"'));
  await until('events are lost', () => reader.events().some((event) => event.kind === 'status' && event.lost > 0));
  const received = reader.events().filter(({ kind }) => kind === 'message').length;
  const status = () => reader.events().findLast((event) => event.kind === 'status')!;
  await until('the counts are complete', () => status().shown + status().lost === 60);
  expect(received).toBe(status().shown);
  reader.stream.destroy();
  await sending;
});

it('the stream ends with the subscription, and the subscription ends with the stream', async () => {
  const { hub } = createLiveWorld();
  let isAllowed = true;
  const first = openReader(1_000);
  const sending = sendEvents(hub.subscribe({ ...request, isStillAllowed: () => isAllowed }), first.stream);
  isAllowed = false;
  await sending;
  expect(first.events().at(-1)).toEqual({ kind: 'end', reason: 'access revoked' });
  expect([first.stream.writableEnded, hub.subscribers]).toEqual([true, 0]);

  const second = openReader(1_000);
  const sendingAgain = sendEvents(hub.subscribe(request), second.stream);
  second.stream.destroy();
  await sendingAgain;
  expect(hub.subscribers).toBe(0);
});

it('an HTTP subscription ends when the client disconnects or the server closes', async () => {
  const { hub } = createLiveWorld();
  const app = createHttpApp({
    routes: [
      {
        method: 'GET',
        path: '/live',
        handle: async (exchange) => {
          const stream = exchange.openStream(EVENT_STREAM_TYPE);
          if (stream !== null) await sendEvents(hub.subscribe(request), stream);
        },
      },
    ],
    link: (code) => code,
  });
  const server = await openHttpServer({ app, host: '127.0.0.1', port: 0 });
  const first = connect(server.port, '127.0.0.1');
  first.write('GET /live HTTP/1.1\r\nhost: x\r\n\r\n');
  await until('the client is subscribed', () => hub.subscribers === 1);
  first.destroy();
  await until('no client is subscribed', () => hub.subscribers === 0);
  const second = connect(server.port, '127.0.0.1');
  second.write('GET /live HTTP/1.1\r\nhost: x\r\n\r\n');
  const ended = once(second, 'close');
  second.resume();
  await until('the next client is subscribed', () => hub.subscribers === 1);
  await server.close();
  await ended;
  expect(hub.subscribers).toBe(0);
});
