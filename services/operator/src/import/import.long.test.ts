import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { activityCodec, FRAME_BYTES, TICK_HEADER, TOPICS, tokenCodec } from '@playline/contracts';
import { freePorts } from '@playline/infra/ports';
import type { StreamRecord } from '@playline/stream';
import {
  bareEnvironment,
  type OwnStores,
  openOwnStores,
  openRedisDatabase,
  testStores,
  until,
} from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { EXIT } from '../command.ts';
import { type LogAccess, openLogAccess } from '../test/log-access.ts';
import { runProgram } from '../test/run-program.ts';
import { lineOf, tokenLineOf } from './test/lines.ts';

const MAIN = new URL('../main.ts', import.meta.url).pathname;
const WRITER = new URL('../../../activity-writer/src/main.ts', import.meta.url).pathname;
const ACTIVITIES = TOPICS.activities.name;
const TOKENS = TOPICS.tokens.name;

/** Seven processes run in sequence, which can be slow on a busy machine. */
const PROCESSES_MS = 240_000;

let stores: OwnStores;
let log: LogAccess;
let folder: string;
beforeAll(async () => {
  stores = await openOwnStores({ partitions: 3 });
  folder = mkdtempSync(join(tmpdir(), 'import-test-'));
  log = await openLogAccess(testStores().kafka);
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await log.close();
  await stores.close();
});

const argsOf = (topic: string, ...more: string[]) => ['import', '--topic', topic, '--json', ...more];
async function run(topic: string, lines: readonly unknown[], ...more: string[]) {
  const path = join(folder, 'lines.ndjson');
  writeFileSync(path, lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join(''));
  const { code, out, err } = await runProgram(stores.environment, argsOf(topic, path, ...more));
  return { code, err, json: code === EXIT.usage || out === '' ? null : JSON.parse(out) };
}
const records = async (topic: string): Promise<StreamRecord[]> => log.read(stores.prefix + topic);
const activitiesOf = async (chain: string) =>
  (await records(ACTIVITIES))
    .filter(({ key }) => String(key) === chain)
    .map((record) => ({ record, read: activityCodec.decode(record.value!.subarray(FRAME_BYTES)) }));

