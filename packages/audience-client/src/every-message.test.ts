import fc from 'fast-check';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type AudienceClient, type AudienceStore, createMemoryStore, type Fetch } from './index.ts';
import { createClient, createPage, createReports, type FakePage, pass, useFakeTime } from './test/client.ts';
import { createService, type Reply, type Service } from './test/service.ts';

beforeEach(useFakeTime);
afterEach(() => vi.useRealTimers());

const REPLIES: Reply[] = [
  ...(['accepted', 'some rejected', 'all rejected', 'malformed', 'unauthorised', 'rate limited'] as const),
  ...(['server error', 'silent', 'unreachable', 'response lost', 'captive portal'] as const),
];

type Step =
  | { do: 'track'; tab: number; bytes: number }
  | { do: 'reply'; reply: Reply }
  | { do: 'pass'; ms: number }
  | { do: 'flush' | 'crash' | 'close'; tab: number }
  | { do: 'hide' | 'disconnect' | 'connect' };

const tab = fc.nat({ max: 1 });
const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant('track' as const), tab, bytes: fc.nat({ max: 30_000 }) }) },
    { weight: 4, arbitrary: fc.record({ do: fc.constant('reply' as const), reply: fc.constantFrom(...REPLIES) }) },
    {
      weight: 3,
      arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(0, 500, 5000, 40_000) }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constantFrom('flush' as const, 'crash' as const, 'close' as const), tab }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constantFrom('hide' as const, 'disconnect' as const, 'connect' as const) }),
    },
  ),
  { minLength: 5, maxLength: 40 },
);

/** A page that can crash: pending requests never complete, and no new requests start. */
interface Tab {
  client: AudienceClient;
  crashed: boolean;
}

interface World {
  page: FakePage;
  service: Service;
  store: AudienceStore;
  tabs: Tab[];
  tracked: Set<string>;
  reports: ReturnType<typeof createReports>;
}

function createWorld(): World {
  const [service, store, page] = [createService(), createMemoryStore(), createPage()];
  return { service, store, page, tabs: [], tracked: new Set(), reports: createReports() };
}

function openTab({ service, store, reports }: World): Tab {
  const fetch: Fetch = async (url, init) => {
    if (tab.crashed) return new Promise(() => {});
    const response = service.fetch(url, init);
    await response.catch(() => {});
    return tab.crashed ? new Promise(() => {}) : response;
  };
  const { client } = createClient(service, {
    store,
    fetch,
    batchMessagesMax: 3,
    queueMessagesMax: 12,
    queueBytesMax: 200_000,
    onRejected: (rejection) => reports.rejected.push(rejection),
    onDropped: (dropped) => reports.dropped.push(dropped),
  });
  const tab: Tab = { client, crashed: false };
  return tab;
}

async function perform(world: World, step: Step): Promise<void> {
  if (step.do === 'reply') world.service.replies.push(step.reply);
  if (step.do === 'pass') await pass(step.ms);
  if (step.do === 'hide') world.page.hide();
  if (step.do === 'disconnect' || step.do === 'connect') world.page.setOnline(step.do === 'connect');
  if (!('tab' in step)) return;
  const tab = world.tabs[step.tab] ?? openTab(world);
  world.tabs[step.tab] = tab;
  if (step.do === 'track') world.tracked.add(tab.client.track('step', { padding: 'x'.repeat(step.bytes) }) ?? '');
  if (step.do === 'flush') void tab.client.flush();
  if (step.do === 'crash') tab.crashed = true;
  if (step.do === 'close') void tab.client.close();
  if (step.do === 'crash' || step.do === 'close') world.tabs[step.tab] = openTab(world);
}

/** Ends all failures and opens another page, which sends the messages of crashed pages. */
async function recover(world: World): Promise<void> {
  world.service.replies = [];
  world.page.setOnline(true);
  world.page.show();
  world.tabs.push(openTab(world));
  await pass(10 * 60_000);
}

function findLost({ service, store, tracked, reports }: World): string[] {
  const stored = store.keys().join();
  const reported = new Set([
    ...reports.rejected.map(({ messageId }) => messageId),
    ...reports.dropped.flatMap(({ messageIds }) => messageIds),
  ]);
  return [...tracked].filter((id) => !service.stored.has(id) && !reported.has(id) && !stored.includes(id));
}

it('every message is always delivered, reported or in the store, for any sequence of events', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (sequence) => {
      const world = createWorld();
      for (const step of sequence) {
        await perform(world, step);
        expect(findLost(world)).toEqual([]);
      }
      await recover(world);
      expect(findLost(world)).toEqual([]);
      expect(world.store.keys().filter((key) => key.includes(':message:'))).toEqual([]);
      for (const [id, texts] of world.service.stored) expect([world.tracked.has(id), texts.size]).toEqual([true, 1]);
      world.page.remove();
    }),
    { numRuns: 100 },
  );
});
