import { expect, it } from 'vitest';
import { toJson, toLines } from '../report.ts';
import { CHAIN, type Faults, openFaultyChain } from './faulty-chain.ts';
import { type ChainSimulationResult, simulateChain, toReport } from './simulation.ts';

async function run(faults: Faults, { before = 0 } = {}): Promise<ChainSimulationResult> {
  const { url, activities, tokens, close } = await openFaultyChain(faults);
  const options = {
    url,
    chain: CHAIN,
    activities,
    tokens,
    rate: 0,
    brokenShare: 0.05,
    settleIdleMaxMs: 1_500,
    stop: new AbortController().signal,
    onProgress: () => {},
  };
  try {
    if (before > 0) await simulateChain({ ...options, seed: 4, activitiesMax: before });
    return await simulateChain({ ...options, seed: 5, activitiesMax: 900 });
  } finally {
    await close();
  }
}

type Page = NonNullable<Faults['page']>;
type Row = Parameters<NonNullable<Faults['write']>>[0];

/** Matches the same activity each time: the first one that fits. */
function createVictim<T extends { id: string }>(is: (value: T) => boolean = () => true) {
  const victim = {
    id: 'nothing was spoilt',
    is: (value: T): boolean => {
      if (victim.id === 'nothing was spoilt' && is(value)) victim.id = value.id;
      return value.id === victim.id;
    },
  };
  return victim;
}

const textsOf = ({ differences }: ChainSimulationResult, kind: string): string => {
  expect(differences.map((difference) => difference.kind)).toEqual([kind]);
  return differences[0]!.first.join('\n');
};

it('a simulation finds no differences in a correct interface, and reports what it did', async () => {
  const result = await run({});
  expect(result.differences).toEqual([]);
  expect(toJson(toReport(result))).toMatchObject({ ok: true, chain: CHAIN.name, seed: 5 });
  expect(result).toMatchObject({ served: 900, before: 0, strangers: 0, unknown: 0, sent: { activities: 900 } });
  expect(result.sent.laterVersions).toBeGreaterThan(5);
  expect(result.sent.refused).toBeGreaterThan(20);
  expect(result.readings.slice(1, 7).reduce((sum, { activities }) => sum + activities, 0)).toBe(900);
  expect(toLines(toReport(result)).at(-1)).toMatch(/^All acknowledged activities are served once/);
});

it('a simulation ignores the history before it, and waits after a 429', async () => {
  const result = await run({ refuses: (request) => (request % 9 === 4 ? 429 : null) }, { before: 300 });
  expect(result.differences).toEqual([]);
  expect(result).toMatchObject({ served: 900, before: 300, strangers: 0 });
  expect(result.calls.waited).toBeGreaterThan(2);
});

it('a simulation reports an activity that is never served, and one whose later version is never served', async () => {
  const seen = new Set<string>();
  const lost = createVictim<Row>(({ type }) => type === 'burn');
  const stale = createVictim<Row>(({ id }) => seen.has(id) && id !== lost.id);
  const write = (row: Row) => {
    const isLost = lost.is(row) || stale.is(row);
    seen.add(row.id);
    return isLost ? [] : [row];
  };
  const texts = textsOf(await run({ write }), 'missing');
  expect(texts).toContain(`${lost.id} is not served`);
  expect(texts).toContain(`${stale.id} is served in version 1 of 2`);
});

it('a simulation reports an activity that a filter lacks, and one that does not match it', async () => {
  const victim = createVictim<Parameters<Page>[0][number]>();
  let mint: Parameters<Page>[0][number] | undefined;
  let isAdded = false;
  const page: Page = (shown, filters) => {
    mint ??= shown.find(({ type }) => type === 'mint');
    if (filters.get('activity_type') !== 'sale') return shown;
    const rest = shown.filter((each) => !victim.is(each));
    if (isAdded || mint === undefined) return rest;
    isAdded = true;
    return [...rest, mint].toSorted((one, other) => (one.updated_at < other.updated_at ? -1 : 1));
  };
  const texts = textsOf(await run({ page }), 'filter');
  expect(texts).toContain(`type sale: ${victim.id} is missing`);
  expect(texts).toContain(`type sale: ${mint?.id} does not belong there`);
});

it('a simulation reports an activity that is missing when it reads backwards', async () => {
  const victim = createVictim<Parameters<Page>[0][number]>();
  const page: Page = (shown, _filters, isBackwards) => (isBackwards ? shown.filter((each) => !victim.is(each)) : shown);
  expect(textsOf(await run({ page }), 'backwards')).toContain(`${victim.id} is missing`);
});

it('a simulation reports a wrong token and an ignored ETag', async () => {
  const texts = textsOf(await run({ token: (token) => ({ ...token, decimals: 3 }), ignoresEtags: true }), 'token');
  expect(texts).toContain('result.decimals: 3 instead of');
  expect(texts).toContain('with its ETag is answered 200 and not 304');
});

it('a simulation reports an import with a wrong count', async () => {
  expect(textsOf(await run({ published: (count) => count - 1 }), 'import')).toContain('published');
});
