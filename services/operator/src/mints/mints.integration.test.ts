import {
  auditEntryCodec,
  FRAME_BYTES,
  frameRecord,
  type MintStateRecord,
  mintStateCodec,
  TOPICS,
  toMintStateKey,
} from '@playline/contracts';
import { type MintRow, toMintState } from '@playline/mints';
import { openMintWriter } from '@playline/mints/clickhouse';
import { openRedisMints } from '@playline/mints/redis';
import type { AtomicPublisher } from '@playline/stream';
import { openAtomicPublisher, readTopic } from '@playline/stream/kafka';
import { type OwnStores, openOwnStores, openRedisDatabase, type RedisDatabase, testStores } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runMain } from '../test/run-main.ts';
import { runProgram } from '../test/run-program.ts';
import { CONTRACT, FAILED, SIGNER, stateRecordOf as stateOf } from './test/mint-state.ts';

const START_MS = 120_000;
const { kafka: brokers } = testStores();

let stores: OwnStores;
let redis: RedisDatabase;
const opened: AtomicPublisher[] = [];
beforeAll(async () => {
  [stores, redis] = await Promise.all([openOwnStores(), openRedisDatabase()]);
}, START_MS);
afterAll(async () => {
  await Promise.all(opened.map((each) => each.close().catch(() => {})));
  await Promise.all([stores.close(), redis.close()]);
}, START_MS);

const bytes = (hex: string) => Buffer.from(hex.slice(2), 'hex');
const signedState = { stage: 'logged', reason: null, nonce: 5, transactionHash: Buffer.alloc(32, 9) } as const;

async function openMinter() {
  const publisher = await openAtomicPublisher({ brokers, name: `${stores.prefix}minter.demo-chain.${SIGNER}` });
  opened.push(publisher);
  const topic = stores.prefix + TOPICS.mintStates.name;
  return (states: readonly MintStateRecord[], partition = 0) =>
    publisher.publish(
      states.map((state) => ({
        topic,
        partition,
        key: Buffer.from(toMintStateKey(state)),
        headers: {},
        value: frameRecord(stores.schemaIdOf(topic), mintStateCodec.encode(state)),
      })),
    );
}

async function lastOf(referenceId: string): Promise<MintStateRecord> {
  const records = await readTopic({ brokers, topic: stores.prefix + TOPICS.mintStates.name });
  const states = records.map(({ value }) => mintStateCodec.decode(value!.subarray(FRAME_BYTES)));
  return states.findLast((state) => state.referenceId === referenceId)!;
}

async function readAudit() {
  const records = await readTopic({ brokers, topic: stores.prefix + TOPICS.audit.name });
  return records.map(({ value }) => auditEntryCodec.decode(value!.subarray(FRAME_BYTES)));
}

async function putInRedis(...states: readonly MintStateRecord[]) {
  const mints = await openRedisMints({ url: redis.url });
  await mints.view.restore(states.map(toMintState));
  await mints.close();
}

const environment = () => ({ ...stores.environment, REDIS_URL: redis.url });
const mints = (...args: string[]) => runProgram(environment(), ['mints', ...args]);
const giveUp = (...args: string[]) => mints('give-up', '--chain', 'demo-chain', ...args);
const REASON = ['--reason', 'the key is lost'];

const row = { ...FAILED, referenceId: 'shield' };
const COLLECTION = ['--chain', 'demo-chain', '--contract', CONTRACT];

// Runs first, while the logs are empty.
it('mints list and show report the status of an asset, and mints rebuild restores the asset in an emptied Redis', async () => {
  const {
    CLICKHOUSE_URL: url = '',
    CLICKHOUSE_USER: user = '',
    CLICKHOUSE_PASSWORD: password = '',
  } = stores.environment;
  const writer = openMintWriter({ url, user, password, database: stores.database });
  const logged = { updatedAt: 1, partition: 0, offset: 0, loggedAtMs: 1_764_000_000_000, metadata: null };
  // The row of an earlier revision exists until a merge.
  const rows: MintRow[] = [
    { ...row, ...logged, revision: 1, status: 'pending', error: null },
    { ...row, ...logged },
  ];
  await writer.insert({ table: 'mint_requests', rows, token: 'a', signal: new AbortController().signal });
  await writer.close();
  const { out } = await runMain(environment(), ['mints', 'list', ...COLLECTION, '--json']);
  expect(JSON.parse(out)).toEqual(row);
  expect((await mints('list', ...COLLECTION, '--status', 'pending')).out).toBe('');
  expect((await mints('show', ...COLLECTION, '--project', 'demo', '--reference', 'shield')).out).toContain(
    'failed (settled)  shield',
  );
  const unknown = await mints('show', ...COLLECTION, '--project', 'demo', '--reference', 'axe');
  expect([unknown.code, unknown.err]).toEqual([1, expect.stringContaining('no mint request axe')]);
  expect((await mints('show', ...COLLECTION)).code).toBe(2);
  const signers = await mints('signers', '--json');
  expect(JSON.parse(signers.out)).toMatchObject({ chain: 'demo-chain', signer: row.signer, failed: 1, pending: 0 });
  const rebuilt = await mints('rebuild', '--json');
  expect(JSON.parse(rebuilt.out)).toEqual({ kind: 'mints', rows: 1, records: 0 });
  const opened = await openRedisMints({ url: redis.url });
  expect(await opened.claims.read(row, 'shield')).toEqual({ isComplete: true, state: row });
  await opened.close();
});

