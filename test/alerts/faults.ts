import { randomUUID } from 'node:crypto';
import { statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { TOPICS } from '@playline/contracts';
import { callRpc } from '@playline/infra/chain';
import { until } from '@playline/testkit';
import { Redis } from 'ioredis';
import { Kafka, logLevel } from 'kafkajs';
import { trackMessage } from '../journeys/stack.ts';
import type { TrafficMode, World } from './world.ts';

export interface Fault {
  readonly what: string;
  /** Rules that must fire within 90 s. Other rules may fire as well. */
  readonly rules: readonly string[];
  /** Prepares the fault. The time starts afterwards. */
  readonly prepare?: (world: World) => Promise<unknown>;
  readonly inject: (world: World) => Promise<unknown> | unknown;
  readonly repair: (world: World) => Promise<unknown> | unknown;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const suspend = (name: string, rules: readonly string[]): Fault => ({
  what: `${name} is suspended`,
  rules,
  inject: (world) => world.signal(name, 'SIGSTOP'),
  repair: (world) => world.signal(name, 'SIGCONT'),
});

const send = (mode: TrafficMode, rules: readonly string[], what: string): Fault => ({
  what,
  rules,
  inject: ({ set }) => set({ traffic: mode }),
  repair: ({ set }) => set({ traffic: 'normal' }),
});

const setBalance = ({ chain, file }: World, ether: number) =>
  callRpc(chain, 'anvil_setBalance', [file().chain?.signer, `0x${(BigInt(ether * 1000) * 10n ** 15n).toString(16)}`]);

const callRedis = async ({ file }: World, name: string, ...args: string[]): Promise<void> => {
  const redis = new Redis(file().redis);
  await redis.call(name, args);
  redis.disconnect();
};

async function publishGarbage({ file }: World): Promise<void> {
  const producer = new Kafka({ brokers: file().kafka, logLevel: logLevel.NOTHING }).producer();
  await producer.connect();
  await producer.send({ topic: TOPICS.messages.name, messages: [{ value: 'not a record' }] });
  await producer.disconnect();
}

/** Truncates a partition of the log by half, as a power loss would. The supervisor restarts the broker. */
async function truncateLog(world: World): Promise<void> {
  const folder = join(world.folder, 'data', 'kafka', 'data', `${TOPICS.messages.name}-0`);
  const segment = join(folder, '00000000000000000000.log');
  world.signal('kafka', 'SIGSTOP');
  truncateSync(segment, Math.floor(statSync(segment).size / 2));
  world.signal('kafka', 'SIGKILL');
}

const acceptLog = ({ operate }: World) =>
  operate(
    ...['offsets', 'accept', '--group', 'event-writer', '--yes'],
    ...['--topic', TOPICS.messages.name, '--partition', '0'],
  );

/** Erases a person, stores a row of the person again, and waits for the search that the eraser runs after its start. */
async function restoreErasedRow(world: World): Promise<void> {
  const userId = randomUUID();
  const message = trackMessage({ type: 'identify', eventName: undefined, userId, identityType: 'passport' });
  await world.post([message]);
  const rows = `FROM events WHERE message_id = '${message.messageId}'`;
  await until('the row is stored', async () => (await world.query(`SELECT 1 ${rows}`)).length > 0);
  await world.query('CREATE TABLE erased_rows AS events');
  await world.query(`INSERT INTO erased_rows SELECT * ${rows}`);
  const id = await world.requestErasure(userId);
  const receipt = `SELECT 1 FROM erasure_receipts FINAL WHERE erasure_id = '${id}'`;
  await until('the receipt is stored', async () => (await world.query(receipt)).length > 0);
  await world.replace('eraser', 'SIGTERM');
  await world.query('INSERT INTO events SELECT * FROM erased_rows');
  await world.query('DROP TABLE erased_rows');
  const found = async () => (await world.metric('eraser', 'playline_eraser_survivors_total')) > 0;
  await until('the eraser has found the row', found, 10 * MINUTE_MS);
}

/** Requests an erasure that cannot finish, because the eraser waits for the linker. */
async function requestStuckErasure(world: World): Promise<void> {
  const userId = randomUUID();
  await world.post([trackMessage({ type: 'identify', eventName: undefined, userId, identityType: 'passport' })]);
  world.signal('identity-linker', 'SIGSTOP');
  await world.requestErasure(userId);
  const waits = async () => (await world.metric('eraser', 'playline_eraser_waiting_requests')) > 0;
  await until('the erasure waits', waits);
  await world.shiftClock('eraser', 2 * HOUR_MS);
}

/** Stops and continues Kafka, so that batches wait for a second and a half. */
async function slowDown(world: World): Promise<void> {
  const end = Date.now() + MINUTE_MS;
  while (Date.now() < end) {
    world.signal('kafka', 'SIGSTOP');
    await delay(1_500);
    world.signal('kafka', 'SIGCONT');
    await delay(300);
  }
}

export const FAULTS: readonly Fault[] = [
  send('flood', ['RateLimited'], 'a client exceeds its rate limit'),
  send('invalid', ['MessagesRejected'], 'half of the messages are invalid'),
  {
    what: 'a disk is full',
    rules: ['DiskFull'],
    inject: ({ disk }) => writeFileSync(join(disk.folder, 'file'), Buffer.alloc(15.5 * 2 ** 20)),
    repair: ({ disk }) => writeFileSync(join(disk.folder, 'file'), ''),
  },
  {
    what: 'a certificate expires tomorrow',
    rules: ['CertificateExpires'],
    inject: ({ tls }) => tls.setDays(1),
    repair: ({ tls }) => tls.setDays(60),
  },
  {
    what: 'the gateway is killed three times',
    rules: ['ServiceRestarts'],
    inject: async (world) => {
      for (let kill = 0; kill < 3; kill++) {
        await world.replace('gateway', 'SIGKILL');
        // Prometheus must see each process.
        await delay(16_000);
      }
    },
    repair: () => {},
  },
  {
    what: 'the clock of the gateway is two hours ahead',
    rules: ['ClockSkew', 'ServiceNotReady'],
    inject: (world) => world.shiftClock('gateway', 2 * HOUR_MS),
    repair: (world) => world.shiftClock('gateway', 0),
  },
  {
    ...suspend('clickhouse', ['ClickHouseUnavailable', 'WriteStuck', 'ConsumerBehind', 'RetentionEnds']),
    inject: async (world) => {
      world.signal('clickhouse', 'SIGSTOP');
      await world.shiftClock('event-writer', TOPICS.messages.retentionMs - HOUR_MS);
    },
    repair: async (world) => {
      world.signal('clickhouse', 'SIGCONT');
      await world.shiftClock('event-writer', 0);
    },
  },
  {
    what: 'ClickHouse refuses inserts, because events has too many parts',
    rules: ['WritesRepeated'],
    inject: (world) => world.query('ALTER TABLE events MODIFY SETTING parts_to_throw_insert = 1'),
    repair: (world) => world.query('ALTER TABLE events RESET SETTING parts_to_throw_insert'),
  },
  {
    what: 'a table of the eraser is missing',
    rules: ['EraserFails'],
    inject: async (world) => {
      await world.query('DETACH TABLE erasure_targets');
      await world.requestErasure(randomUUID());
    },
    repair: (world) => world.query('ATTACH TABLE erasure_targets'),
  },
  suspend('kafka', ['KafkaUnavailable', 'IngestErrors', 'FeedBehind']),
  {
    what: 'Kafka is slow',
    rules: ['SlowPublish'],
    inject: slowDown,
    repair: () => {},
  },
  suspend('redis', ['RedisRejectsWrites', 'RateLimitsNotShared', 'ServiceDegraded']),
  {
    what: 'Redis has lost its data',
    rules: ['RedisEmptied'],
    inject: (world) => callRedis(world, 'FLUSHALL'),
    repair: ({ operate }) => operate('rebuild'),
  },
  {
    what: 'a record cannot be decoded',
    rules: ['DeadLetters'],
    inject: publishGarbage,
    repair: ({ operate }) => operate('dead-letters', 'drop', '--all', '--note', 'test', '--yes'),
  },
  {
    what: 'a log is truncated',
    rules: ['PartitionStopped'],
    inject: truncateLog,
    repair: acceptLog,
  },
  {
    what: 'the linker is suspended, and an erasure has waited for two hours',
    rules: ['ServiceDown', 'ErasureLate'],
    inject: requestStuckErasure,
    repair: async (world) => {
      await world.shiftClock('eraser', 0);
      world.signal('identity-linker', 'SIGCONT');
    },
  },
  {
    what: 'a row of an erased person is found',
    rules: ['ErasedDataFound'],
    prepare: restoreErasedRow,
    inject: () => {},
    repair: () => {},
  },
  {
    what: 'a chain node does not respond',
    rules: ['ChainNodeLags'],
    inject: ({ nodes }) => nodes[1].set('silent'),
    repair: ({ nodes }) => nodes[1].set('open'),
  },
  {
    what: 'the chain has no new blocks',
    rules: ['ChainStalled'],
    inject: ({ set }) => set({ hasBlocks: false }),
    repair: ({ set }) => set({ hasBlocks: true }),
  },
  {
    what: 'no chain node responds, and a mint has waited for eleven minutes',
    rules: ['IndexerSilent', 'MintsBlocked'],
    inject: async (world) => {
      world.setNodes('silent');
      await world.requestMint();
      await world.shiftClock('minter', 11 * MINUTE_MS);
    },
    repair: async (world) => {
      world.setNodes('open');
      await world.shiftClock('minter', 0);
    },
  },
  {
    what: 'a signer has little left',
    rules: ['SignerBalanceLow'],
    inject: async (world) => {
      await setBalance(world, 0.02);
      await world.requestMint();
    },
    repair: async (world) => {
      await setBalance(world, 1_000);
      await world.requestMint();
    },
  },
  {
    what: 'no chain node returns logs',
    rules: ['IndexerBehind', 'BlockUnreadable'],
    inject: async (world) => {
      const { chain } = world;
      world.setNodes('noLogs');
      // Logs of empty blocks are not requested.
      const fromBlock = await callRpc(chain, 'eth_blockNumber', []);
      await world.requestMint();
      const logs = () => callRpc(chain, 'eth_getLogs', [{ fromBlock }]) as Promise<unknown[]>;
      await until('a block has logs', async () => (await logs()).length > 0, MINUTE_MS);
      await callRpc(chain, 'anvil_mine', ['0x96', '0x0']);
    },
    repair: (world) => world.setNodes('open'),
  },
  {
    what: 'a chain is reorganised below its last final block',
    rules: ['ChainHalted'],
    inject: (world) => world.setNodes('otherHashes'),
    repair: (world) => world.setNodes('open'),
  },
  {
    what: 'a process keeps the turn to evaluate the alerts of projects',
    rules: ['ProjectAlertsStopped'],
    prepare: ({ monitoring }) =>
      until(
        'Prometheus has scraped a portal for two minutes',
        async () => (await monitoring.query('process_start_time_seconds{service="portal"} offset 2m')).length > 0,
        3 * MINUTE_MS,
      ),
    inject: (world) => callRedis(world, 'SET', 'alerts:turn', 'a process'),
    repair: (world) => callRedis(world, 'DEL', 'alerts:turn'),
  },
];
