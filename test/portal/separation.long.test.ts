import { ROLES, type Role } from '@playline/access-keys';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createPortalApp } from '../../services/portal/src/app.ts';
import {
  actionUseOf,
  FILES,
  OTHER_ROUTES,
  type Person,
  pagesOf,
  pathFor,
  personOf,
  type Response,
  storedPathFor,
  useOf,
} from './pages.ts';
import { type Planted, plant, plantedNowhere } from './planted.ts';
import { openPlantedPortal, type PlantedPortal } from './planted-portal.ts';
import { recordsOf, textsOf } from './records-of.ts';

const MARK = 'zq-of-the-other';
/** Id of no project, with the prefix of both others. */
const NOWHERE = 'demo-3';

interface World {
  readonly portal: PlantedPortal;
  readonly own: Planted;
  readonly other: Planted;
  /** Signs in again a member of our project with this role, because some forms end all of the member's sessions. */
  signIn(role: Role): Promise<Person>;
}

/** Opens a portal with two projects. The id of one is a prefix of the other's id. */
async function openWorld([ownId, otherId]: readonly [string, string]): Promise<World> {
  const portal = await openPlantedPortal();
  const other = await plant(portal, { id: otherId, textOf: (field) => `${MARK} ${field}`, environment: 'lab' });
  const own = await plant(portal, { id: ownId, textOf: (field) => `own ${field}`, environment: 'shed' });
  const signIn = async (role: Role) => {
    await portal.parts.sessions.endAll(own.members[role]);
    return personOf(portal, own.members[role]);
  };
  return { portal, own, other, signIn };
}

interface Attempt {
  readonly page: string;
  readonly action: string | null;
  readonly path: string;
  readonly values: Readonly<Record<string, string>>;
}

type AnsweredBy = (person: Person, attempt: Attempt) => Promise<Response>;
const answerTo: AnsweredBy = (person, { action, path, values }) =>
  action === null ? person.get(path) : person.send(path, action, values);

// All pages and forms, aimed at the objects of `at`: by the path, or under our own path by ids in the form. Forms are
// sent to the first two paths, because a path is resolved the same way for pages and forms.
function triesAt({ portal, own }: World, at: Planted): Attempt[] {
  return pagesOf(portal).flatMap(({ path: page, actions = {} }) => [
    ...pathsAt(page, own, at).flatMap((path, index): Attempt[] => [
      { page, action: null, path, values: {} },
      ...(index < 2 ? Object.keys(actions) : []).map((action) => ({
        page,
        action,
        path,
        values: valuesOf(page, action, at),
      })),
    ]),
    ...Object.keys(actions).flatMap((action): Attempt[] => {
      const { plain = () => ({}), refers } = actionUseOf(page, action);
      if (refers === undefined) return [];
      return [{ page, action, path: pathFor(page, own), values: { ...plain(own), ...refers(at) } }];
    }),
  ]);
}

/** The paths of a page that name `at`: by project, by environment, or by both. */
function pathsAt(page: string, own: Planted, at: Planted): string[] {
  if (page.includes(':environment'))
    return [
      pathFor(page, at),
      pathFor(page, own, at.environment),
      pathFor(page, at, own.environment),
      pathFor(page, at, 'production'),
      pathFor(page, own, at.environmentId),
      pathFor(page, { ...own, id: at.environmentId }),
      // An object of the other project by its id, under the path of our project.
      ...(useOf(page).params === undefined ? [] : [pathFor(page, { ...at, ...scopeOf(own) })]),
    ];
  return page.includes(':') ? [pathFor(page, at)] : [];
}

const scopeOf = ({ id, environment }: Planted) => ({ id, environment });

function valuesOf(page: string, action: string, at: Planted): Readonly<Record<string, string>> {
  const { plain = () => ({}), refers = () => ({}) } = actionUseOf(page, action);
  return { ...plain(at), ...refers(at) };
}

// The bytes of an answer, without parts that differ in every answer (tokens, times) and without the values that the
// request sent, which a form shows again.
function toBytes({ status, text, headers }: Response, { values, path }: Attempt): string {
  // A form redirects to its page, which is the path without the query.
  const paths = [path, path.split('?')[0]!];
  const typed = [...paths, ...paths.map(encodeURIComponent), ...Object.values(values)].filter(
    (each) => each.length > 3,
  );
  const sent = [...headers].filter(([name]) => !['date', 'x-trace-id', 'traceparent'].includes(name));
  return typed
    .toSorted((a, b) => b.length - a.length)
    .reduce((bytes, each) => bytes.replaceAll(each, 'TYPED'), `${status} ${JSON.stringify(sent)}\n${text}`)
    .replace(/"content-length","\d+"/, '"content-length",""')
    .replace(/[\w-]{22}\.\d+\.[\w-]{43}/g, 'TOKEN')
    .replace(/\d{4}-\d\d-\d\d[T ][\d:.]+(Z| UTC)/g, 'TIME')
    .replace(/=[\w-]{43};/g, '=SESSION;')
    .replace(/field-([\w-]+)-\d+/g, 'field-$1')
    .replace(/[0-9a-f]{32}/g, 'TRACE');
}

/** Texts of the other project's records that occur in the answer, except those that the request sent. */
function leaksIn({ text, headers }: Response, otherTexts: readonly string[], { path, values }: Attempt): string[] {
  const typed = [path, ...Object.values(values)].join('\n');
  const shown = `${text}\n${JSON.stringify([...headers])}`;
  return otherTexts.filter((each) => shown.includes(each) && !typed.includes(each));
}

