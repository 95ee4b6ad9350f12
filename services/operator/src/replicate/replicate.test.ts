import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runsOf } from '@playline/testkit/runs';

import fc from 'fast-check';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { UnreachableError } from '../command.ts';
import { type Activity, createReadHistory, type HistoryOptions } from './history.ts';
import { type Copied, openFileTarget, openStateFile, type ReplicateOptions, replicate } from './replicate.ts';
import { CHAIN, type FakeHistory, latestVersions, openFakeHistory, type ResponseKind } from './test/open-history.ts';

/** When a job is killed: after half a page, after a page but before its state is saved, or right after that. */
type Kill = 'half' | 'written' | 'saved';

let folder: string;
let history: FakeHistory;
const waits: number[] = [];
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'replicate-test-'));
  history = await openFakeHistory();
  waits.length = 0;
});
afterEach(async () => {
  await history.close();
  rmSync(folder, { recursive: true, force: true });
});

const out = () => join(folder, 'copy.ndjson');
const linesOf = (text: string) =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Activity);
const copy = () => linesOf(readFileSync(out(), 'utf8'));

class Killed extends Error {}

interface Job extends Partial<Omit<HistoryOptions, 'url'>>, Partial<ReplicateOptions> {
  readonly url?: string;
  /** The target as named in the state. */
  readonly target?: string;
  /** For the next pages, in order. */
  readonly kills?: (Kill | null)[];
}

/** A job on the real file and state; pauses take no time. */
function run({ kills = [], url = history.url, target = out(), ...changes }: Job = {}): Promise<Copied> {
  let kill: Kill | null = null;
  return replicate({
    readHistory: createReadHistory({
      url,
      chain: CHAIN,
      pageSize: 3,
      patienceMs: Number.POSITIVE_INFINITY,
      onWait: () => {},
      pause: async (ms) => void waits.push(ms),
      ...changes,
    }),
    openTarget: async (mark) => {
      const file = await openFileTarget(out(), mark);
      return {
        ...file,
        async write(activities) {
          kill = kills.shift() ?? null;
          const text = JSON.stringify(activities[0]);
          if (kill === 'half') appendFileSync(out(), text.slice(0, text.length / 2));
          if (kill === 'half') throw new Killed();
          const reached = await file.write(activities);
          if (kill === 'written') throw new Killed();
          return reached;
        },
      };
    },
    openState: async () => {
      const stateFile = await openStateFile(join(folder, 'state.json'), { url, chain: CHAIN, target });
      return {
        ...stateFile,
        async save(reached) {
          await stateFile.save(reached);
          if (kill === 'saved') throw new Killed();
        },
      };
    },
    waitAtEnd: null,
    onPage: () => {},
    stop: new AbortController().signal,
    ...changes,
  });
}

/** Repeats the job until it completes without being killed. */
async function runThrough(job: Job & { kills: (Kill | null)[] }): Promise<void> {
  for (;;) {
    try {
      await run(job);
      return;
    } catch (fault) {
      if (!(fault instanceof Killed)) throw fault;
    }
  }
}

it('a copy of a history equals the history, despite any pages, updates, kills and faults', async () => {
  const numbers = fc.array(fc.nat(12), { maxLength: 25 });
  const outcomes = fc.array(fc.constantFrom<ResponseKind>('page', 'page', '429', '500', 'broken', 'nonsense', 'twice'));
  const kills = fc.array(fc.constantFrom<Kill | null>(null, 'half', 'written', 'saved'));
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        first: numbers,
        later: fc.array(numbers),
        outcomes,
        kills,
        pageSize: fc.integer({ min: 1, max: 9 }),
      }),
      async ({ first, later, outcomes, kills, pageSize }) => {
        await history.close();
        history = await openFakeHistory();
        for (const name of ['copy.ndjson', 'state.json']) rmSync(join(folder, name), { force: true });
        history.put(...first);
        history.respondWith(...outcomes);
        const pending = [...later];
        history.beforeResponse = () => history.put(...(pending.shift() ?? []));
        await runThrough({ kills: [...kills], pageSize });
        expect(latestVersions(copy())).toEqual(latestVersions(history.versions));
        // Only a page that the API itself returns twice may be stored twice.
        const names = copy().map(({ id, updated_at }) => `${id} ${updated_at}`);
        if (!outcomes.includes('twice')) expect(new Set(names).size).toBe(names.length);
      },
    ),
    { numRuns: runsOf({ quick: 30, all: 150 }) },
  );
});

it('a copy of a history continues with later activities, and requests no page again', async () => {
  history.put(1, 2, 3, 4);
  await run();
  history.put(2, 5);
  const before = history.requested.length;
  expect(await run()).toMatchObject({ activities: 2, upTo: history.versions.at(-1)!.updated_at });
  expect(history.requested.slice(before)).not.toContain(null);
  expect(latestVersions(copy())).toEqual(latestVersions(history.versions));
});

