import { expect, it } from 'vitest';
import { usePortal } from '../test/open-portal.ts';

const portal = usePortal();

/** Returns the text of each entry in the sidebar, and its link; null if it is not a link. */
const readSide = (page: string): [string, string | null][] =>
  [...page.matchAll(/<li><a class="nav"( href="([^"]*)")?[^>]*><svg.*?<\/svg>([^<]*)<\/a>/gs)].map(
    ([, , path = null, text = '']) => [text, path],
  );

const namesOf = (entries: [string, string | null][]) => entries.map(([text]) => text);
const pathIn = (entries: [string, string | null][], name: string) => entries.find(([text]) => text === name)?.[1];

it('the sidebar has the same entries on every page', async () => {
  const { id } = await portal.addProject('Same');
  const browser = await portal.signIn();
  const paths = [
    '/',
    '/settings',
    '/instance/accounts',
    `/projects/${id}`,
    `/projects/${id}/environments/production/keys`,
  ];
  const pages = [];
  for (const path of paths) pages.push(namesOf(readSide((await browser.get(path)).text)));
  expect(pages[0]).toHaveLength(24);
  for (const page of pages) expect(page).toEqual(pages[0]);
});

it('an entry for a page that the role may not open is not a link', async () => {
  const project = await portal.addProject('Read only');
  const side = async (role: 'analyst' | 'owner') =>
    readSide((await (await portal.signIn({ project, role })).get('/settings')).text);
  const [analyst, owner] = [await side('analyst'), await side('owner')];
  expect(namesOf(analyst)).toEqual(namesOf(owner));
  expect(namesOf(analyst.filter(([, path]) => path === null))).toEqual(['Find a person', 'Demo data', 'Audit']);
  expect(owner.filter(([, path]) => path === null)).toEqual([]);
});

it('without a project, the sidebar has no links to projects and environments', async () => {
  const account = await portal.addAccount({});
  const browser = portal.browser();
  const session = { accountId: account.id, accountRevision: account.revision, userAgent: '', address: '' };
  browser.resumeSession((await portal.parts.sessions.create(session)).text);
  const links = readSide((await browser.get('/')).text).filter(([, path]) => path !== null);
  expect(links).toEqual([['Docs', '/docs']]);
});

it('pages without an environment link to the environment that the browser opened last in the project', async () => {
  const [first, second] = [await portal.addProject('A first game'), await portal.addProject('A second game')];
  const browser = await portal.signIn();
  const read = async (path: string) => pathIn(readSide((await browser.get(path)).text), 'Limits');
  const limitsOf = (id: string, environment: string) => `/projects/${id}/environments/${environment}/limits`;
  expect(await read(`/projects/${first.id}`)).toBe(limitsOf(first.id, 'production'));
  await browser.get(limitsOf(first.id, 'development'));
  await browser.get(limitsOf(second.id, 'production'));
  expect(await read(`/projects/${first.id}`)).toBe(limitsOf(first.id, 'development'));
  expect(await read('/settings')).toBe(limitsOf(second.id, 'production'));
});
