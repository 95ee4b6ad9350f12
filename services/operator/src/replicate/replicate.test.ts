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

/** When a job is killed: in the middle of a page, after a page but before the state is saved, or after the save. */
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
  readonly target?: string;
  readonly kills?: (Kill | null)[];
}

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

async function runUntilComplete(job: Job & { kills: (Kill | null)[] }): Promise<void> {
  for (;;) {
    try {
      await run(job);
      return;
    } catch (fault) {
      if (!(fault instanceof Killed)) throw fault;
    }
  }
}

it('a copied history is complete for all page sizes, updates, kills and failures', async () => {
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
        await runUntilComplete({ kills: [...kills], pageSize });
        expect(latestVersions(copy())).toEqual(latestVersions(history.versions));
        // Duplicates are allowed only if the API returned a page twice.
        const names = copy().map(({ id, updated_at }) => `${id} ${updated_at}`);
        if (!outcomes.includes('twice')) expect(new Set(names).size).toBe(names.length);
      },
    ),
    { numRuns: runsOf({ quick: 30, all: 150 }) },
  );
});

it('a repeated job copies only new activities, and does not request the first page again', async () => {
  history.put(1, 2, 3, 4);
  await run();
  history.put(2, 5);
  const before = history.requested.length;
  expect(await run()).toMatchObject({ activities: 2, upTo: history.versions.at(-1)!.updated_at });
  expect(history.requested.slice(before)).not.toContain(null);
  expect(latestVersions(copy())).toEqual(latestVersions(history.versions));
});

it('replicate --follow waits at the end of the history, and copies new activities until it is interrupted', async () => {
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

it('a failed page is retried after the time requested by a 429 response, and otherwise with backoff', async () => {
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

it('a job fails if a page fails for longer than the time limit, and does not lose copied activities', async () => {
  history.put(1, 2, 3, 4);
  history.respondWith('page', ...Array.from({ length: 20 }, () => '500' as const));
  const fault = await run({ patienceMs: 3_000 }).catch((error: unknown) => error);
  expect(fault).toBeInstanceOf(UnreachableError);
  expect(String(fault)).toContain('the chain API responded with 500');
  expect(copy()).toHaveLength(3);
});

it('a page is not retried after a permanent error', async () => {
  const fault = await run({ chain: 'other' }).catch((error: unknown) => error);
  expect(String(fault)).toContain('the chain API responded with 404: no such chain');
  expect(history.requested).toHaveLength(1);
});

it('an interrupted job does not retry a failed page', async () => {
  history.put(1);
  history.respondWith('500');
  const stop = new AbortController();
  const pause = async (_ms: number, signal: AbortSignal) => {
    stop.abort();
    signal.throwIfAborted();
  };
  expect(await run({ pause, stop: stop.signal })).toMatchObject({ activities: 0 });
});

it('a file without a state file is never truncated', async () => {
  writeFileSync(out(), 'a file of another program');
  await expect(run()).rejects.toThrow('remove the file, or pass another --out');
  expect(readFileSync(out(), 'utf8')).toBe('a file of another program');
});

it('a file that is shorter than its saved length is refused', async () => {
  history.put(1, 2);
  await run();
  writeFileSync(out(), '');
  await expect(run()).rejects.toThrow('remove both files');
});

it('a file whose contents differ from the copy is refused and never truncated', async () => {
  history.put(1, 2);
  await run();
  writeFileSync(out(), 'x'.repeat(10_000));
  await expect(run()).rejects.toThrow('does not match its state file');
  expect(readFileSync(out(), 'utf8')).toBe('x'.repeat(10_000));
});

it('a job stops if another program writes to its file', async () => {
  history.put(1, 2, 3, 4);
  const onPage = () => appendFileSync(out(), 'foreign');
  await expect(run({ onPage })).rejects.toThrow('another program is writing to');
  expect(readFileSync(out(), 'utf8')).toMatch(/foreign$/);
});

it('only one job can write a copy at a time, and the lock of a killed job does not block other jobs', async () => {
  history.put(1, 2, 3, 4);
  let second: Promise<unknown> | null = null;
  // The second job starts at the first page, because the lock may already be released after the last page.
  const onPage = async () => {
    second ??= run().catch((fault: unknown) => fault);
  };
  await run({ onPage });
  expect(String(await second)).toContain(`another job is writing this copy (process ${process.pid})`);
  expect(copy()).toEqual(history.versions);
  // No process has this id, because process ids are below four million.
  writeFileSync(join(folder, 'state.json.lock'), '5000000');
  history.put(5);
  expect(await run()).toMatchObject({ activities: 1 });
  expect(readdirSync(folder).toSorted()).toEqual(['copy.ndjson', 'state.json']);
});

it('a state file that is invalid, or belongs to another history or target, is refused', async () => {
  history.put(1);
  await run();
  await expect(run({ url: 'http://127.0.0.1:1' })).rejects.toThrow('is the state of');
  await expect(run({ target: '/other.ndjson' })).rejects.toThrow('is the state of a copy to');
  writeFileSync(join(folder, 'state.json'), '{"cursor":');
  await expect(run()).rejects.toThrow('is not a state file');
});