async function runWriter(group: string): Promise<void> {
  const redis = await openRedisDatabase();
  const [port] = await freePorts(1);
  const settings = { REDIS_URL: redis.url, ADMIN_PORT: String(port), CONSUMER_GROUP: group };
  const env = { ...bareEnvironment(), ...stores.environment, ...settings };
  const child = spawn(process.execPath, [WRITER], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.on('data', (chunk) => (output += chunk));
  const ended = once(child, 'exit');
  try {
    await until(
      'the writer has written all records',
      await log.createCaughtUpCheck(stores.prefix + ACTIVITIES, group),
      90_000,
    );
  } catch (error) {
    throw new Error(`the writer (exit code ${child.exitCode ?? 'none'}) output:\n${output}`, { cause: error });
  } finally {
    child.kill('SIGTERM');
    await ended;
    await redis.close();
  }
}

it('import publishes valid activities in line order to the partition of their chain, and reports invalid lines', async () => {
  const lines = [
    ...[3, 1, 2].map((number) => lineOf(number)),
    '{"half":',
    { ...lineOf(9), indexed_at: 'yesterday', type: 'gift' },
    lineOf(4, { chain: 'other-chain' }),
    lineOf(1, { amount: 5 }),
  ];
  const { code, json, err } = await run(ACTIVITIES, lines);
  expect(code).toBe(EXIT.failed);
  expect(json).toEqual({ lines: 7, published: 4, standing: 0, superseded: 1, refused: 2 });
  expect(err).toContain('line 4: is not valid JSON');
  expect(err).toMatch(/line 5: .*indexed_at is not an RFC 3339 timestamp/);
  const found = await activitiesOf('demo-chain');
  expect(found.map(({ read }) => [read.id[15], JSON.parse(read.details).amount])).toEqual([
    [3, '1'],
    [2, '1'],
    [1, '5'],
  ]);
  expect(new Set(found.map(({ record }) => record.partition)).size).toBe(1);
  expect(found.every(({ record }) => String(record.key) === 'demo-chain')).toBe(true);
  expect(found[0]!.read.traceId).toMatch(/^[0-9a-f]{32}$/);
});

it(
  'a repeated import does not publish activities again, whether or not the writer has stored them',
  async () => {
    const chain = 'repeated-chain';
    const lines = Array.from({ length: 1_200 }, (_, number) => lineOf(1_000 + number, { chain }));
    expect((await run(ACTIVITIES, lines)).json).toMatchObject({ published: 1_200 });
    const { record } = (await activitiesOf(chain))[0]!;
    // Logs also contain ticks and may contain unreadable records.
    await log.producer.sendForOffset({
      topic: record.topic,
      partition: record.partition,
      key: null,
      value: null,
      headers: { [TICK_HEADER]: '' },
    });
    await log.publish([{ topic: record.topic, partition: record.partition, key: null, value: Buffer.from('invalid') }]);
    expect(await run(ACTIVITIES, lines)).toMatchObject({ code: EXIT.ok, json: { published: 0, standing: 1_200 } });

    const group = ['--writer-group', `${stores.prefix}writer`] as const;
    await runWriter(group[1]);
    expect(await stores.query(`SELECT uniqExact(id) FROM activities WHERE chain = '${chain}'`)).toBe('1200');
    const repeated = await run(ACTIVITIES, lines, ...group);
    expect(repeated).toMatchObject({ code: EXIT.ok, json: { published: 0, standing: 1_200 } });
    const changed = [...lines.slice(0, 10), lineOf(1_010, { chain, amount: 7 }), ...lines.slice(11)];
    expect((await run(ACTIVITIES, changed, ...group)).json).toMatchObject({ published: 1, standing: 1_199 });
  },
  PROCESSES_MS,
);

it('an import from standard input that is killed and repeated publishes each activity once', async () => {
  const chain = 'killed-chain';
  const toLine = (_: unknown, number: number) => JSON.stringify(lineOf(10_000 + number, { chain }));
  const lines = Array.from({ length: 6_000 }, toLine).join('\n');
  const env = { ...bareEnvironment(), ...stores.environment };
  const start = () => {
    const child = spawn(process.execPath, [MAIN, ...argsOf(ACTIVITIES, '-')], { env, cwd: folder });
    child.stdin.on('error', () => {});
    child.stdin.end(lines);
    return child;
  };
  const count = async () => {
    const bounds = await log.reader.bounds(stores.prefix + ACTIVITIES);
    return bounds.reduce((sum, { end }) => sum + end, 0);
  };
  const before = await count();
  const killedImport = start();
  const ended = once(killedImport, 'exit');
  await until('the import has published records', async () => (await count()) > before);
  killedImport.kill('SIGKILL');
  await ended;
  const repeated = start();
  const out: Buffer[] = [];
  repeated.stdout.on('data', (chunk: Buffer) => out.push(chunk));
  expect((await once(repeated, 'exit'))[0]).toBe(EXIT.ok);
  const ids = (await activitiesOf(chain)).map(({ read }) => read.id.toString('hex'));
  expect(new Set(ids).size).toBe(6_000);
  expect(ids).toHaveLength(6_000);
  expect(JSON.parse(Buffer.concat(out).toString())).toMatchObject({ lines: 6_000, refused: 0 });
});

it('import publishes each token once, and again after a change', async () => {
  const lines = [tokenLineOf(1), tokenLineOf(2), tokenLineOf(1, 'Silver')];
  expect((await run(TOKENS, lines)).json).toMatchObject({ published: 2, superseded: 1 });
  expect((await run(TOKENS, lines)).json).toMatchObject({ published: 0, standing: 2 });
  expect((await run(TOKENS, [tokenLineOf(2, 'Iron')], '--chain', 'demo-chain')).json).toMatchObject({ published: 1 });
  const found = (await records(TOKENS)).map(({ key, value }) => [
    String(key),
    tokenCodec.decode(value!.subarray(FRAME_BYTES)).name,
  ]);
  const [first, second] = [1, 2].map((number) => `demo-chain ${tokenLineOf(number).contract_address}`);
  expect(found.toSorted()).toEqual(
    [
      [first, 'Silver'],
      [second, 'Gold'],
      [second, 'Iron'],
    ].toSorted(),
  );
});
