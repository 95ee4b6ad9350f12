import { ROLES, type Role } from '@playline/access-keys';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createPortalApp } from '../../services/portal/src/app.ts';
import {
  type Client,
  EXEMPT_ROUTES,
  EXPORTS,
  getActionSpec,
  getPageSpec,
  listPages,
  openClient,
  pathFor,
  type Response,
  storedMessagesPath,
} from './pages.ts';
import { readDistinctTexts, readRecords } from './project-records.ts';
import { createMissingSeed, type Seed, seedProject } from './seed.ts';
import { openSeededPortal, type SeededPortal } from './seeded-portal.ts';

const MARKER = 'zq-other-project';
/** Id of a project that does not exist, with the same prefix as the ids of the two projects. */
const MISSING_ID = 'demo-3';

interface World {
  readonly portal: SeededPortal;
  readonly project: Seed;
  readonly otherProject: Seed;
  /** Signs in as a member of `project`. Called before each request, because some forms end all sessions. */
  signIn(role: Role): Promise<Client>;
}

/** Opens a portal with two projects. One project id is a prefix of the other. */
async function openWorld([projectId, otherId]: readonly [string, string]): Promise<World> {
  const portal = await openSeededPortal();
  const seed = (id: string, prefix: string, environment: string) =>
    seedProject(portal, { id, toText: (field) => `${prefix} ${field}`, environment });
  const otherProject = await seed(otherId, MARKER, 'lab');
  const project = await seed(projectId, 'own', 'shed');
  const signIn = async (role: Role) => {
    await portal.parts.sessions.endAll(project.members[role]);
    return openClient(portal, project.members[role]);
  };
  return { portal, project, otherProject, signIn };
}

interface Attempt {
  readonly page: string;
  readonly action: string | null;
  readonly path: string;
  readonly values: Readonly<Record<string, string>>;
}

const sendAttempt = (client: Client, { action, path, values }: Attempt): Promise<Response> =>
  action === null ? client.get(path) : client.send(path, action, values);

// Requests every page and form with references to `target`, either in the path or in the form fields. Forms are sent to
// only two of the paths, because the portal resolves the paths of pages and forms in the same way.
function createAttempts({ portal, project }: World, target: Seed): Attempt[] {
  return listPages(portal).flatMap(({ path: page, actions = {} }) => [
    ...listPaths(page, project, target).flatMap((path, index): Attempt[] => [
      { page, action: null, path, values: {} },
      ...(index < 2 ? Object.keys(actions) : []).map((action) => ({
        page,
        action,
        path,
        values: toValues(page, action, target),
      })),
    ]),
    ...Object.keys(actions).flatMap((action): Attempt[] => {
      const { fields = () => ({}), references } = getActionSpec(page, action);
      if (references === undefined) return [];
      return [{ page, action, path: pathFor(page, project), values: { ...fields(project), ...references(target) } }];
    }),
  ]);
}

/** Returns paths of a page that refer to the project of `target`, to its environment, or to both. */
function listPaths(page: string, project: Seed, target: Seed): string[] {
  if (page.includes(':environment')) {
    // Ids of objects in the target project, below the path of `project`.
    const mixed = { ...target, id: project.id, environment: project.environment };
    return [
      pathFor(page, target),
      pathFor(page, project, target.environment),
      pathFor(page, target, project.environment),
      pathFor(page, target, 'production'),
      pathFor(page, project, target.environmentId),
      pathFor(page, { ...project, id: target.environmentId }),
      ...(getPageSpec(page).params === undefined ? [] : [pathFor(page, mixed)]),
    ];
  }
  return page.includes(':') ? [pathFor(page, target)] : [];
}

function toValues(page: string, action: string, target: Seed): Readonly<Record<string, string>> {
  const { fields = () => ({}), references = () => ({}) } = getActionSpec(page, action);
  return { ...fields(target), ...references(target) };
}

