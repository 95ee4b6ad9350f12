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
  type Seen,
  storedPathFor,
  useOf,
} from './pages.ts';
import { type Planted, plant, plantedNowhere } from './planted.ts';
import { openPlantedPortal, type PlantedPortal } from './planted-portal.ts';
import { recordsOf, textsOf } from './records-of.ts';

const MARK = 'zq-of-the-other';
/**
 * Id of a project that does not exist. It shares the prefix `demo` with both others, so a comparison by prefix shows
 * up.
 */
const NOWHERE = 'demo-3';

/** Fields that only the person sees, in their own settings. */
const SHOWN_TO_NOBODY_ELSE = /^(no such field)/;

interface World {
  readonly portal: PlantedPortal;
  readonly ours: Planted;
  readonly theirs: Planted;
  /** Signs in again a member of our project with this role, because some forms end all of the member's sessions. */
  signIn(role: Role): Promise<Person>;
}

/** Opens a portal with two projects. The id of one is a prefix of the other's id. */
async function openWorld([ourId, theirId]: readonly [string, string]): Promise<World> {
  const portal = await openPlantedPortal();
  const theirs = await plant(portal, { id: theirId, textOf: (field) => `${MARK} ${field}`, environment: 'lab' });
  const ours = await plant(portal, { id: ourId, textOf: (field) => `ours ${field}`, environment: 'shed' });
  const signIn = async (role: Role) => {
    await portal.parts.sessions.endAll(ours.members[role]);
    return personOf(portal, ours.members[role]);
  };
  return { portal, ours, theirs, signIn };
}

/** One request to try: a page or one of its forms, with its path and its values. */
interface Try {
  readonly page: string;
  readonly deed: string | null;
  readonly path: string;
  readonly values: Readonly<Record<string, string>>;
}

type AnsweredBy = (person: Person, attempt: Try) => Promise<Seen>;
const answerTo: AnsweredBy = (person, { deed, path, values }) =>
  deed === null ? person.get(path) : person.send(path, deed, values);

/** All pages and forms, aimed at the objects of `at`: by the path, or under our own path by ids in the form. */
function triesAt({ portal, ours }: World, at: Planted): Try[] {
  return pagesOf(portal).flatMap(({ path: page, actions: deeds = {} }) => [
    ...pathsAt(page, ours, at).flatMap((path): Try[] => [
      { page, deed: null, path, values: {} },
      ...Object.keys(deeds).map((deed) => ({ page, deed, path, values: valuesOf(page, deed, at) })),
    ]),
    ...Object.keys(deeds).flatMap((deed): Try[] => {
      const { plain = () => ({}), refers } = actionUseOf(page, deed);
      if (refers === undefined) return [];
      return [{ page, deed, path: pathFor(page, ours), values: { ...plain(ours), ...refers(at) } }];
    }),
  ]);
}

/** The paths of a page that name `at`: by project, by environment, or by both. */
function pathsAt(page: string, ours: Planted, at: Planted): string[] {
  if (page.includes(':environment'))
    return [
      pathFor(page, at),
      pathFor(page, at, ours.environment),
      pathFor(page, at, 'production'),
      pathFor(page, ours, at.environment),
      pathFor(page, ours, at.environmentId),
      pathFor(page, { ...ours, id: at.environmentId }),
      // An object of the other project by its id, under the path of our project.
      ...(useOf(page).params === undefined ? [] : [pathFor(page, { ...at, ...placeOf(ours) })]),
    ];
  return page.includes(':') ? [pathFor(page, at)] : [];
}

const placeOf = ({ id, environment }: Planted) => ({ id, environment });

function valuesOf(page: string, deed: string, at: Planted): Readonly<Record<string, string>> {
  const { plain = () => ({}), refers = () => ({}) } = actionUseOf(page, deed);
  return { ...plain(at), ...refers(at) };
}

/**
 * The bytes of an answer, without parts that differ in every answer (tokens, times) and without the values that the
 * request sent, which a form shows again.
 */
function toBytes({ status, text, headers }: Seen, { values, path }: Try): string {
  // A form redirects to its page, which is the path without the query.
  const paths = [path, path.split('?')[0]!];
  const typed = [...paths, ...paths.map(encodeURIComponent), ...Object.values(values)].filter(
    (each) => each.length > 3,
  );
  const told = [...headers].filter(([name]) => !['date', 'x-trace-id', 'traceparent'].includes(name));
  return typed
    .toSorted((a, b) => b.length - a.length)
    .reduce((bytes, each) => bytes.replaceAll(each, 'TYPED'), `${status} ${JSON.stringify(told)}\n${text}`)
    .replace(/"content-length","\d+"/, '"content-length",""')
    .replace(/[\w-]{22}\.\d+\.[\w-]{43}/g, 'TOKEN')
    .replace(/\d{4}-\d\d-\d\d[T ][\d:.]+(Z| UTC)/g, 'TIME')
    .replace(/=[\w-]{43};/g, '=SESSION;')
    .replace(/field-([\w-]+)-\d+/g, 'field-$1')
    .replace(/[0-9a-f]{32}/g, 'TRACE');
}

/** Texts of the other project's records that occur in the answer, except those that the request sent. */
function leaksIn({ text, headers }: Seen, theirTexts: readonly string[], { path, values }: Try): string[] {
  const typed = [path, ...Object.values(values)].join('\n');
  const shown = `${text}\n${JSON.stringify([...headers])}`;
  return theirTexts.filter((each) => shown.includes(each) && !typed.includes(each));
}

