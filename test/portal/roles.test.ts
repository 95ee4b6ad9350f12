import { createMemorySessions } from '@playline/access-keys/test';
import { describe, expect, it } from 'vitest';
import { shapeOf } from './page-shape.ts';
import { actionUseOf, pagesOf, pathFor, personOf, type Response } from './pages.ts';
import { type Planted, plant, plantAccount } from './planted.ts';
import { openPlantedPortal, type PlantedPortal } from './planted-portal.ts';
import { ANSWERS, CALLERS, type Caller, FRESH } from './role-table.ts';

/** A page, or one of its forms. */
interface RowAction {
  readonly row: string;
  readonly page: string;
  readonly action: string | null;
}

const FIRST_PORTAL = await openPlantedPortal();
const ACTIONS: readonly RowAction[] = pagesOf(FIRST_PORTAL).flatMap(({ path: page, actions = {} }) => [
  { row: `GET ${page}`, page, action: null },
  ...Object.keys(actions).map((action) => ({ row: `POST ${page} ${action}`, page, action })),
]);
await FIRST_PORTAL.close();

async function accountOf(portal: PlantedPortal, { members }: Planted, caller: Caller): Promise<string | null> {
  if (caller === 'visitor') return null;
  if (caller === 'stranger') return plantAccount(portal, {});
  if (caller === 'administrator') return plantAccount(portal, { isAdministrator: true });
  return members[caller];
}

/** The status that a kind of user gets in a new project. */
async function answerTo({ page, action }: RowAction, caller: Caller, portal: PlantedPortal): Promise<Response> {
  const planted = await plant(portal, { id: 'demo', textOf: (field) => `the ${field}` });
  const person = await personOf(portal, await accountOf(portal, planted, caller));
  const path = pathFor(page, planted);
  if (action === null) return person.get(path);
  const { plain = () => ({}), refers = () => ({}) } = actionUseOf(page, action);
  return person.send(path, action, { ...plain(planted), ...refers(planted) });
}

const toStatus = ({ status, headers }: Response) =>
  status === 303 && headers.get('location')?.startsWith('/sign-in?next=') ? 'sign-in' : String(status);

describe(`the answers of ${ACTIONS.length} pages and forms to ${CALLERS.length} kinds of users`, () => {
  it('every page and form has a row in the table', () => {
    expect(ACTIONS.map(({ row }) => row).toSorted()).toEqual(Object.keys(ANSWERS).toSorted());
  });

  it.each(ACTIONS)('$row: the answers are those of the table', async (action) => {
    const answers: string[] = [];
    for (const caller of CALLERS) {
      const portal = await openPlantedPortal();
      answers.push(toStatus(await answerTo(action, caller, portal)));
      await portal.close();
    }
    expect(answers.join(' '), `of ${CALLERS.join(', ')}`).toBe(ANSWERS[action.row]);
  });
});

describe('a sign-in more than ten minutes old', () => {
  it('an old sign-in must be renewed for the forms of FRESH only', async () => {
    const fresh: string[] = [];
    for (const action of ACTIONS.filter((each) => each.action !== null)) {
      const { sessions, oneTimeTexts: oneTime } = createMemorySessions();
      const find: typeof sessions.find = async (text) => {
        const session = await sessions.find(text);
        return session === null ? null : { ...session, signedInAt: Date.now() - 601_000 };
      };
      const portal = await openPlantedPortal({ sessions: { ...sessions, find }, oneTime });
      const { status, headers } = await answerTo(action, 'administrator', portal);
      if (status === 303 && headers.get('location')?.startsWith('/sign-in?again=1')) fresh.push(action.row);
      await portal.close();
    }
    expect(fresh.toSorted()).toEqual(FRESH.toSorted());
  });
});

describe('every link on every page', () => {
  it.each(['analyst', 'developer', 'owner', 'administrator'] as const)(
    'every link leads an %s to a page',
    async (caller) => {
      const portal = await openPlantedPortal();
      const planted = await plant(portal, { id: 'demo', textOf: (field) => `the ${field}` });
      const person = await personOf(portal, await accountOf(portal, planted, caller));
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
    },
  );
});
