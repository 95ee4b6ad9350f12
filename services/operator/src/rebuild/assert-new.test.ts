import { TOPICS } from '@playline/contracts';
import type { LogBounds, LogReader } from '@playline/stream';
import { expect, it } from 'vitest';
import { EmptiedError, UnreachableError } from '../command.ts';
import { assertNew } from './rebuild-identity.ts';

const EMPTY: LogBounds[] = [{ partition: 0, start: 0, end: 0 }];

function check(bounds: (topic: string) => LogBounds[]) {
  const log = { bounds: async (topic: string) => (topic === '' ? [] : bounds(topic)), close: async () => {} };
  const clickhouse = () => {
    throw new UnreachableError('CLICKHOUSE_URL is not set');
  };
  return assertNew({ openLog: async () => log as unknown as LogReader, clickhouse, topicPrefix: 'p.' });
}

it('identity init accepts a deployment with empty topics', async () => {
  await check(() => EMPTY);
});

it('identity init retries while the brokers are still creating the partition logs of new topics', async () => {
  let refusals = 3;
  await check(() => {
    if (refusals-- > 0) throw new Error('This server is not the leader');
    return EMPTY;
  });
  expect(refusals).toBeLessThan(0);
});

it('identity init refuses an emptied Redis, and names topics that contained records, even if the records have expired', async () => {
  const consents = `p.${TOPICS.consents.name}`;
  const refused = check((topic) => (topic === consents ? [{ partition: 0, start: 7, end: 7 }] : EMPTY));
  await expect(refused).rejects.toThrow(EmptiedError);
  await expect(refused).rejects.toThrow(consents);
});