describe.each([
  ['demo', 'demo-2'],
  ['demo-2', 'demo'],
] as const)('people of %s, beside %s', (...ids) => {
  let world: World;
  let theirTexts: readonly string[];
  let theirRecords: string;
  beforeAll(async () => {
    world = await openWorld(ids);
    theirRecords = await recordsOf(world.portal, world.theirs);
    theirTexts = await textsOf(world.portal, world.theirs, world.ours);
  });
  afterAll(() => world?.portal.close());

  it('get the same bytes for the other project’s objects as for objects that do not exist, from every page and form', async () => {
    const nowhere = plantedNowhere(NOWHERE);
    const tries = triesAt(world, world.theirs);
    const twins = triesAt(world, nowhere);
    expect(twins).toHaveLength(tries.length);
    for (const role of ROLES) {
      for (const [index, attempt] of tries.entries()) {
        const words = `${role} ${attempt.deed ?? 'GET'} ${attempt.path} ${JSON.stringify(attempt.values)}`;
        const answer = await answerTo(await world.signIn(role), attempt);
        const twin = await answerTo(await world.signIn(role), twins[index]!);
        expect(toBytes(answer, attempt), words).toBe(toBytes(twin, twins[index]!));
        expect(leaksIn(answer, theirTexts, attempt), words).toEqual([]);
      }
    }
    expect(await recordsOf(world.portal, world.theirs)).toBe(theirRecords);
    const routes = createPortalApp(world.portal.parts).routes.length;
    console.info(`separation: ${routes} routes, ${2 * ROLES.length * tries.length} tries as ${ids[0]}`);
  });

  it('see nothing of the other project on their own pages', async () => {
    for (const role of ROLES) {
      for (const { path: page } of pagesOf(world.portal)) {
        const attempt = { page, deed: null, path: pathFor(page, world.ours), values: {} };
        const answer = await answerTo(await world.signIn(role), attempt);
        expect(leaksIn(answer, theirTexts, attempt), `${role} ${attempt.path}`).toEqual([]);
      }
    }
  });

  it('can save nothing of the other project as a file, neither from their own pages nor from its pages', async () => {
    for (const role of ROLES) {
      const person = await world.signIn(role);
      for (const pathTo of FILES) {
        const [own, other] = [pathTo(world.ours), pathTo(world.theirs)];
        for (const path of [own, other]) {
          const answer = await person.get(path);
          const attempt = { page: path, deed: null, path, values: {} };
          expect(leaksIn(answer, theirTexts, attempt), `${role} ${path}`).toEqual([]);
          if (path === other) expect([path, answer.status]).toEqual([path, 404]);
        }
      }
    }
  });

  it('are redirected to the sign-in by every page, existing or not, when they have not signed in', async () => {
    const nobody = await personOf(world.portal, null);
    const tries = triesAt(world, world.theirs);
    const twins = triesAt(world, plantedNowhere(NOWHERE));
    for (const [index, attempt] of tries.entries()) {
      const answer = await answerTo(nobody, attempt);
      expect(toBytes(answer, attempt), attempt.path).toBe(
        toBytes(await answerTo(nobody, twins[index]!), twins[index]!),
      );
      expect(leaksIn(answer, theirTexts, attempt), attempt.path).toEqual([]);
    }
    expect(await recordsOf(world.portal, world.theirs)).toBe(theirRecords);
  });
});

describe('members of one project, whatever requests they send in whatever order', () => {
  it('see nothing of the other project and change nothing in it', async () => {
    const counted = { runs: 0, tries: 0 };
    const step = fc.record({
      role: fc.constantFrom(...ROLES),
      isOurs: fc.boolean(),
      pick: fc.nat(),
    });
    const property = fc.asyncProperty(
      fc.constantFrom(['demo', 'demo-2'] as const, ['demo-2', 'demo'] as const),
      fc.array(step, { minLength: 5, maxLength: 30 }),
      async (ids, steps) => {
        const world = await openWorld(ids);
        try {
          const before = await recordsOf(world.portal, world.theirs);
          const theirTexts = await textsOf(world.portal, world.theirs, world.ours);
          for (const { role, isOurs, pick } of steps) {
            const tries = triesAt(world, isOurs ? world.ours : world.theirs);
            const attempt = tries[pick % tries.length]!;
            const answer = await answerTo(await world.signIn(role), attempt);
            expect(leaksIn(answer, theirTexts, attempt), `${role} ${attempt.path}`).toEqual([]);
            counted.tries++;
          }
          expect(await recordsOf(world.portal, world.theirs)).toBe(before);
          counted.runs++;
        } finally {
          await world.portal.close();
        }
      },
    );
    await fc.assert(property, { numRuns: 25 });
    console.info(`separation: ${counted.tries} tries in ${counted.runs} orders`);
  });
});

describe('the separation test', () => {
  it('knows how to fill every route of the portal', async () => {
    const portal = await openPlantedPortal();
    const pages = pagesOf(portal);
    const ofPages = pages.flatMap(({ path, actions: deeds }) => [
      `GET ${path}`,
      ...(deeds === undefined ? [] : [`POST ${path}`]),
    ]);
    const routes = createPortalApp(portal.parts).routes.map(({ method, path }) => `${method} ${path}`);
    await portal.close();
    const unknown = routes.filter(
      (route) => !ofPages.includes(route) && !OTHER_ROUTES.some((each) => each.test(route)),
    );
    expect(unknown, 'routes that are no page: name them in OTHER_ROUTES, and say why nobody sees by them').toEqual([]);
    for (const { path, actions: deeds = {} } of pages) {
      useOf(path);
      for (const deed of Object.keys(deeds)) actionUseOf(path, deed);
    }
  });

  it('has planted only texts that members of the planted project see on some page', async () => {
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
    expect([...new Set(unseen)].filter((field) => !SHOWN_TO_NOBODY_ELSE.test(field))).toEqual([]);
  });
});