// Serialises a response without tokens and times, which differ in every response, and without the values in the
// request, which a form shows again.
function toComparable({ status, text, headers }: Response, { values, path }: Attempt): string {
  // A form redirects to the path of its page, without the query.
  const paths = [path, path.split('?')[0]!];
  const sentValues = [...paths, ...paths.map(encodeURIComponent), ...Object.values(values)].filter(
    (each) => each.length > 3,
  );
  const comparedHeaders = [...headers].filter(([name]) => !['date', 'x-trace-id', 'traceparent'].includes(name));
  return sentValues
    .toSorted((a, b) => b.length - a.length)
    .reduce((text, each) => text.replaceAll(each, 'SENT'), `${status} ${JSON.stringify(comparedHeaders)}\n${text}`)
    .replace(/"content-length","\d+"/, '"content-length",""')
    .replace(/[\w-]{22}\.\d+\.[\w-]{43}/g, 'TOKEN')
    .replace(/\d{4}-\d\d-\d\d[T ][\d:.]+(Z| UTC)|\b[A-Z][a-z]{2} \d{1,2}(?: \d{4})?, \d\d:\d\d:\d\d/g, 'TIME')
    .replace(/=[\w-]{43};/g, '=SESSION;')
    .replace(/field-([\w-]+)-\d+/g, 'field-$1')
    .replace(/[0-9a-f]{32}/g, 'TRACE');
}

/** Finds strings of the other project that occur in the response but not in the request. */
function findLeaks({ text, headers }: Response, otherTexts: readonly string[], { path, values }: Attempt): string[] {
  const sent = [path, ...Object.values(values)].join('\n');
  const shown = `${text}\n${JSON.stringify([...headers])}`;
  return otherTexts.filter((each) => shown.includes(each) && !sent.includes(each));
}

describe.each([
  ['demo', 'demo-2'],
  ['demo-2', 'demo'],
] as const)('members of project %s in a portal that also has project %s', (...ids) => {
  let world: World;
  let otherTexts: readonly string[];
  let otherRecords: string;
  beforeAll(async () => {
    world = await openWorld(ids);
    otherRecords = await readRecords(world.portal, world.otherProject);
    otherTexts = await readDistinctTexts(world.portal, world.otherProject, world.project);
  });
  afterAll(() => world?.portal.close());

  it('members get the same response for objects of the other project as for objects that do not exist', async () => {
    const attempts = createAttempts(world, world.otherProject);
    const missingAttempts = createAttempts(world, createMissingSeed(MISSING_ID));
    expect(missingAttempts).toHaveLength(attempts.length);
    for (const role of ROLES) {
      for (const [index, attempt] of attempts.entries()) {
        const name = `${role} ${attempt.action ?? 'GET'} ${attempt.path} ${JSON.stringify(attempt.values)}`;
        const response = await sendAttempt(await world.signIn(role), attempt);
        const missing = missingAttempts[index]!;
        const expected = await sendAttempt(await world.signIn(role), missing);
        expect(toComparable(response, attempt), name).toBe(toComparable(expected, missing));
        expect(findLeaks(response, otherTexts, attempt), name).toEqual([]);
      }
    }
    expect(await readRecords(world.portal, world.otherProject)).toBe(otherRecords);
  });

  it('members see no data from the other project on the pages and in the exports of their project', async () => {
    for (const role of ROLES) {
      for (const { path: page } of listPages(world.portal)) {
        const attempt = { page, action: null, path: pathFor(page, world.project), values: {} };
        const response = await sendAttempt(await world.signIn(role), attempt);
        expect(findLeaks(response, otherTexts, attempt), `${role} ${attempt.path}`).toEqual([]);
      }
      const client = await world.signIn(role);
      for (const pathTo of EXPORTS) {
        const path = pathTo(world.project);
        const attempt = { page: path, action: null, path, values: {} };
        expect(findLeaks(await client.get(path), otherTexts, attempt), `${role} ${path}`).toEqual([]);
        expect([path, (await client.get(pathTo(world.otherProject))).status]).toEqual([path, 404]);
      }
    }
  });

  it('every page redirects visitors to the sign-in page, even if the object does not exist', async () => {
    const visitor = await openClient(world.portal, null);
    const attempts = createAttempts(world, world.otherProject);
    const missingAttempts = createAttempts(world, createMissingSeed(MISSING_ID));
    for (const [index, attempt] of attempts.entries()) {
      const response = await sendAttempt(visitor, attempt);
      const missing = missingAttempts[index]!;
      const expected = toComparable(await sendAttempt(visitor, missing), missing);
      expect(toComparable(response, attempt), attempt.path).toBe(expected);
      expect(findLeaks(response, otherTexts, attempt), attempt.path).toEqual([]);
    }
    expect(await readRecords(world.portal, world.otherProject)).toBe(otherRecords);
  });
});

