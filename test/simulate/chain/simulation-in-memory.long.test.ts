import { describe, expect, it } from 'vitest';
import { toJson, toLines } from '../report.ts';
import { CHAIN, type Mistakes, openFaultyChain } from './faulty-chain.ts';
import { type ChainSimulationResult, simulateChain, toReport } from './simulation.ts';

async function run(mistakes: Mistakes, { before = 0 } = {}): Promise<ChainSimulationResult> {
  const chain = await openFaultyChain(mistakes);
  const options = {
    url: chain.url,
    chain: CHAIN,
    activities: chain.activities,
    tokens: chain.tokens,
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
    await chain.close();
  }
}

/** Calls `apply` once, with the first value that matches. */
function once<T, R>(is: (value: T) => boolean, apply: (value: T) => R, otherwise: (value: T) => R) {
  let isDone = false;
  return (value: T): R => {
    if (isDone || !is(value)) return otherwise(value);
    isDone = true;
    return apply(value);
  };
}
/** Matches the same activity each time: the first one that fits. */
function createVictim<T extends { id: string }>(is: (value: T) => boolean) {
  let id: string | null = null;
  return {
    is: (value: T): boolean => {
      if (id === null && is(value)) id = value.id;
      return value.id === id;
    },
    get id() {
      return id;
    },
  };
}
type Shown = Parameters<NonNullable<Mistakes['page']>>[0][number];
type Row = Parameters<NonNullable<Mistakes['write']>>[0];

const expectOnly = ({ differences }: ChainSimulationResult, kind: string, ...texts: (string | null)[]) => {
  expect(differences.map((difference) => difference.kind)).toEqual([kind]);
  for (const text of texts) expect(differences[0]!.first[0]).toContain(text ?? 'nothing was spoilt');
};

describe('a simulation of a chain', () => {
  it('finds no differences in a correct interface, and reports what it did', async () => {
    const result = await run({});
    expect(result.differences).toEqual([]);
    expect(toJson(toReport(result))).toMatchObject({ ok: true, chain: CHAIN.name, seed: 5 });
    expect(result).toMatchObject({ served: 900, before: 0, strangers: 0, unknown: 0, sent: { activities: 900 } });
    expect(result.sent.laterVersions).toBeGreaterThan(5);
    expect(result.sent.refused).toBeGreaterThan(20);
    expect(result.readings.slice(1, 7).reduce((sum, { activities }) => sum + activities, 0)).toBe(900);
    expect(toLines(toReport(result)).at(-1)).toMatch(/^All acknowledged activities are served once/);
  });

  it('ignores what was there before, and waits between lines at a given rate', async () => {
    const result = await run({ refuses: (request) => (request % 9 === 4 ? 429 : null) }, { before: 300 });
    expect(result.differences).toEqual([]);
    expect(result).toMatchObject({ served: 900, before: 300, strangers: 0 });
    expect(result.calls.waited).toBeGreaterThan(2);
  });

  it('reports an activity of which one member differs from what was published', async () => {
    const victim = createVictim<Shown>(({ type }) => type === 'sale');
    const spoil = (shown: Shown): Shown => ({ ...shown, details: { ...shown.details, order_id: 'another' } });
    const page = (shown: Shown[]) => shown.map((each) => (victim.is(each) ? spoil(each) : each));
    expectOnly(await run({ page }), 'member', victim.id, 'details.order_id: "another" instead of');
  });

  it('reports an activity that is never served', async () => {
    const victim = createVictim<Row>(({ type }) => type === 'burn');
    const result = await run({ write: (row) => (victim.is(row) ? [] : [row]) });
    expectOnly(result, 'missing', victim.id, 'is not served');
  });

  it('reports an activity whose later version is never served', async () => {
    const seen = new Set<string>();
    const victim = createVictim<Row>(({ id }) => seen.has(id));
    const write = (row: Row) => {
      const isLost = victim.is(row);
      seen.add(row.id);
      return isLost ? [] : [row];
    };
    expectOnly(await run({ write }), 'missing', victim.id, 'is served in version 1 of 2');
  });

  it('reports places that are out of order', async () => {
    let id: string | null = null;
    const page = once<Shown[], Shown[]>(
      ({ length }) => length > 3,
      (shown) => {
        id = shown[1]!.id;
        return [shown[0]!, shown[2]!, shown[1]!, ...shown.slice(3)];
      },
      (shown) => shown,
    );
    const { differences } = await run({ page });
    expect(differences[0]).toMatchObject({ kind: 'order', count: 1 });
    expect(differences[0]!.first[0]).toContain(id);
  });

  it.each<[string, 'filter' | 'backwards', (request: { filters: URLSearchParams; isBackwards: boolean }) => boolean]>([
    ['a filter by type', 'filter', ({ filters }) => filters.get('activity_type') === 'sale'],
    ['a filter by contract', 'filter', ({ filters }) => filters.has('contract_address')],
    ['a filter by time', 'filter', ({ filters }) => filters.has('to_indexed_at')],
    ['a reading backwards', 'backwards', ({ isBackwards }) => isBackwards],
  ])('reports what is missing of %s', async (_name, kind, is) => {
    const victim = createVictim<Shown>(() => true);
    const result = await run({
      page: (shown, request) => (is(request) ? shown.filter((each) => !victim.is(each)) : shown),
    });
    expectOnly(result, kind, victim.id, 'is missing');
  });

  it('reports activities that do not match a filter', async () => {
    let sale: Shown | undefined;
    const withSale = once<Shown[], Shown[]>(
      () => sale !== undefined,
      (shown) => [...shown, sale!].toSorted((one, other) => (one.updated_at < other.updated_at ? -1 : 1)),
      (shown) => shown,
    );
    const result = await run({
      page: (shown, { filters }) => {
        sale ??= shown.find(({ type }) => type === 'sale');
        return filters.get('activity_type') === 'mint' ? withSale(shown) : shown;
      },
    });
    expectOnly(result, 'filter', 'type mint', sale!.id, 'does not belong there');
  });

  it.each<[string, Mistakes, string]>([
    ['is not as it was published', { token: (token) => ({ ...token, decimals: 3 }) }, 'result.decimals: 3 instead of'],
    ['has an ETag that does not hold', { ignoresEtags: true }, 'with its ETag is answered 200 and not 304'],
  ])('reports a token that %s', async (_name, mistakes, text) => {
    expectOnly(await run(mistakes), 'token', text);
  });

  it('reports an import that accepted other lines than it should', async () => {
    const { differences } = await run({ published: (count) => count - 1 });
    expect(differences.map(({ kind }) => kind)).toEqual(['import']);
  });
});
