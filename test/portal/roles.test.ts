import { createMemorySessions } from '@playline/access-keys/test';
import { describe, expect, it } from 'vitest';
import { NAVIGATION } from '../../services/portal/src/frame/layout.ts';
import { readShape } from './page-shape.ts';
import { type Client, getActionSpec, listPages, openClient, pathFor, type Response } from './pages.ts';
import { EXPECTED_STATUSES, USER_TYPES, type UserType } from './role-table.ts';
import { type Seed, seedAccount, seedProject } from './seed.ts';
import { openSeededPortal, type SeededPortal } from './seeded-portal.ts';

interface RowAction {
  readonly row: string;
  readonly page: string;
  readonly action: string | null;
}

const FIRST_PORTAL = await openSeededPortal();
const PAGES = listPages(FIRST_PORTAL);
const ACTIONS: readonly RowAction[] = PAGES.flatMap(({ path: page, actions = {} }) => [
  { row: `GET ${page}`, page, action: null },
  ...Object.keys(actions).map((action) => ({ row: `POST ${page} ${action}`, page, action })),
]);
await FIRST_PORTAL.close();

async function seedUser(portal: SeededPortal, { members }: Seed, userType: UserType): Promise<string | null> {
  if (userType === 'visitor') return null;
  if (userType === 'nonmember') return seedAccount(portal, {});
  if (userType === 'administrator') return seedAccount(portal, { isAdministrator: true });
  return members[userType];
}

interface UserSession {
  readonly portal: SeededPortal;
  readonly seed: Seed;
  readonly client: Client;
}

async function open(userType: UserType, parts?: Parameters<typeof openSeededPortal>[0]): Promise<UserSession> {
  const portal = await openSeededPortal(parts);
  const seed = await seedProject(portal, { id: 'demo', toText: (field) => `the ${field}` });
  return { portal, seed, client: await openClient(portal, await seedUser(portal, seed, userType)) };
}

async function sendAction({ page, action }: RowAction, { seed, client }: UserSession): Promise<Response> {
  const path = pathFor(page, seed);
  if (action === null) return client.get(path);
  const { fields = () => ({}), references = () => ({}) } = getActionSpec(page, action);
  return client.send(path, action, { ...fields(seed), ...references(seed) });
}

const toStatus = ({ status, headers }: Response) =>
  status === 303 && headers.get('location')?.startsWith('/sign-in?next=') ? 'sign-in' : String(status);

/** The link for the first administrator is invalid once an administrator exists. */
const FIRST_LINK = '/first-sign-in';

/** Page views and rejected forms change nothing, so they can share a portal. */
const isReadOnly = ({ page, action }: RowAction, expected: string | undefined) =>
  action === null || (page !== FIRST_LINK && (expected === '404' || expected === 'sign-in'));

/** Finds forms that a page shows although the table expects a 404 for them. */
const findForbiddenForms = (page: string, { text }: Response, column: number) =>
  [...text.matchAll(/ name="form" value="([\w-]+)"/g)].flatMap(([, action = '']) => {
    const row = `POST ${page} ${action}`;
    return page !== FIRST_LINK && EXPECTED_STATUSES[row]?.split(' ')[column] === '404' ? [`${row} is shown`] : [];
  });

describe(`access to ${ACTIONS.length} pages and forms by ${USER_TYPES.length} user types`, () => {
  it('the role table has a row for every page and form', () => {
    expect(ACTIONS.map(({ row }) => row).toSorted()).toEqual(Object.keys(EXPECTED_STATUSES).toSorted());
  });

  it('each entry of the sidebar requires the access of its page', () => {
    const differing = NAVIGATION.flatMap(([, , , path, action]) => {
      const page = PAGES.find((each) => each.path === path);
      return page === undefined || page.access === (action ?? 'signed in') ? [] : [`${path}: ${action}`];
    });
    expect(differing).toEqual([]);
  });

  it.each(USER_TYPES)(
    'the portal returns the expected statuses to the %s, without forbidden forms or broken links',
    async (userType) => {
      const column = USER_TYPES.indexOf(userType);
      const shared = await open(userType);
      const errors: string[] = [];
      const links = new Set<string>();
      for (const each of ACTIONS) {
        const expected = EXPECTED_STATUSES[each.row]?.split(' ')[column];
        const session = isReadOnly(each, expected) ? shared : await open(userType);
        const response = await sendAction(each, session);
        if (toStatus(response) !== expected) errors.push(`${each.row}: ${toStatus(response)} instead of ${expected}`);
        if (each.action === null) {
          errors.push(...findForbiddenForms(each.page, response, column));
          for (const link of readShape(response.text).links) links.add(link);
        }
        if (session !== shared) await session.portal.close();
      }
      for (const link of links)
        if (link.startsWith('/') && (await shared.client.get(link)).status === 404) errors.push(`broken link: ${link}`);
      await shared.portal.close();
      expect(links.size).toBeGreaterThan(userType === 'visitor' || userType === 'nonmember' ? 2 : 5);
      expect(errors).toEqual([]);
    },
  );
});

const openStale = () => {
  const { sessions, oneTimeTokens } = createMemorySessions();
  const find: typeof sessions.find = async (text) => {
    const session = await sessions.find(text);
    return session === null ? null : { ...session, signedInAt: Date.now() - 601_000 };
  };
  return open('administrator', { sessions: { ...sessions, find }, oneTimeTokens });
};

it('the forms with `fresh` in the role table, and no other forms, require a recent sign-in', async () => {
  const shared = await openStale();
  const isFresh = ({ row }: RowAction) => EXPECTED_STATUSES[row]?.endsWith(' fresh') === true;
  const fresh: string[] = [];
  for (const each of ACTIONS.filter(({ action }) => action !== null)) {
    const session = isFresh(each) ? shared : await openStale();
    const { status, headers } = await sendAction(each, session);
    if (status === 303 && headers.get('location')?.startsWith('/sign-in?again=1')) fresh.push(each.row);
    if (session !== shared) await session.portal.close();
  }
  await shared.portal.close();
  expect(fresh).toEqual(ACTIONS.filter(isFresh).map(({ row }) => row));
});
