import { randomBytes } from 'node:crypto';
import { consentCodec, type MessageRecord, messageRecordCodec, TOPICS } from '@playline/contracts';
import { messageRecordOf, until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openRealStores, type RealStores } from './test/open-stores.ts';

const ENVIRONMENT = 'test-fences';
const CUTOFF = 1_790_000_000_000;
const [erased, bystander, zeroKey] = [randomBytes(16), randomBytes(16), Buffer.alloc(16)];
/** Kafka key that all records share, so that one partition preserves their order. */
const KEY = Buffer.from('one partition');

let stores: RealStores;
beforeAll(async () => {
  stores = await openRealStores([TOPICS.messages.name, TOPICS.consents.name]);
});
afterAll(async () => {
  await stores.killWriters();
  await stores.close();
});

const message = (eventName: string, parts: Partial<MessageRecord>) =>
  messageRecordOf(eventName, { environmentId: ENVIRONMENT, eventTime: CUTOFF, receivedAt: CUTOFF, ...parts });
const publish = (records: readonly MessageRecord[]) =>
  stores.publish(records.map((record) => stores.outgoing(TOPICS.messages, messageRecordCodec, record, KEY)));

const rows = () =>
  stores.readRows<
    Record<'name' | 'device' | 'key', string>
  >(`SELECT event_name AS name, anonymous_id AS device, lower(hex(anonymous_key)) AS key
    FROM events WHERE environment_id = '${ENVIRONMENT}' ORDER BY name`);
const names = async () => (await rows()).map(({ name }) => name);

const fence = (key: Buffer) =>
  stores.query(`INSERT INTO erasure_fences (environment_id, identity_key, cutoff_at, erasure_id)
    VALUES ('${ENVIRONMENT}', unhex('${key.toString('hex')}'), fromUnixTimestamp64Milli(${CUTOFF}), generateUUIDv4())`);

/** Publishes messages of the erased person, each followed by a message of another person, until one is dropped. */
async function untilFenced(): Promise<void> {
  for (let probe = 0; ; probe++) {
    const [erasedEvent, nextEvent] = [`probe-${probe}`, `after-${probe}`];
    await publish([message(erasedEvent, { identityKey: erased }), message(nextEvent, { identityKey: bystander })]);
    await until(`${nextEvent} is stored`, async () => (await names()).includes(nextEvent));
    if (!(await names()).includes(erasedEvent)) return;
  }
}

/** Replayed records, an old batch from an offline client, and the person's new events. */
const toLateMessages = (run: string) => [
  message(`${run}-replayed`, { identityKey: erased }),
  message(`${run}-old-batch`, { identityKey: erased, receivedAt: CUTOFF + 60_000 }),
  message(`${run}-alias`, { identityKey: bystander, fromKey: erased, toKey: bystander }),
  message(`${run}-shared-device`, { identityKey: bystander, anonymousKey: erased, anonymousId: 'device-1' }),
  message(`${run}-back`, { identityKey: erased, eventTime: CUTOFF + 1, receivedAt: CUTOFF + 2, anonymousId: 'new' }),
  message(`${run}-bystander`, { identityKey: bystander, anonymousKey: zeroKey, anonymousId: 'other' }),
];

async function expectFenced(run: string): Promise<void> {
  await publish(toLateMessages(run));
  await until('the last message is stored', async () => (await names()).includes(`${run}-bystander`));
  const stored = (await rows()).filter(({ name }) => name.startsWith(run));
  expect(stored.map(({ name, device }) => [name, device])).toEqual([
    [`${run}-back`, 'new'],
    [`${run}-bystander`, 'other'],
    [`${run}-shared-device`, ''],
  ]);
  expect(stored.find(({ name }) => name === `${run}-shared-device`)?.key).toBe('0'.repeat(32));
}

it("a running writer drops an erased person's late records, and stores newer and other people's records", async () => {
  await stores.startWriter('running');
  await publish([message('before', { identityKey: erased })]);
  await until('the message is stored', async () => (await names()).includes('before'));
  await fence(erased);
  await untilFenced();
  await expectFenced('running');
});

it('a writer started after an erasure loads the fences before it stores messages or consents', async () => {
  await stores.killWriters();
  const consent = { environmentId: ENVIRONMENT, status: 'full', source: 'test', traceId: 'e'.repeat(32) } as const;
  const records = [erased, bystander].map((identityKey) =>
    stores.outgoing(TOPICS.consents, consentCodec, { ...consent, identityKey, receivedAt: CUTOFF }, KEY),
  );
  await stores.publish(records);
  await publish(toLateMessages('waiting'));
  await stores.startWriter('running');
  await expectFenced('started');
  expect((await names()).filter((name) => name.startsWith('waiting'))).toEqual([
    'waiting-back',
    'waiting-bystander',
    'waiting-shared-device',
  ]);
  const consents = await until('a consent is stored', async () => {
    const query = `SELECT lower(hex(identity_key)) AS key FROM consent_log WHERE environment_id = '${ENVIRONMENT}'`;
    const found = await stores.readRows<{ key: string }>(query);
    return found.length > 0 && found;
  });
  expect(consents).toEqual([{ key: bystander.toString('hex') }]);
});
