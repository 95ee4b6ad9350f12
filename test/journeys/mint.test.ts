/** The minter in a stack. It is the only service that gets the keys that open sealed keys. */
import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { frameRecord, mintRequestCodec, mintStateCodec, TOPICS, toSignerKey } from '@playline/contracts';
import { type Stack, startStack } from '@playline/infra/local';
import { createSchemaRegistry, openProducer, readTopic } from '@playline/stream/kafka';
import { testStackFolder, until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';

const START_MS = 240_000;
const directory = testStackFolder('mint-journey');
const toBytes = (hex: string) => Buffer.from(hex.slice(2), 'hex');
let stack: Stack;

beforeAll(async () => {
  stack = await startStack({ directory, services: ['gateway', 'minter'], chain: true });
}, START_MS);

afterAll(async () => {
  await stack?.stop();
  rmSync(directory, { recursive: true, force: true });
}, START_MS);

async function publish(request: Parameters<typeof mintRequestCodec.encode>[0]): Promise<void> {
  const { kafka: brokers, registry: url } = stack.file;
  const topic = TOPICS.mintRequests.name;
  const producer = await openProducer({ brokers, clientId: 'test', topics: [topic] });
  const id = await createSchemaRegistry({ url }).idOf(`${topic}-value`, mintRequestCodec.schema);
  const value = frameRecord(id, mintRequestCodec.encode(request));
  await producer.sendPlaced({ topic, key: Buffer.from(toSignerKey(request)), value });
  await producer.close();
}

it('a mint request of the demo project becomes a token of the demo contract', { timeout: START_MS }, async () => {
  const { kafka, chain } = stack.file;
  const { contracts, signer } = chain!;
  await publish({
    ...{
      chain: 'demo-chain',
      contractAddress: toBytes(contracts.erc721),
      signer: toBytes(signer),
      referenceId: 'first',
    },
    ...{ attemptId: randomBytes(16), projectId: 'demo', environmentId: 'demo-development', metadata: null },
    ...{ ownerAddress: toBytes(`0x${'12'.repeat(20)}`), tokenId: '5', amount: null, requestedAt: Date.now() },
    traceId: '0'.repeat(32),
  });
  const state = await until('it has succeeded', async () => {
    const records = await readTopic({ brokers: kafka, topic: TOPICS.mintStates.name });
    const last = records.at(-1)?.value;
    const state = last == null ? null : mintStateCodec.decode(last.subarray(5));
    if (state?.status === 'succeeded') return state;
    throw new Error(`${state?.stage} ${state?.reason}`);
  });
  expect(state).toMatchObject({ referenceId: 'first', tokenId: '5', error: null, stage: 'settled' });
  expect(state.activityId).toHaveLength(16);
  const secret = JSON.parse(readFileSync(`${stack.places.state}/secrets.json`, 'utf8')).signerKeys as string;
  const environmentOf = (name: string) => readFileSync(`/proc/${stack.file.processes[name]}/environ`, 'utf8');
  expect(environmentOf('minter')).toContain(secret);
  expect(environmentOf('gateway')).not.toContain(secret);
});
