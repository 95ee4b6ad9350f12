import { generateKeyPairSync, randomBytes } from 'node:crypto';
import {
  createRecordLog,
  createRecordStore,
  createSignableKey,
  parseSignerPublicKey,
  SIGNABLE_KEYS,
} from '@playline/access-keys';
import { openRedisRecords } from '@playline/access-keys/redis';
import { createSigner, parseSignerKeys, resealSignableKey } from '@playline/access-keys/signer';
import { schemaSubjectOf } from '@playline/contracts';
import { applyTopics, dropTopics } from '@playline/infra/kafka';
import { createLogger } from '@playline/runtime';
import { createSchemaRegistry, openLogReader, openProducer } from '@playline/stream/kafka';
import { openRedisDatabase, testStores, until } from '@playline/testkit';
import { afterAll, expect, it } from 'vitest';
import { openResealing } from './reseal.ts';

const prefix = `test-${randomBytes(4).toString('hex')}.`;
const { kafka: brokers, registry: url } = testStores();
const opened: { close(): unknown }[] = [];
afterAll(async () => {
  for (const part of opened.reverse()) await part.close();
  await dropTopics({ brokers, registry: url, prefix });
});

function makeSignerKey() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const toText = (key: typeof privateKey) => JSON.stringify(key.export({ format: 'jwk' }));
  return { jwk: toText(privateKey), signerKey: parseSignerPublicKey(toText(publicKey)) };
}

const signerOf = (...jwks: string[]) => createSigner({ privateKeys: parseSignerKeys(`[${jwks.join()}]`) });

async function openStore() {
  const redis = await openRedisDatabase();
  opened.push(redis);
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
    send: (record) => producer.sendPlaced({ topic, ...record }),
  });
  return createRecordStore({ view, log }, { changedBy: 'minter', requestId: '' });
}

it('a minter with a new signer key reseals every signable key, says when the older one may go, and names keys it cannot open', async () => {
  const store = await openStore();
  const [older, newest, lost] = [makeSignerKey(), makeSignerKey(), makeSignerKey()];
  const create = (name: string, { signerKey }: ReturnType<typeof makeSignerKey>) =>
    createSignableKey({ store, signerKey }, { projectId: 'p', environmentId: 'p-production', name });
  const key = await create('Minter', older);
  const lines: string[] = [];
  const logger = createLogger({ service: 'minter', level: 'info' }, { write: (line: string) => lines.push(line) });
  const signer = signerOf(newest.jwk, older.jwk);
  let attempts = 0;
  const reseal = () =>
    openResealing({
      openStore: async () => {
        if (attempts++ === 0) throw new Error('the schema registry is away');
        return store;
      },
      reseal: (of, record) => resealSignableKey({ store: of, signer }, record),
      logger,
      retryMs: 1,
    });

  opened.push(reseal());
  await until('the older key may go', () => lines.some((line) => line.includes('remove the older ones')));
  const [resealed] = await store.readAll();
  const alone = signerOf(newest.jwk);
  expect(await alone.signMessage(resealed!, 'm')).toBe(await signerOf(older.jwk).signMessage(key, 'm'));

  const foreign = await create('Of a lost signer', lost);
  opened.push(reseal());
  await until('the older key must stay', () => lines.some((line) => line.includes('keep the older keys')));
  expect(lines.at(-1)).toContain(foreign.address);
});
