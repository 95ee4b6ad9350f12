import { PublicError } from '@playline/errors';
import { createLogger } from '@playline/runtime';
import { expect, it } from 'vitest';
import { createFaultLog } from './app.ts';

const key = 'pk_svcapik-0123456789abcdefghijABCDEFGHIJ012345';

/** A log with its lines, and a clock that the test moves itself. */
function openLog() {
  const lines: string[] = [];
  let due: (() => void)[] = [];
  const logger = createLogger({ service: 'gateway', level: 'info' }, { write: (line: string) => lines.push(line) });
  const log = createFaultLog({ logger, afterInterval: (run) => due.push(run) });
  const passInterval = () => {
    const now = due;
    due = [];
    for (const run of now) run();
  };
  const fail = (message: string, traceId = 'a'.repeat(32)) =>
    log({ traceId }, new PublicError('INTERNAL_SERVER_ERROR', { cause: new Error(message) }));
  return { lines, log, fail, passInterval, told: () => lines.map((line) => JSON.parse(line)) };
}

it('the log of failed requests tells the first fault of a kind at once, with trace id and stack', () => {
  const { fail, told } = openLog();
  fail('broker is away');
  expect(told()).toMatchObject([{ level: 'error', msg: 'request failed', traceId: 'a'.repeat(32) }]);
  expect(told()[0].error.stack).toContain('fault-log.test.ts');
});

it('the log of failed requests tells a flood of one kind in one line an interval, with the number and the latest trace id', () => {
  const { fail, told, passInterval } = openLog();
  for (let turn = 0; turn < 1000; turn++) fail(`not acknowledged within ${turn} ms`, String(turn).padStart(32, '0'));
  expect(told()).toHaveLength(1);
  passInterval();
  for (let turn = 0; turn < 5; turn++) fail('not acknowledged within 7 ms');
  passInterval();
  const latest = { traceId: '999'.padStart(32, '0'), latest: 'not acknowledged within 999 ms' };
  expect(told().slice(1)).toMatchObject([{ msg: 'more requests failed', failures: 999, ...latest }, { failures: 5 }]);
});

it('the log of failed requests tells the next fault at once again when an interval has passed without one', () => {
  const { fail, told, passInterval } = openLog();
  fail('broker is away');
  passInterval();
  fail('broker is away');
  expect(told().map(({ msg }) => msg)).toEqual(['request failed', 'request failed']);
});

it('the log of failed requests tells faults of two kinds apart', () => {
  const { fail, told } = openLog();
  fail('broker is away');
  fail('the key store is away');
  expect(told()).toHaveLength(2);
});

it('the log of failed requests stays small when every fault has words of its own', () => {
  const { fail, told, passInterval } = openLog();
  const word = (turn: number) => turn.toString(2).replaceAll('0', 'a').replaceAll('1', 'b');
  for (let turn = 0; turn < 1000; turn++) fail(`no leader of topic ${word(turn)}`);
  expect(told()).toHaveLength(51);
  passInterval();
  expect(told()).toHaveLength(52);
  expect(told()[51]).toMatchObject({ failures: 949 });
});

it('the log of failed requests shows no key and no password, at once or later', () => {
  const { lines, fail, passInterval } = openLog();
  for (let turn = 0; turn < 3; turn++) fail(`redis://:hunter2@store:1 refused ${key}`);
  passInterval();
  expect(lines).toHaveLength(2);
  expect(lines.join()).not.toContain('hunter2');
  expect(lines.join()).not.toContain(key);
});

it('the log of failed requests tells of what was thrown without being an error', () => {
  const { log, told } = openLog();
  log({ traceId: 'b' }, 'text');
  log({ traceId: 'b' }, undefined);
  expect(told()).toMatchObject([{ error: 'text' }, { msg: 'request failed' }]);
});