it('members of one project cannot read or change another project with any sequence of requests', async () => {
  const step = fc.record({ role: fc.constantFrom(...ROLES), isOwn: fc.boolean(), pick: fc.nat() });
  const property = fc.asyncProperty(
    fc.constantFrom(['demo', 'demo-2'] as const, ['demo-2', 'demo'] as const),
    fc.array(step, { minLength: 5, maxLength: 30 }),
    async (ids, steps) => {
      const world = await openWorld(ids);
      try {
        const before = await readRecords(world.portal, world.otherProject);
        const otherTexts = await readDistinctTexts(world.portal, world.otherProject, world.project);
        for (const { role, isOwn, pick } of steps) {
          const attempts = createAttempts(world, isOwn ? world.project : world.otherProject);
          const attempt = attempts[pick % attempts.length]!;
          const response = await sendAttempt(await world.signIn(role), attempt);
          expect(findLeaks(response, otherTexts, attempt), `${role} ${attempt.path}`).toEqual([]);
        }
        expect(await readRecords(world.portal, world.otherProject)).toBe(before);
      } finally {
        await world.portal.close();
      }
    },
  );
  await fc.assert(property, { numRuns: 25 });
});

it('the page table covers every route of the portal', async () => {
  const portal = await openSeededPortal();
  const pages = listPages(portal);
  const pageRoutes = pages.flatMap(({ path, actions }) => [
    `GET ${path}`,
    ...(actions === undefined ? [] : [`POST ${path}`]),
  ]);
  const routes = createPortalApp(portal.parts).routes.map(({ method, path }) => `${method} ${path}`);
  await portal.close();
  const unknown = routes.filter((name) => !pageRoutes.includes(name) && !EXEMPT_ROUTES.some((each) => each.test(name)));
  expect(unknown, 'unknown routes: add them to PAGE_SPECS or EXEMPT_ROUTES').toEqual([]);
  for (const { path, actions = {} } of pages) {
    getPageSpec(path);
    for (const action of Object.keys(actions)) getActionSpec(path, action);
  }
});

it('the pages show every seeded string to an owner who is also an administrator', async () => {
  const portal = await openSeededPortal();
  const fields: string[] = [];
  const toText = (field: string) => {
    fields.push(field);
    return `${MARKER} ${field}`;
  };
  const seed = await seedProject(portal, { id: 'demo', toText });
  await portal.parts.accounts.storeFor({ changedBy: 'a test', requestId: 'r' }).change((all) => {
    const owner = all.find(({ id }) => id === seed.members.owner)!;
    return { ...owner, isAdministrator: true };
  });
  const owner = await openClient(portal, seed.members.owner);
  let shown = '';
  for (const { path } of listPages(portal)) shown += (await owner.get(pathFor(path, seed))).text;
  const peoplePage = '/projects/:project/environments/:environment/people';
  const search = { kind: 'key', id: seed.personKey };
  shown += (await owner.send(pathFor(peoplePage, seed), 'search', search)).text;
  shown += (await owner.get(storedMessagesPath(seed))).text;
  await portal.close();
  const missing = fields.filter((field) => !shown.includes(`${MARKER} ${field}`));
  expect([...new Set(missing)]).toEqual([]);
});
