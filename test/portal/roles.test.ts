import { createMemorySessions } from '@playline/access-keys/test';
import { describe, expect, it } from 'vitest';
import { shapeOf } from './page-shape.ts';
import { actionUseOf, pagesOf, pathFor, personOf, type Seen } from './pages.ts';
import { type Planted, plant, plantAccount } from './planted.ts';
import { openPlantedPortal, type PlantedPortal } from './planted-portal.ts';
import { ANSWERS, CALLERS, type Caller, FRESH } from './role-table.ts';

/** A page, or one of its forms. */
interface Deed {
  readonly row: string;
  readonly page: string;
  readonly deed: string | null;
}

const FIRST_PORTAL = await openPlantedPortal();
const DEEDS: readonly Deed[] = pagesOf(FIRST_PORTAL).flatMap(({ path: page, actions: deeds = {} }) => [
  { row: `GET ${page}`, page, deed: null },
  ...Object.keys(deeds).map((deed) => ({ row: `POST ${page} ${deed}`, page, deed })),
]);
await FIRST_PORTAL.close();

async function accountOf(portal: PlantedPortal, { members }: Planted, asker: Caller): Promise<string | null> {
  if (asker === 'nobody') return null;
  if (asker === 'stranger') return plantAccount(portal, {});
  if (asker === 'administrator') return plantAccount(portal, { isAdministrator: true });
  return members[asker];
}

/** The status that a kind of user gets in a new project. */
async function answerTo({ page, deed }: Deed, asker: Caller, portal: PlantedPortal): Promise<Seen> {
  const planted = await plant(portal, { id: 'demo', textOf: (field) => `the ${field}` });
  const person = await personOf(portal, await accountOf(portal, planted, asker));
  const path = pathFor(page, planted);
  if (deed === null) return person.get(path);
  const { plain = () => ({}), refers = () => ({}) } = actionUseOf(page, deed);
  return person.send(path, deed, { ...plain(planted), ...refers(planted) });
}

const toWord = ({ status, headers }: Seen) =>
  status === 303 && headers.get('location')?.startsWith('/sign-in?next=') ? 'sign-in' : String(status);

describe(`the answers of ${DEEDS.length} pages and forms to ${CALLERS.length} kinds of users`, () => {
  it('have one row each in the table, and the table has no other row', () => {
    expect(DEEDS.map(({ row }) => row).toSorted()).toEqual(Object.keys(ANSWERS).toSorted());
  });

  it.each(DEEDS)('$row: the answers are those of the table', async (deed) => {
    const answers: string[] = [];
    for (const asker of CALLERS) {
      const portal = await openPlantedPortal();
      answers.push(toWord(await answerTo(deed, asker, portal)));
      await portal.close();
    }
    expect(answers.join(' '), `of ${CALLERS.join(', ')}`).toBe(ANSWERS[deed.row]);
  });
});

describe('a sign-in more than ten minutes old', () => {
  it('must be renewed for forms that create or end a secret or a right, and for no others', async () => {
    const asked: string[] = [];
    for (const deed of DEEDS.filter((each) => each.deed !== null)) {
      const { sessions, oneTimeTexts: oneTime } = createMemorySessions();
      const find: typeof sessions.find = async (text) => {
        const session = await sessions.find(text);
        return session === null ? null : { ...session, signedInAt: Date.now() - 601_000 };
      };
      const portal = await openPlantedPortal({ sessions: { ...sessions, find }, oneTime });
      const { status, headers } = await answerTo(deed, 'administrator', portal);
      if (status === 303 && headers.get('location')?.startsWith('/sign-in?again=1')) asked.push(deed.row);
      await portal.close();
    }
    expect(asked.toSorted()).toEqual(FRESH.toSorted());
  });
});

describe('every link on every page', () => {
  it.each(['analyst', 'developer', 'owner', 'administrator'] as const)('leads an %s to a page', async (asker) => {
    const portal = await openPlantedPortal();
    const planted = await plant(portal, { id: 'demo', textOf: (field) => `the ${field}` });
    const person = await personOf(portal, await accountOf(portal, planted, asker));
    const links = new Set<string>();
    for (const { path } of pagesOf(portal))
      for (const link of shapeOf((await person.get(pathFor(path, planted))).text).links) links.add(link);
    const dead: string[] = [];
    for (const link of links) {
      if (link.startsWith('/') && (await person.get(link)).status === 404) dead.push(link);
    }
    await portal.close();
    expect(links.size).toBeGreaterThan(5);
    expect(dead).toEqual([]);
  });
});
