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

const expectOnly = ({ differences }: ChainSimulationResult, kind: string, ...texts: string[]) => {
  expect(differences.map((difference) => difference.kind)).toEqual([kind]);
  for (const text of texts) expect(differences[0]!.first[0]).toContain(text);
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

it('a simulation reports an activity that is never served', async () => {
  const victim = createVictim<Row>(({ type }) => type === 'burn');
  const result = await run({ write: (row) => (victim.is(row) ? [] : [row]) });
  expectOnly(result, 'missing', victim.id, 'is not served');
});

it('a simulation reports an activity whose later version is never served', async () => {
  const seen = new Set<string>();
  const victim = createVictim<Row>(({ id }) => seen.has(id));
  const write = (row: Row) => {
    const isLost = victim.is(row);
    seen.add(row.id);
    return isLost ? [] : [row];
  };
  expectOnly(await run({ write }), 'missing', victim.id, 'is served in version 1 of 2');
});

it.each<[string, 'filter' | 'backwards', (filters: URLSearchParams, isBackwards: boolean) => boolean]>([
  ['a filter by type', 'filter', (filters) => filters.get('activity_type') === 'sale'],
  ['a filter by contract', 'filter', (filters) => filters.has('contract_address')],
  ['a filter by time', 'filter', (filters) => filters.has('to_indexed_at')],
  ['a reading backwards', 'backwards', (_filters, isBackwards) => isBackwards],
])('a simulation reports an activity that %s lacks', async (_name, kind, is) => {
  const victim = createVictim<Parameters<Page>[0][number]>();
  const page: Page = (shown, filters, isBackwards) =>
    is(filters, isBackwards) ? shown.filter((each) => !victim.is(each)) : shown;
  expectOnly(await run({ page }), kind, victim.id, 'is missing');
});

it('a simulation reports an activity that does not match a filter', async () => {
  let sale: Parameters<Page>[0][number] | undefined;
  let isAdded = false;
  const page: Page = (shown, filters) => {
    sale ??= shown.find(({ type }) => type === 'sale');
    if (filters.get('activity_type') !== 'mint' || isAdded || sale === undefined) return shown;
    isAdded = true;
    return [...shown, sale].toSorted((one, other) => (one.updated_at < other.updated_at ? -1 : 1));
  };
  expectOnly(await run({ page }), 'filter', 'type mint', sale?.id ?? '', 'does not belong there');
});

it.each<[string, Faults, string, string]>([
  ['a wrong token', { token: (token) => ({ ...token, decimals: 3 }) }, 'token', 'result.decimals: 3 instead of'],
  ['an ETag that is ignored', { ignoresEtags: true }, 'token', 'with its ETag is answered 200 and not 304'],
  ['an import with a wrong count', { published: (count) => count - 1 }, 'import', 'published'],
])('a simulation reports %s', async (_name, faults, kind, text) => {
  expectOnly(await run(faults), kind, text);
});
