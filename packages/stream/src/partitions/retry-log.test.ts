import { createLogger } from '@playline/runtime';
import { until } from '@playline/testkit';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Consumer, RetryableFault } from '../ports.ts';
import { createMemoryLog } from '../test/memory/index.ts';
import { send } from '../test/producer-contract.ts';
import { createTokenSink, TokenStore } from '../test/token-store.ts';
import { RetryNotice } from './retry-log.ts';

const TOPIC = 'topic';
const PARTITIONS = 6;
const none = { minMs: 0, maxMs: 0 };
const waits = { attempt: none, pause: none };

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

async function openBench(open: 'writer' | 'handler') {
  const log = createMemoryLog({ partitions: PARTITIONS });
  const lines: Record<string, unknown>[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line));
  const logger = createLogger({ service: 'test', level: 'warn' }, { write });
  const producer = log.openProducer();
  for (let i = 0; i < PARTITIONS; i++) await send(producer, [{ topic: TOPIC, key: null, value: Buffer.from('row') }]);
  const state = { attempts: 0, refuses: true };
  const attempt = () => {
    state.attempts++;
    if (state.refuses) throw new RetryableFault(`ClickHouse 516 AUTHENTICATION_FAILED: attempt ${state.attempts}`);
  };
  const store = new TokenStore();
  store.onWrite = (_name, moment) => (moment === 'before' ? attempt() : undefined);
  const limits = { rowsMax: 1, bytesMax: 1_000, ageMaxMs: 1 };
  const consumer: Consumer & { idle(): Promise<void> } =
    open === 'writer'
      ? log.openBlockConsumer({ topics: [TOPIC], sink: createTokenSink(store), limits, logger, waits })
      : log.openRecordConsumer({ topics: [TOPIC], onBatch: async () => attempt(), logger, waits });
  return { state, lines, consumer };
}

describe.each(['writer', 'handler'] as const)('a %s whose store refuses every partition', (kind) => {
  it('says so in one line with the reason and without a stack, then counts all attempts at growing distances', async () => {
    const { state, lines, consumer } = await openBench(kind);
    await until('many attempts', () => state.attempts >= 20 * PARTITIONS);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ level: 'warn', topic: TOPIC, attempts: 1, partitions: 1 });
    expect(lines[0]!.reason).toContain('AUTHENTICATION_FAILED');
    expect(JSON.stringify(lines)).not.toContain('stack');
    const before = state.attempts;
    vi.advanceTimersByTime(1_000);
    await until('the next line', () => lines.length === 2);
    expect(lines[1]).toMatchObject({ partitions: PARTITIONS, forSeconds: 1 });
    expect(lines[1]!.attempts).toBeGreaterThan(before);
    state.refuses = false;
    await consumer.idle();
    await consumer.close();
    expect(lines).toHaveLength(2);
  });
});

describe('a store that refuses again after it has worked for a while', () => {
  it('is logged at once', async () => {
    const { state, lines, consumer } = await openBench('writer');
    await until('a line', () => lines.length === 1);
    vi.advanceTimersByTime(60_000);
    await until('another', () => lines.length === 2);
    expect(lines[1]).toMatchObject({ attempts: 1, forSeconds: 0 });
    state.refuses = false;
    await consumer.idle();
    await consumer.close();
  });
});

it('logs the first failed attempt at once and the others less and less often, but never stops', () => {
  const notice = new RetryNotice();
  const told: number[] = [];
  // A day of attempts, one in five seconds.
  for (let second = 0; second < 86_400; second += 5) {
    const due = notice.next();
    if (due !== null) {
      told.push(second);
      expect(due).toEqual({ attempts: second / 5 + 1, forSeconds: second });
    }
    vi.advanceTimersByTime(5_000);
  }
  expect(told.slice(0, 6)).toEqual([0, 5, 10, 15, 25, 45]);
  const distances = told.slice(1).map((second, index) => second - told[index]!);
  expect(Math.max(...distances)).toBe(600);
  expect(told.length).toBeLessThan(160);
});
