import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { TOPICS } from '@playline/contracts';
import { sendDeadLetters } from '@playline/stream';
import { openAtomicPublisher, openLogReader } from '@playline/stream/kafka';
import { messageRecordOf, until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { settleDeadLetters } from '../commands/dead-letters.ts';
import { type LogFixture, openLogFixture } from '../test/log-fixture.ts';
import { REPLAYED_FROM } from './dead-letters.ts';

const MESSAGES = TOPICS.messages.name;
const CONSENTS = TOPICS.consents.name;
const KILLS_MAX = 3;

let fixture: LogFixture;
beforeAll(async () => {
  fixture = await openLogFixture();
});
afterAll(() => fixture.close());

const sendPoison = (topic: string, count: number) => {
  const deadLetters = Array.from({ length: count }, (_, offset) => ({
    reason: 'poison',
    record: {
      topic: fixture.prefix + topic,
      partition: offset % 2,
      offset,
      timestampMs: 1,
      key: offset % 3 === 0 ? null : Buffer.from(`key ${offset}`),
      value: Buffer.from(`deadLetter ${offset}`),
      headers: { traceparent: 'trace' },
    },
  }));
  return sendDeadLetters(fixture.producer, deadLetters, 'transform');
};
const replaysIn = async (topic: string) =>
  (await fixture.read(topic)).flatMap(({ headers }) =>
    headers[REPLAYED_FROM] === undefined ? [] : [String(headers[REPLAYED_FROM])],
  );

/** Waits until a topic contains `count` replays, because committed records become visible with a delay. */
const awaitReplays = (topic: string, count: number) =>
  until(`${count} replays`, async () => {
    const replays = await replaysIn(topic);
    return replays.length >= count ? replays : null;
  });

async function startEmptyRegistry() {
  const server = createServer((_request, response) => response.writeHead(404).end('{"error_code":40403}')).listen(
    0,
    '127.0.0.1',
  );
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return { url: `http://127.0.0.1:${address.port}`, close: () => server.close() };
}

it('the dead letter of an unreadable message is stored once when it is replayed with a working registry', async () => {
  const { publish, toMessage, startWriter, stop, awaitCaughtUp, operate, query, prefix, group } = fixture;
  const registry = await startEmptyRegistry();
  const broken = await startWriter({ SCHEMA_REGISTRY_URL: registry.url });
  await publish([toMessage(messageRecordOf('poison')), toMessage(messageRecordOf('poison too'))]);
  await until('the dead letters', async () => (await fixture.read(`${MESSAGES}.dead`)).length === 2);
  await stop(broken, 'SIGTERM');
  registry.close();

  const listed = await operate('dead-letters', 'list', '--json');
  expect(listed.json).toMatchObject([{ topic: prefix + MESSAGES, open: 2, replayed: 0, dropped: 0 }]);
  const [{ example }] = listed.json as { example: string }[] as [{ example: string }];
  const shown = (await operate('dead-letters', 'show', example)).lines.join('\n');
  expect(shown).toContain('"eventName": "poison');
  expect(shown).toContain(`original-topic: ${prefix}${MESSAGES}`);
  expect(listed.lines.join()).not.toContain('poison');

  const writer = await startWriter();
  const replayed = await operate('dead-letters', 'replay', '--topic', MESSAGES, '--json');
  expect(replayed).toMatchObject({ code: 0, json: { settled: 2, before: 0 } });
  const repeated = await operate('dead-letters', 'replay', '--all', '--json');
  expect(repeated).toMatchObject({ code: 0, json: { settled: 0, before: 2 } });
  await awaitCaughtUp(MESSAGES);
  await stop(writer, 'SIGTERM');
  expect(await query('SELECT count(), uniqExact(message_id) FROM events')).toBe('2\t2');
  expect((await operate('dead-letters', 'list', '--json')).json).toMatchObject([{ open: 0, replayed: 2 }]);
  expect((await operate('verify', '--group', group)).code).toBe(0);
});

it('dead-letters drop stores a note for each dropped dead letter, and dropped dead letters are never replayed', async () => {
  await sendPoison(TOPICS.rejections.name, 3);
  const [first] = await fixture.read(`${TOPICS.rejections.name}.dead`);
  const name = `${first!.topic}/${first!.partition}/${first!.offset}`;
  expect((await fixture.operate('dead-letters', 'drop', name)).code).toBe(2);
  const args = ['dead-letters', 'drop', name, '--note', 'from a test client', '--json'];
  expect((await fixture.operate(...args)).code).toBe(2);
  const dropped = await fixture.operate(...args, '--yes');
  expect(dropped.json).toMatchObject({ settled: 1 });
  const show = async () => (await fixture.operate('dead-letters', 'show', name)).lines.join('\n');
  await until('the outcome', async () => (await show()).includes('from a test client'));
  const replayed = await fixture.operate('dead-letters', 'replay', '--topic', TOPICS.rejections.name, '--json');
  expect(replayed.json).toMatchObject({ settled: 2, before: 1 });
  const replays = await awaitReplays(TOPICS.rejections.name, 2);
  expect(replays).toHaveLength(2);
  expect(replays).not.toContain(name);
});

it('dead-letters replay fences a paused command, so that each dead letter is replayed once', async () => {
  const topic = TOPICS.identityDecisions.name;
  await sendPoison(topic, 30);
  const name = `${fixture.prefix}operator-dead-letters`;
  const [sent, resumed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const pausedPublisher = await openAtomicPublisher({
    brokers: fixture.brokers,
    name,
    beforeCommit: () => {
      sent.resolve();
      return resumed.promise;
    },
  });
  const log = openLogReader({ brokers: fixture.brokers, clientId: 'test' });
  const pausedReplay = settleDeadLetters({
    log,
    publisher: pausedPublisher,
    topics: [`${fixture.prefix}${topic}.dead`],
    isSelected: () => true,
    outcome: { kind: 'replayed', atMs: 0, note: '' },
    max: 100,
    onProgress: () => {},
    stop: new AbortController().signal,
  });
  pausedReplay.catch(() => {});
  await sent.promise;
  const replayed = await fixture.operate('dead-letters', 'replay', '--topic', topic, '--json');
  expect(replayed.json).toMatchObject({ settled: 30, before: 0 });
  resumed.resolve();
  await expect(pausedReplay).rejects.toThrow();
  const replays = await awaitReplays(topic, 30);
  expect(replays).toHaveLength(30);
  expect(new Set(replays).size).toBe(30);
  await Promise.all([pausedPublisher.close(), log.close()]);
});

it('dead-letters replay replays each dead letter once, even if the command is killed several times', async () => {
  // Twenty transactions with a hundred dead letters each. The command is killed during or between transactions.
  const deadLetters = 2_000;
  await sendPoison(CONSENTS, deadLetters);
  let kills = 0;
  for (; kills < KILLS_MAX && (await replaysIn(CONSENTS)).length < deadLetters; kills++) {
    const before = (await replaysIn(CONSENTS)).length;
    const command = fixture.operatorProcess('dead-letters', 'replay', '--topic', CONSENTS);
    await until('progress', async () => command.exitCode !== null || (await replaysIn(CONSENTS)).length > before);
    await delay(Math.random() * 20);
    await fixture.stop(command, 'SIGKILL');
  }
  expect((await fixture.operate('dead-letters', 'replay', '--topic', CONSENTS)).code).toBe(0);
  const replays = await awaitReplays(CONSENTS, deadLetters);
  expect(new Set(replays).size).toBe(deadLetters);
  expect(replays).toHaveLength(deadLetters);
  for (const { key, value, partition, headers } of await fixture.read(CONSENTS)) {
    const offset = Number(String(value).split(' ')[1]);
    expect(key === null ? partition : String(key)).toBe(offset % 3 === 0 ? offset % 2 : `key ${offset}`);
    expect(String(headers.traceparent)).toBe('trace');
  }
  expect(kills).toBeGreaterThan(1);
}, 300_000);