describe.each([
  ['demo', 'demo-2'],
  ['demo-2', 'demo'],
] as const)('people of %s, beside %s', (...ids) => {
  let world: World;
  let otherTexts: readonly string[];
  let otherRecords: string;
  beforeAll(async () => {
    world = await openWorld(ids);
    otherRecords = await recordsOf(world.portal, world.other);
    otherTexts = await textsOf(world.portal, world.other, world.own);
  });
  afterAll(() => world?.portal.close());

  it('members get the same bytes for objects of the other project as for objects that do not exist', async () => {
    const nowhere = plantedNowhere(NOWHERE);
    const tries = triesAt(world, world.other);
    const twins = triesAt(world, nowhere);
    expect(twins).toHaveLength(tries.length);
    for (const role of ROLES) {
      for (const [index, attempt] of tries.entries()) {
        const name = `${role} ${attempt.action ?? 'GET'} ${attempt.path} ${JSON.stringify(attempt.values)}`;
        const answer = await answerTo(await world.signIn(role), attempt);
        const twin = await answerTo(await world.signIn(role), twins[index]!);
        expect(toBytes(answer, attempt), name).toBe(toBytes(twin, twins[index]!));
        expect(leaksIn(answer, otherTexts, attempt), name).toEqual([]);
      }
    }
    expect(await recordsOf(world.portal, world.other)).toBe(otherRecords);
  });

  it('members see nothing of the other project on their own pages and in files', async () => {
    for (const role of ROLES) {
      for (const { path: page } of pagesOf(world.portal)) {
        const attempt = { page, action: null, path: pathFor(page, world.own), values: {} };
        const answer = await answerTo(await world.signIn(role), attempt);
        expect(leaksIn(answer, otherTexts, attempt), `${role} ${attempt.path}`).toEqual([]);
      }
      const person = await world.signIn(role);
      for (const pathTo of FILES) {
        const path = pathTo(world.own);
        const attempt = { page: path, action: null, path, values: {} };
        expect(leaksIn(await person.get(path), otherTexts, attempt), `${role} ${path}`).toEqual([]);
        expect([path, (await person.get(pathTo(world.other))).status]).toEqual([path, 404]);
      }
    }
  });

  it('visitors are redirected to the sign-in by every page, existing or not', async () => {
    const visitor = await personOf(world.portal, null);
    const tries = triesAt(world, world.other);
    const twins = triesAt(world, plantedNowhere(NOWHERE));
    for (const [index, attempt] of tries.entries()) {
      const answer = await answerTo(visitor, attempt);
      expect(toBytes(answer, attempt), attempt.path).toBe(
        toBytes(await answerTo(visitor, twins[index]!), twins[index]!),
      );
      expect(leaksIn(answer, otherTexts, attempt), attempt.path).toEqual([]);
    }
    expect(await recordsOf(world.portal, world.other)).toBe(otherRecords);
  });
});

it('members of one project see and change nothing of the other in any order of requests', async () => {
  const step = fc.record({ role: fc.constantFrom(...ROLES), isOwn: fc.boolean(), pick: fc.nat() });
  const property = fc.asyncProperty(
    fc.constantFrom(['demo', 'demo-2'] as const, ['demo-2', 'demo'] as const),
    fc.array(step, { minLength: 5, maxLength: 30 }),
    async (ids, steps) => {
      const world = await openWorld(ids);
      try {
        const before = await recordsOf(world.portal, world.other);
        const otherTexts = await textsOf(world.portal, world.other, world.own);
        for (const { role, isOwn, pick } of steps) {
          const tries = triesAt(world, isOwn ? world.own : world.other);
          const attempt = tries[pick % tries.length]!;
          const answer = await answerTo(await world.signIn(role), attempt);
          expect(leaksIn(answer, otherTexts, attempt), `${role} ${attempt.path}`).toEqual([]);
        }
        expect(await recordsOf(world.portal, world.other)).toBe(before);
      } finally {
        await world.portal.close();
      }
    },
  );
  await fc.assert(property, { numRuns: 25 });
});

it('the test knows every route of the portal', async () => {
  const portal = await openPlantedPortal();
  const pages = pagesOf(portal);
  const ofPages = pages.flatMap(({ path, actions }) => [
    `GET ${path}`,
    ...(actions === undefined ? [] : [`POST ${path}`]),
  ]);
  const routes = createPortalApp(portal.parts).routes.map(({ method, path }) => `${method} ${path}`);
  await portal.close();
  const unknown = routes.filter((route) => !ofPages.includes(route) && !OTHER_ROUTES.some((each) => each.test(route)));
  expect(unknown, 'routes that are not pages: add them to OTHER_ROUTES').toEqual([]);
  for (const { path, actions = {} } of pages) {
    useOf(path);
    for (const action of Object.keys(actions)) actionUseOf(path, action);
  }
});

it('every planted text is shown to members of the project', async () => {
  const portal = await openPlantedPortal();
  const fields: string[] = [];
  const textOf = (field: string) => {
    fields.push(field);
    return `${MARK} ${field}`;
  };
  const planted = await plant(portal, { id: 'demo', textOf });
  await portal.parts.accounts.changedBy({ changedBy: 'a test', requestId: 'r' }).change((all) => {
    const owner = all.find(({ id }) => id === planted.members.owner)!;
    return { ...owner, isAdministrator: true };
  });
  const owner = await personOf(portal, planted.members.owner);
  let shown = '';
  for (const { path } of pagesOf(portal)) shown += (await owner.get(pathFor(path, planted))).text;
  const people = '/projects/:project/environments/:environment/people';
  const search = { kind: 'key', id: planted.personKey };
  shown += (await owner.send(pathFor(people, planted), 'search', search)).text;
  shown += (await owner.get(storedPathFor(planted))).text;
  await portal.close();
  const unseen = fields.filter((field) => !shown.includes(`${MARK} ${field}`));
  expect([...new Set(unseen)]).toEqual([]);
});
