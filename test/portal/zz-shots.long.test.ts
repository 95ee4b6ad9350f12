import { createRequire } from 'node:module';
import { randomUUID } from 'node:crypto';
import { afterAll, it } from 'vitest';
import { openMemoryPeople } from '@playline/people/memory';
import { createMemoryReads } from '../../services/portal/src/test/memory-reads.ts';
import { createMemoryPeople, keyOf, openPortal } from '../../services/portal/src/test/open-portal.ts';
import { closeContexts, findViolations, openTab, sharedBrowser } from './browser.ts';
afterAll(async () => closeContexts(await sharedBrowser()));
it('shots', async () => {
  const browser = await sharedBrowser();
  const people = openMemoryPeople();
  await people.rebuild.mintEpoch();
  const rows: any = { ids: {}, timelines: {}, profiles: {}, erasures: {} };
  const portal = await openPortal({ people: createMemoryPeople({ people }), reads: createMemoryReads(rows) });
  const project = await portal.addProject('Dragon Quest');
  const env = project.environments.find(({ name }) => name === 'development')!.id;
  const k = (kind: any, id: string) => keyOf(env, kind, id);
  const list: [any, string][] = [['email', 'pat@game.example'], ['steam', '76561198000007714'], ['anonymous', 'anon-4f1c2a77-8891-4c11-a7a8-0d2b'], ['anonymous', 'anon-98ab77aa-1111-4c11-a7a8-0d2b']];
  const source = { generation: 0, partition: 0 };
  const now = Date.now();
  rows.ids[env] = Object.fromEntries(list.map(([kind, id]) => [k(kind, id).toString('hex'), id]));
  const base = { entry: 'link', happenedMs: now - 240_000, id: '1'.repeat(32), what: 'identify', name: 'linked', origin: '', identityId: k('anonymous', list[2]![1]).toString('hex'), kind: 'anonymous', otherId: k('email', list[0]![1]).toString('hex'), otherKind: 'email', messageId: randomUUID(), traceId: 'ab'.repeat(16), detail: '' };
  const ev = (ms: number, name: string, props: object, what = 'track') => ({ ...base, entry: 'event', happenedMs: now - ms, id: randomUUID().replaceAll('-', ''), what, name, origin: 'unity', otherId: '', detail: JSON.stringify({ receivedAt: new Date().toISOString(), userId: 'pat@game.example', sessionId: 's-1', library: 'unity', libraryVersion: '2.4.1', properties: props }) });
  const facts: any[] = [];
  let offset = 0;
  for (const [a, b] of [[2, 0], [1, 0], [3, 1]] as const) {
    const step = { link: 'identify', blocked: false, otherKeys: [], aKey: k(...list[a]!), aKind: list[a]![0], bKey: k(...list[b]!), bKind: list[b]![0] };
    facts.push({ environmentId: env, offset: offset++, receivedAt: now - 1e6, eventTime: now - 1e6, steps: [step] });
  }
  await people.graph.apply({ ...source, after: -1, through: 2, facts });
  rows.timelines[env] = [base, { ...base, id: '2'.repeat(32), name: 'refused', origin: 'shared_device', happenedMs: now - 9e7, otherId: 'f'.repeat(32), otherKind: 'steam' },
    ev(60_000, 'level_completed', { level: 12, difficulty: 'hard', items: ['sword'] }), ev(120_000, 'match_started', {}), ev(500_000, 'session_start', { city: 'Berlin' }), ev(8e7, 'item_purchased', { price: '4.99', currency: 'EUR', item: 'sword' }), ev(8.1e7, 'Shop', {}, 'screen'),
    ...Array.from({ length: 46 }, (_, i) => ev(1e8 + i * 4e6, 'match_started', { level: i })),
    { ...base, entry: 'consent', id: '6'.repeat(32), what: 'full', name: 'current', origin: 'settings page', happenedMs: now - 8.2e7, otherId: '', messageId: '' }];
  rows.profiles[env] = { firstSeenMs: now - 8e9, lastSeenMs: now - 60_000, firstSurface: 'web', lastSurface: 'unity', traits: '{"plan":"pro","locale":"de-DE"}', events: 1882, sessions: 41 };
  const owner = await portal.addAccount({ roles: [{ projectId: project.id, role: 'owner' }] });
  const tab = await openTab(browser, portal, owner.id);
  const base_ = `${portal.origin}/projects/${project.id}/environments/development`;
  const shot = async (name: string) => {
    for (const width of [1280, 390]) for (const scheme of ['light', 'dark'] as const) {
      await tab.page.setViewportSize({ width, height: 900 }); await tab.page.emulateMedia({ colorScheme: scheme });
      await tab.page.screenshot({ path: `/tmp/wt/person/.playline/shots/${name}-${width}-${scheme}.png`, fullPage: true });
      const h = await tab.page.evaluate('document.documentElement.scrollHeight + " " + document.documentElement.scrollWidth');
      console.log(name, width, scheme, 'height/width', h);
    }
    console.log(name, 'AXE', JSON.stringify(await findViolations(tab.page)));
  };
  await tab.page.goto(`${base_}/people`);
  await shot('find');
  await tab.page.fill('input[name=id]', 'PAT@game.example');
  await tab.page.setViewportSize({ width: 1280, height: 900 });
  await tab.page.click('text=Find person');
  await tab.page.waitForSelector('text=Similar ids');
  await shot('unknown');
  await tab.page.setViewportSize({ width: 1280, height: 900 });
  await tab.page.click('a.exact');
  await tab.page.waitForSelector('.timeline');
  await shot('person');
  await tab.page.setViewportSize({ width: 1280, height: 900 });
  await tab.page.click('.timeline summary >> nth=0');
  await tab.page.click('.person table .toggle >> nth=0');
  await shot('person-open');
  await tab.page.setViewportSize({ width: 1280, height: 900 });
  await tab.page.click('text=Erase person…');
  await tab.page.waitForSelector('input[name=confirm]');
  await shot('erase');
  await tab.page.setViewportSize({ width: 1280, height: 900 });
  await tab.page.fill('input[name=confirm]', 'pat@game.example');
  await tab.page.click('button.danger');
  await tab.page.waitForSelector('.erasure');
  const id = tab.page.url().split('/').at(-1)!;
  await shot('erasure-1');
  const line = { erasureId: id, requestedMs: now, cutoffMs: now, traceId: 't', state: 'waiting', identities: 4, deleted: 1000, fencedMs: now + 2000, visiblyErasedMs: null, physicallyErasedMs: null, logExpiresMs: null, logExpiredMs: null };
  rows.erasures[env] = [line];
  await tab.page.waitForSelector('text=records of 4 identities');
  await shot('erasure-2');
  rows.erasures[env] = [{ ...line, state: 'erased', deleted: 1894, visiblyErasedMs: now + 9000, logExpiresMs: now + 2.6e8 }];
  await tab.page.waitForSelector('text=Download receipt');
  await shot('erasure-3');
  console.log('ERRORS', JSON.stringify(tab.errors));
  await portal.close();
}, 300000);