it('replicate --follow waits at the end, copies new activities, and ends when interrupted', async () => {
  history.put(1);
  const stop = new AbortController();
  let ends = 0;
  const waitAtEnd = async () => {
    ends++;
    if (ends === 1) history.put(7);
    if (ends === 2) stop.abort();
  };
  expect(await run({ waitAtEnd, stop: stop.signal })).toMatchObject({ activities: 2 });
  expect(copy()).toEqual(history.versions);
});

it('a failed page is requested again: after 429 at the requested time, otherwise with backoff', async () => {
  history.put(1, 2);
  history.respondWith('500', 'broken', 'nonsense', '429', '500');
  await run();
  expect(copy()).toEqual(history.versions);
  expect(waits).toHaveLength(5);
  expect(waits[3]).toBe(7_000);
  for (const [index, longest] of [500, 1_000, 2_000, 7_000, 8_000].entries()) {
    expect(waits[index]).toBeLessThanOrEqual(longest);
    expect(waits[index]).toBeGreaterThanOrEqual(longest / 2);
  }
});

it('a failed page is given up after the time limit, and copied activities are kept', async () => {
  history.put(1, 2, 3, 4);
  history.respondWith('page', ...Array.from({ length: 20 }, () => '500' as const));
  const fault = await run({ patienceMs: 3_000 }).catch((error: unknown) => error);
  expect(fault).toBeInstanceOf(UnreachableError);
  expect(String(fault)).toContain('the chain API responded with 500');
  expect(copy()).toHaveLength(3);
});

it('a failed page is not requested again after a permanent fault', async () => {
  const fault = await run({ chain: 'other' }).catch((error: unknown) => error);
  expect(String(fault)).toContain('the chain API responded with 404: no such chain');
  expect(history.requested).toHaveLength(1);
});

it('a failed page is not awaited after an interruption', async () => {
  history.put(1);
  history.respondWith('500');
  const stop = new AbortController();
  const pause = async (_ms: number, signal: AbortSignal) => {
    stop.abort();
    signal.throwIfAborted();
  };
  expect(await run({ pause, stop: stop.signal })).toMatchObject({ activities: 0 });
});

it('a file without a state is not truncated', async () => {
  writeFileSync(out(), 'a file of another program');
  await expect(run()).rejects.toThrow('remove it, or use another --out');
  expect(readFileSync(out(), 'utf8')).toBe('a file of another program');
});

it('a file that is shorter than its state is refused', async () => {
  history.put(1, 2);
  await run();
  writeFileSync(out(), '');
  await expect(run()).rejects.toThrow('remove both');
});

it('a file that does not match its state is not truncated if it contains anything but lines of the copy', async () => {
  history.put(1, 2);
  await run();
  writeFileSync(out(), 'x'.repeat(10_000));
  await expect(run()).rejects.toThrow('does not match its state');
  expect(readFileSync(out(), 'utf8')).toBe('x'.repeat(10_000));
});

it('a copy ends if another program writes to its file', async () => {
  history.put(1, 2, 3, 4);
  const onPage = () => appendFileSync(out(), 'foreign');
  await expect(run({ onPage })).rejects.toThrow('another program writes to');
  expect(readFileSync(out(), 'utf8')).toMatch(/foreign$/);
});

it('a copy is written by one job at a time, and the lock of a killed job does not block other jobs', async () => {
  history.put(1, 2, 3, 4);
  let second: Promise<unknown> | null = null;
  // At the first page only: after the last page the lock might be free, and the second job would also copy.
  const onPage = async () => {
    second ??= run().catch((fault: unknown) => fault);
  };
  await run({ onPage });
  expect(String(await second)).toContain(`another job copies here (process ${process.pid})`);
  expect(copy()).toEqual(history.versions);
  // Process ids are below four million.
  writeFileSync(join(folder, 'state.json.lock'), '5000000');
  history.put(5);
  expect(await run()).toMatchObject({ activities: 1 });
  expect(readdirSync(folder).toSorted()).toEqual(['copy.ndjson', 'state.json']);
});

it('a state that is invalid, or belongs to another history or target, is refused', async () => {
  history.put(1);
  await run();
  await expect(run({ url: 'http://127.0.0.1:1' })).rejects.toThrow('is the state of');
  await expect(run({ target: '/other.ndjson' })).rejects.toThrow('is the state of a copy to');
  writeFileSync(join(folder, 'state.json'), '{"cursor":');
  await expect(run()).rejects.toThrow('is not a state of a copy');
});