it('mints give-up marks a pending asset as failed, fences the minter, and writes an audit entry', async () => {
  const [sword, axe] = [stateOf('sword'), stateOf('axe')];
  const write = await openMinter();
  await write([sword, axe]);
  await putInRedis(sword, axe);
  const swordArgs = ['--contract', CONTRACT, '--project', 'demo', '--reference', 'sword', ...REASON];
  const unconfirmed = await giveUp(...swordArgs);
  expect([unconfirmed.code, unconfirmed.err]).toEqual([2, expect.stringContaining('use --yes')]);
  const { code, out } = await giveUp(...swordArgs, '--yes');
  expect([code, out]).toEqual([0, `given up: sword of ${CONTRACT}\n`]);
  expect(await lastOf('sword')).toMatchObject({
    status: 'failed',
    stage: 'settled',
    reason: null,
    revision: 3,
    error: 'Given up by the operator: the key is lost',
  });
  expect(await lastOf('axe')).toMatchObject({ status: 'pending', revision: 2 });
  // The fenced minter must read the log again before it can write.
  await expect(write([{ ...sword, ...signedState, revision: 3 }])).rejects.toThrow();
  expect((await readAudit()).at(-1)).toMatchObject({
    action: 'mint.give-up',
    projectId: 'demo',
    environmentId: 'demo-development',
    object: sword.attemptId.toString('hex'),
    detail: expect.stringContaining('the key is lost'),
  });
});

it('mints give-up skips assets with a signed transaction, and fails if no asset is pending', async () => {
  const [bow, old] = [stateOf('bow', signedState), stateOf('done', { status: 'failed', stage: 'settled', error: 'x' })];
  await (await openMinter())([bow, old]);
  await putInRedis(bow, old);
  const { length } = await readAudit();
  const bowArgs = ['--contract', CONTRACT, '--project', 'demo', '--reference', 'bow', '--yes'];
  const refused = await giveUp(...bowArgs, ...REASON);
  expect([refused.code, refused.out]).toEqual([1, expect.stringMatching(/^skipped: bow of .*nonce 5/)]);
  expect(await lastOf('bow')).toMatchObject({ status: 'pending', nonce: 5, revision: 2 });
  const failed = await giveUp('--contract', CONTRACT, '--project', 'demo', '--reference', 'done', ...REASON, '--yes');
  expect([failed.code, failed.err]).toEqual([1, expect.stringContaining('the asset has failed: you can give up')]);
  expect(await readAudit()).toHaveLength(length);
  expect((await giveUp(...bowArgs)).code).toBe(2);
  const ambiguous = await giveUp(...bowArgs, ...REASON, '--signer', SIGNER);
  expect([ambiguous.code, ambiguous.err]).toEqual([2, expect.stringContaining("'--signer <address>' cannot be used")]);
  expect((await giveUp(...REASON, '--yes')).code).toBe(2);
});

it('mints give-up --signer marks assets without a signed transaction as failed, and can be repeated', async () => {
  await (await openMinter())([stateOf('one'), stateOf('two'), stateOf('three', signedState)]);
  const { code, out } = await giveUp('--signer', SIGNER, ...REASON, '--yes');
  const lines = out.trim().split('\n');
  for (const name of ['one', 'two']) expect(lines).toContain(`given up: ${name} of ${CONTRACT}`);
  expect(lines.at(-1)).toMatch(/^skipped: three of/);
  expect(code).toBe(1);
  const { length } = await readAudit();
  expect((await giveUp('--signer', SIGNER, ...REASON, '--yes')).out).not.toContain('given up');
  expect(await readAudit()).toHaveLength(length);
  const unknown = await giveUp('--signer', `0x${'99'.repeat(20)}`, ...REASON, '--yes');
  expect([unknown.code, unknown.err]).toEqual([1, expect.stringContaining('the signer has no pending assets')]);
});

it('mints give-up fails without an audit entry if records of the signer are in several partitions', async () => {
  const signer = `0x${'52'.repeat(20)}`;
  const write = await openMinter();
  await write([stateOf('here', { signer: bytes(signer) })]);
  await write([stateOf('there', { signer: bytes(signer) })], 1);
  const { length } = await readAudit();
  const refused = await giveUp('--signer', signer, ...REASON, '--yes');
  expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('in several partitions')]);
  expect(await readAudit()).toHaveLength(length);
});
