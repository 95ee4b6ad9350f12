import { createMemorySessions } from '@playline/access-keys/test';
import { describe, expect, it } from 'vitest';
import { shapeOf } from './page-shape.ts';
import { actionUseOf, type Person, pagesOf, pathFor, personOf, type Response } from './pages.ts';
import { type Planted, plant, plantAccount } from './planted.ts';
import { openPlantedPortal, type PlantedPortal } from './planted-portal.ts';
import { ANSWERS, CALLERS, type Caller } from './role-table.ts';

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

interface Opened {
  readonly portal: PlantedPortal;
  readonly planted: Planted;
  readonly person: Person;
}

async function open(caller: Caller, own?: Parameters<typeof openPlantedPortal>[0]): Promise<Opened> {
  const portal = await openPlantedPortal(own);
  const planted = await plant(portal, { id: 'demo', textOf: (field) => `the ${field}` });
  return { portal, planted, person: await personOf(portal, await accountOf(portal, planted, caller)) };
}

async function answerTo({ page, action }: RowAction, { planted, person }: Opened): Promise<Response> {
  const path = pathFor(page, planted);
  if (action === null) return person.get(path);
  const { plain = () => ({}), refers = () => ({}) } = actionUseOf(page, action);
  return person.send(path, action, { ...plain(planted), ...refers(planted) });
}

const toStatus = ({ status, headers }: Response) =>
  status === 303 && headers.get('location')?.startsWith('/sign-in?next=') ? 'sign-in' : String(status);

/** A link for the first administrator ends with the first administrator, who is refused. */
const FIRST_LINK = '/first-sign-in';

/** Page views and refused forms change nothing, so they share a portal. */
const changesNothing = ({ page, action }: RowAction, expected: string | undefined) =>
  action === null || (page !== FIRST_LINK && (expected === '404' || expected === 'sign-in'));

/** Forms of a page that the table refuses. */
const refusedForms = (page: string, { text }: Response, column: number) =>
  [...text.matchAll(/ name="form" value="([\w-]+)"/g)].flatMap(([, action = '']) => {
    const row = `POST ${page} ${action}`;
    return page !== FIRST_LINK && ANSWERS[row]?.split(' ')[column] === '404' ? [`${row} is shown`] : [];
  });

describe(`the answers of ${ACTIONS.length} pages and forms to ${CALLERS.length} kinds of users`, () => {
  it('every page and form has a row in the table', () => {
    expect(ACTIONS.map(({ row }) => row).toSorted()).toEqual(Object.keys(ANSWERS).toSorted());
  });

  it.each(CALLERS)(
    '%s gets the answers of the table, no form that is refused and no link to a missing page',
    async (caller) => {
      const column = CALLERS.indexOf(caller);
      const shared = await open(caller);
      const faults: string[] = [];
      const links = new Set<string>();
      for (const each of ACTIONS) {
        const expected = ANSWERS[each.row]?.split(' ')[column];
        const opened = changesNothing(each, expected) ? shared : await open(caller);
        const answer = await answerTo(each, opened);
        if (toStatus(answer) !== expected) faults.push(`${each.row}: ${toStatus(answer)} instead of ${expected}`);
        if (each.action === null) {
          faults.push(...refusedForms(each.page, answer, column));
          for (const link of shapeOf(answer.text).links) links.add(link);
        }
        if (opened !== shared) await opened.portal.close();
      }
      for (const link of links)
        if (link.startsWith('/') && (await shared.person.get(link)).status === 404) faults.push(`missing: ${link}`);
      await shared.portal.close();
      expect(links.size).toBeGreaterThan(caller === 'visitor' || caller === 'stranger' ? 2 : 5);
      expect(faults).toEqual([]);
    },
  );
});

const openOld = () => {
  const { sessions, oneTimeTexts: oneTime } = createMemorySessions();
  const find: typeof sessions.find = async (text) => {
    const session = await sessions.find(text);
    return session === null ? null : { ...session, signedInAt: Date.now() - 601_000 };
  };
  return open('administrator', { sessions: { ...sessions, find }, oneTime });
};

it('an old sign-in must be renewed for forms marked fresh only', async () => {
  const shared = await openOld();
  const isFresh = ({ row }: RowAction) => ANSWERS[row]?.endsWith(' fresh') === true;
  const fresh: string[] = [];
  for (const each of ACTIONS.filter(({ action }) => action !== null)) {
    const opened = isFresh(each) ? shared : await openOld();
    const { status, headers } = await answerTo(each, opened);
    if (status === 303 && headers.get('location')?.startsWith('/sign-in?again=1')) fresh.push(each.row);
    if (opened !== shared) await opened.portal.close();
  }
  await shared.portal.close();
  expect(fresh).toEqual(ACTIONS.filter(isFresh).map(({ row }) => row));
});
