import assert from 'node:assert/strict';
import { type SmallMessage, smallMessage } from '@playline/testkit';
import { createProbes } from '../../simulate/game/sender.ts';
import { type Attempt, KEY_HEADER, post } from '../world/post.ts';
import { type Effects, tally } from '../world/report.ts';
import type { Scenario, Trial } from '../world/trial.ts';

/** A hostile request, the expected status, and the ids of the messages that must be stored. */
interface HostileBody {
  readonly name: string;
  readonly body: string | Buffer;
  /** Null removes a header. */
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly method?: 'GET' | 'POST';
  readonly path?: string;
  readonly status: number;
  readonly stored: readonly string[];
  /** Expected numbers of rejected messages and of entries in `rejections`; absent for a body that is not a batch. */
  readonly batch?: readonly [rejected: number, entries: number];
}

const nested = (levels: number) => JSON.parse('{"a":'.repeat(levels) + 0 + '}'.repeat(levels));
const bodyOf = (messages: readonly object[]) => JSON.stringify({ messages });
const ids = (messages: readonly SmallMessage[]) => messages.map(({ messageId }) => messageId);

function createRefusedBodies({ ledger, key }: Trial): HostileBody[] {
  const names = { keyHeader: KEY_HEADER, publishableKey: key, secretKey: null };
  const probes = createProbes({ run: ledger.run, ledger: ledger.outcomes, ...names });
  const rejected = (name: string, body: string): HostileBody => {
    return { name, body, status: 400, stored: [], batch: [1, 1] };
  };
  const text = bodyOf([smallMessage('track')]);
  return [
    ...probes.map(({ toBody, ...probe }) => ({ ...probe, body: toBody(), stored: [] })),
    rejected('fields in a prototype', text.replace('[{', '[{"__proto__":{').replace(/}]}$/, '}}]}')),
    rejected('properties nested one level too deep', bodyOf([smallMessage('track', { properties: nested(65) })])),
    rejected('a lone surrogate in an id', bodyOf([smallMessage('track', { userId: '\ud800' })])),
  ];
}

function createStoredBodies({ ledger }: Trial): HostileBody[] {
  const withProperties = (name: string, properties: string): HostileBody => {
    const messageId = ledger.newId();
    const head = JSON.stringify(smallMessage('track', { messageId })).slice(0, -1);
    const body = `{"messages":[${head},"properties":${properties}}]}`;
    return { name, body, status: 200, stored: [messageId], batch: [0, 0] };
  };
  return [
    withProperties('properties nested to the limit', `{"a":${'['.repeat(63)}${']'.repeat(63)}}`),
    withProperties('duplicate keys', '{"k":1,"k":2}'),
    withProperties('__proto__', '{"__proto__":{"polluted":true},"constructor":1}'),
    withProperties('escaped NUL and lone surrogate', '{"nul":"\\u0000","lone":"\\ud800"}'),
    withProperties('numbers out of range', '{"wei":20000000000000000000,"huge":1e400}'),
  ];
}

const createValid = ({ ledger }: Trial, count: number) =>
  Array.from({ length: count }, () => smallMessage('track', { messageId: ledger.newId(), anonymousId: 'visitor' }));

function createHugeBody(trial: Trial): HostileBody {
  const huge = smallMessage('track', { properties: { x: 'x'.repeat(64 * 1024) } });
  const valid = createValid(trial, 3);
  return { name: 'one huge message', body: bodyOf([huge, ...valid]), status: 200, stored: ids(valid), batch: [1, 1] };
}

function createMixedBodies(trial: Trial): HostileBody[] {
  const duplicate = smallMessage('track');
  const validMessages = createValid(trial, 99);
  const invalidIndex = trial.random.integer(0, validMessages.length);
  const mixed = [
    ...validMessages.slice(0, invalidIndex),
    smallMessage('nonsense'),
    ...validMessages.slice(invalidIndex),
  ];
  return [
    {
      name: 'two messages with the same id',
      body: bodyOf([duplicate, duplicate]),
      status: 400,
      stored: [],
      batch: [2, 1],
    },
    {
      name: 'one invalid message among 100',
      body: bodyOf(mixed),
      status: 200,
      stored: ids(validMessages),
      batch: [1, 1],
    },
  ];
}

function createHostileBodies(trial: Trial): HostileBody[] {
  return trial.random.shuffle([...createRefusedBodies(trial), ...createStoredBodies(trial), createHugeBody(trial)]);
}

/** Asserts that a batch gets a response with exact counts, and that any other body gets an error envelope. */
function checkResponse({ name, status, stored, batch }: HostileBody, attempt: Attempt): void {
  assert.equal(attempt.status, status, `${name}: ${attempt.text}`);
  const response = JSON.parse(attempt.text) as Record<string, unknown> & { rejections?: unknown[] };
  const kinds = ['code', 'message', 'link', 'trace_id'].map((field) => typeof response[field]);
  const found = batch === undefined ? kinds : [response.accepted, response.rejected, response.rejections?.length];
  const expected = batch === undefined ? Array(4).fill('string') : [stored.length, ...batch];
  assert.deepEqual(found, expected, `${name}: ${attempt.text}`);
}

async function send({ ledger, key }: Trial, url: string, hostile: HostileBody): Promise<void> {
  const attempt = await post({ ...hostile, url, key });
  checkResponse(hostile, attempt);
  if (hostile.stored.length > 0) ledger.record(hostile.stored, attempt);
}

async function sendAll(trial: Trial, bodies: readonly HostileBody[]): Promise<Effects> {
  const gateway = await trial.start('gateway');
  const traffic = trial.openTraffic([gateway]);
  await traffic.awaitBatches(5);
  for (let sent = 0; sent < bodies.length; sent += 4)
    await Promise.all(bodies.slice(sent, sent + 4).map((body) => send(trial, gateway.url, body)));
  await traffic.awaitBatches(5);
  await traffic.close();
  assert.ok(gateway.isAlive, 'the gateway must not exit');
  assert.ok(await gateway.isReady(), 'the gateway must stay ready');
  return tally(bodies.map(({ status }) => `bodies with status ${status}`));
}

export const hostileBodies: Scenario = {
  fault: 13,
  title: 'the gateway rejects hostile bodies with the error envelope and stores valid batches sent at the same time',
  tried: 'hostile bodies among valid traffic',
  run: (trial) => sendAll(trial, createHostileBodies(trial)),
};

export const oneInvalidAmongMany: Scenario = {
  fault: 14,
  title: 'the gateway stores all valid messages of a batch with one invalid message, and rejects duplicate message ids',
  tried: 'one invalid message among 100, two messages with the same id, among valid traffic',
  run: (trial) => sendAll(trial, createMixedBodies(trial)),
};
