import { type OutgoingRecord, RetryableFault } from '@playline/stream';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { createPublication, type Publish } from './publish.ts';

const record = (name: string): OutgoingRecord => ({ topic: 't', key: null, value: Buffer.from(name) });

function createLog() {
  const sends: { names: string; settle: PromiseWithResolvers<void> }[] = [];
  const publish: Publish = (records) => {
    const settle = Promise.withResolvers<void>();
    sends.push({ names: records.map(({ value }) => value.toString()).join(), settle });
    return settle.promise;
  };
  return { publish, sends, names: () => sends.map(({ names }) => names) };
}

it('records are published only after all earlier records are acknowledged', async () => {
  const log = createLog();
  const publication = createPublication(log.publish);
  for (const name of ['a', 'b', 'c']) publication.add([record(name)]);
  expect(log.names()).toEqual(['a']);
  log.sends[0]!.settle.resolve();
  await until('the remaining records are published', () => log.sends.length === 2);
  expect(log.names()).toEqual(['a', 'b,c']);
  const done = publication.done();
  log.sends[1]!.settle.resolve();
  await done;
  publication.add([record('d')]);
  expect(log.names()).toEqual(['a', 'b,c', 'd']);
  log.sends[2]!.settle.resolve();
  await publication.done();
});

it('after a failed publish, nothing more is published and the fault is returned', async () => {
  const log = createLog();
  const publication = createPublication(log.publish);
  publication.add([record('a')]);
  publication.add([record('b')]);
  log.sends[0]!.settle.reject(new RetryableFault('no broker'));
  await expect(publication.done()).rejects.toThrow('no broker');
  publication.add([record('c')]);
  await expect(publication.done()).rejects.toThrow('no broker');
  expect(log.names()).toEqual(['a']);
});
