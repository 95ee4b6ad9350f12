import { generateKeyPairSync, randomBytes } from 'node:crypto';
import {
  createRecordLog,
  createRecordStore,
  createSignableKey,
  openRecordCopy,
  parseSignerPublicKey,
  SIGNABLE_KEYS,
} from '@playline/access-keys';
import { openRedisRecords } from '@playline/access-keys/redis';
import { createSigner, parseSignerKeys, resealSignableKey } from '@playline/access-keys/signer';
import { schemaSubjectOf } from '@playline/contracts';
import { applyTopics, dropTopics } from '@playline/infra/kafka';
import { createLogger, createMetrics } from '@playline/runtime';
import { createSchemaRegistry, openLogReader, openProducer } from '@playline/stream/kafka';
import { openRedisDatabase, testStores, until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openResealing } from './signable-keys.ts';

const { kafka: brokers, registry: url } = testStores();
const opened: { close(): unknown }[] = [];
afterAll(async () => {
  for (const part of opened.reverse()) await part.close();
});

function makeSignerKey() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const toText = (key: typeof privateKey) => JSON.stringify(key.export({ format: 'jwk' }));
  return { jwk: toText(privateKey), signerKey: parseSignerPublicKey(toText(publicKey)) };
}

const signerOf = (...jwks: string[]) => createSigner({ privateKeys: parseSignerKeys(`[${jwks.join()}]`) });

async function openStore() {
  const redis = await openRedisDatabase();
  const prefix = `test-${randomBytes(4).toString('hex')}.`;
  opened.push(redis, { close: () => dropTopics({ brokers, registry: url, prefix }) });
  await applyTopics({ brokers, registry: url, prefix, partitions: 1 });
  const topic = prefix + SIGNABLE_KEYS.topic;
  const [producer, reader] = [
    await openProducer({ brokers, clientId: 'test' }),
    openLogReader({ brokers, clientId: 'test' }),
  ];
  const view = await openRedisRecords(SIGNABLE_KEYS, { url: redis.url });
  opened.push(producer, reader, view);
  const registry = createSchemaRegistry({ url });
  const log = createRecordLog({
    kind: SIGNABLE_KEYS,
    schemaId: await registry.idOf(schemaSubjectOf(topic), SIGNABLE_KEYS.codec.schema),
    schemaOf: registry.schemaOf,
    bounds: () => reader.bounds(topic),
    read: (range) => reader.read({ topic, ...range }),
    send: (record) => producer.sendForOffset({ topic, ...record }),
  });
  return { store: createRecordStore({ view, log }, { changedBy: 'minter', requestId: '' }), view };
}

const intervals = { retryMs: 1, checkMs: 10 };

/** Opens a deployment's signable keys, and minters that check how they are sealed. */
async function openWorld() {
  const { store, view } = await openStore();
  const keys = openRecordCopy({ view });
  opened.push(keys);
  const lines: string[] = [];
  const logger = createLogger({ service: 'minter', level: 'info' }, { write: (line: string) => lines.push(line) });
  return {
    store,
    lines,
    create: (name: string, { signerKey }: ReturnType<typeof makeSignerKey>) =>
      createSignableKey({ store, signerKey }, { projectId: 'p', environmentId: 'p-production', name }),
    start: (...jwks: string[]) => {
      let attempts = 0;
      const signer = signerOf(...jwks);
      const metrics = createMetrics('minter');
      const resealing = openResealing({
        keys,
        openStore: async () => {
          if (attempts++ === 0) throw new Error('the schema registry is unavailable');
          return store;
        },
        reseal: (of, record) => resealSignableKey({ store: of, signer }, record),
        signerKeys: jwks.length,
        logger,
        metrics,
        intervals,
      });
      opened.push(resealing);
      return { ...resealing, metrics };
    },
  };
}

let world: Awaited<ReturnType<typeof openWorld>>;
const [older, newest, lost] = [makeSignerKey(), makeSignerKey(), makeSignerKey()];
beforeAll(async () => {
  world = await openWorld();
});

it('a minter with a new signer key reseals every signable key, including keys that are later sealed to the older signer key', async () => {
  const { store, lines, create, start } = world;
  const key = await create('Minter', older);
  const minter = start(newest.jwk, older.jwk);
  const count = (text: string) => lines.filter((line) => line.includes(text)).length;
  await until('the older key can be removed', () => count('remove the older keys') === 1);
  const alone = signerOf(newest.jwk);
  const [resealed] = await store.readAll();
  expect(await alone.signMessage(resealed!, 'm')).toBe(await signerOf(older.jwk).signMessage(key, 'm'));
  // A second portal was not restarted and still seals to the older key.
  const late = await create('Late', older);
  await until('the message is logged again', () => count('remove the older keys') === 2);
  expect(count('keep the older keys in SIGNER_KEYS until')).toBe(1);
  expect(lines.find((line) => line.includes('still uses its public key'))).toContain(late.address);
  for (const record of await store.readAll()) await alone.signMessage(record, 'm');
  await minter.close();
});

it('a minter reports every live signable key that it cannot decrypt, at startup and later', async () => {
  const { store, lines, create, start } = world;
  const foreign = await create('Sealed to a lost key', lost);
  const { reasons, metrics } = start(newest.jwk);
  await until('the key is reported', () => reasons().signableKeys?.includes(foreign.address));
  expect(lines.some((line) => line.includes('cannot decrypt') && line.includes(foreign.address))).toBe(true);
  const next = await create('Also sealed to a lost key', lost);
  await until('the next key is reported', () => reasons().signableKeys?.includes(next.address));
  expect(await metrics.text()).toMatch(/^playline_minter_unopened_keys\{.*\} 2$/m);
  await store.change((records) => ({ ...records.find(({ address }) => address === next.address)!, state: 'disabled' }));
  await until('a disabled key is not reported', () => reasons().signableKeys?.includes(next.address) === false);
});
