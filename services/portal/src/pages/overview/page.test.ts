import { createKey } from '@playline/access-keys';
import { expect, it } from 'vitest';
import type { Overview, OverviewLine } from '../../reads/index.ts';
import { createMemoryReads } from '../../test/memory-reads.ts';
import { openPortal, type TestPortal } from '../../test/open-portal.ts';
import { findGrownCause } from './page.ts';

const toLine = (changes: Partial<OverviewLine>): OverviewLine => ({
  part: '',
  name: '',
  field: '',
  library: '',
  libraryVersion: '',
  atS: 0,
  value: 0,
  previous: 0,
  total: 0,
  previousTotal: 0,
  ...changes,
});
const CAUSE = toLine({
  name: 'INVALID_ENUM',
  field: 'surface',
  library: 'audience-unity',
  libraryVersion: '2.4.1',
  value: 60,
  previous: 3,
  total: 60,
  previousTotal: 3,
});

async function withOverview(
  overview: Partial<Overview>,
  run: (portal: TestPortal, path: string, project: Awaited<ReturnType<TestPortal['addProject']>>) => Promise<void>,
) {
  const overviews: Record<string, Partial<Overview>> = {};
  const portal = await openPortal({ reads: createMemoryReads({ overviews }) });
  const project = await portal.addProject('Counted');
  overviews[`${project.id}-development`] = overview;
  await run(portal, `/projects/${project.id}/environments/development`, project);
  await portal.close();
}

it('an environment opens on its overview, which compares the numbers of the span with the previous span', async () => {
  const nowS = Math.floor(Date.now() / 1000);
  const overview = {
    firstS: 1,
    clients: [
      toLine({
        library: 'audience-unity',
        libraryVersion: '2.4.1',
        value: 1_100,
        previous: 1_000,
        total: 1_100,
        previousTotal: 1_000,
      }),
    ],
    events: [toLine({ name: 'level_completed', value: 1_100, previous: 2_200, total: 1_100, previousTotal: 2_200 })],
    eventPlayers: new Map([['level_completed', 77]]),
    players: toLine({ value: 80, previous: 40, atS: nowS }),
    causes: [CAUSE],
    delay: toLine({ value: 1_130, previous: 900 }),
    pendingMints: 14,
  };
  await withOverview(overview, async (portal, path, project) => {
    const browser = await portal.signIn({ project, role: 'analyst' });
    const location = (await browser.get(path)).headers.get('location') ?? '';
    expect(location).toBe(`${path}/overview`);
    const { text } = await browser.get(`${location}?range=7d`);
    expect(text).toContain('<title>Overview · development · Counted · Playline</title>');
    const figures = text.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');
    for (const shown of [
      'Messages stored 1,100 up ▲ 10.0 %',
      'Active players 80 up ▲ 100.0 %',
      'Rejection rate 5.17 % up ▲ 4.87 pp 60 recorded errors',
      'Post to queryable, p99 1.1 s 0.9 s before',
      'level_completed 1,100 77 down ▼ 50.0 %',
      'audience-unity 2.4.1 has rejections 100.0 %',
      'Mints pending 14',
      'audience-unity 2.4.1 : surface is not one of web, pixel, unity, unreal. 60 errors in the last 7 d, 3 in the 7 d before.',
    ])
      expect(figures).toContain(shown);
    for (const link of ['rejections?range=7d&amp;code=INVALID_ENUM', 'explore?range=7d']) expect(text).toContain(link);
  });
});

const doneOf = (text: string) => [...text.matchAll(/<h3>([^<]*) <span class="status ok">/g)].map(([, title]) => title);

it('before the first message, the overview lists the first steps with the command for the key of the environment', async () => {
  await withOverview({}, async (portal, path, project) => {
    const browser = await portal.signIn({ project, role: 'developer' });
    const before = (await browser.get(`${path}/overview`)).text;
    expect(before).toContain('Create a key');
    const store = portal.parts.keys.storeFor({ changedBy: 'a test', requestId: 'r' });
    const wanted = {
      projectId: project.id,
      environmentId: `${project.id}-development`,
      environment: 'development',
      kind: 'publishable',
    } as const;
    const { key } = await createKey({ store, prefix: 'svcapik' }, wanted);
    const text = (await browser.get(`${path}/overview`)).text;
    expect([text.includes(key), doneOf(text)]).toEqual([true, ['Create a publishable key']]);
    expect(text).toContain(`/docs/cookbook?environment=${project.id}-development`);
    const roles = [{ projectId: project.id, role: 'analyst' as const }];
    await portal.addAccount({ roles });
    expect(doneOf((await browser.get(`${path}/overview`)).text)).toContain('Invite your team');
  });
});

it('after the first message, its step is done until the message is counted', async () => {
  await withOverview({ firstS: Math.floor(Date.now() / 1000) }, async (portal, path, project) => {
    const browser = await portal.signIn({ project, role: 'analyst' });
    const { text } = await browser.get(`${path}/overview`);
    expect(text).toContain('The first message is stored.');
    expect(text.match(/class="status ok"/g)).toHaveLength(2);
  });
});

it('a cause is called out if it has at least 20 errors and three times as many as in the previous span', () => {
  const grown = toLine({ name: 'grown', value: 300, previous: 100 });
  const causes = [toLine({ name: 'rare', value: 19 }), toLine({ name: 'usual', value: 1_000, previous: 400 })];
  expect(findGrownCause(causes)).toBeUndefined();
  expect(findGrownCause([...causes, CAUSE, grown])).toBe(grown);
});
