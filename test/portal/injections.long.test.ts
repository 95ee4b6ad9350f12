import { afterEach, describe, expect, it } from 'vitest';
import { HOSTILE } from './hostile-texts.ts';
import { normalize, readShape, type Shape } from './page-shape.ts';
import { EXPORTS, getActionSpec, listPages, openClient, pathFor, type Response, storedMessagesPath } from './pages.ts';
import { AUTHOR, seedAccount, seedProject, type ToText } from './seed.ts';
import { openSeededPortal, PROVIDER_URL, type SeededPortal } from './seeded-portal.ts';

let portals: SeededPortal[] = [];
afterEach(async () => {
  for (const portal of portals) await portal.close();
  portals = [];
});

interface PageResponse extends Response {
  readonly page: string;
  readonly shape: Shape;
}

type World = Awaited<ReturnType<typeof openSeededWorld>>;

/** Opens a portal in which every field of a project contains the string. The client is owner and administrator. */
async function openSeededWorld(toText: ToText) {
  const portal = await openSeededPortal();
  portals.push(portal);
  const seed = await seedProject(portal, { id: 'demo', toText });
  await portal.parts.accounts.storeFor(AUTHOR).change((accounts) => {
    const owner = accounts.find(({ id }) => id === seed.members.owner);
    return owner === undefined ? null : { ...owner, isAdministrator: true };
  });
  return { portal, seed, client: await openClient(portal, seed.members.owner) };
}

async function visitAll({ portal, seed, client }: World): Promise<PageResponse[]> {
  const responses: PageResponse[] = [];
  for (const { path } of listPages(portal)) {
    const response = await client.get(pathFor(path, seed));
    responses.push({ page: path, ...response, shape: readShape(response.text) });
  }
  const found = await client.send(pathFor(PEOPLE, seed), 'search', { kind: 'key', id: seed.personKey });
  const listed = await client.get(storedMessagesPath(seed));
  return [
    ...responses,
    { page: 'person search results', ...found, shape: readShape(found.text) },
    { page: 'stored messages', ...listed, shape: readShape(listed.text) },
  ];
}

const PEOPLE = '/projects/:project/environments/:environment/people';

interface FormResponse extends PageResponse {
  readonly label: string;
}

/** Submits every form on every page. Every field contains the string, except fields that select a value. */
async function submitForms(text: string): Promise<{ responses: FormResponse[]; elements: string[] }> {
  const portal = await openSeededPortal();
  portals.push(portal);
  const seed = await seedProject(portal, { id: 'demo', toText: (field) => field });
  const administrator = await seedAccount(portal, { isAdministrator: true });
  const responses: FormResponse[] = [];
  for (const { path: page, actions = {} } of listPages(portal)) {
    for (const action of Object.keys(actions)) {
      const { fields = () => ({}), references = () => ({}) } = getActionSpec(page, action);
      // The short password is rejected, so that the form shows all other fields again.
      const values = Object.entries({ ...fields(seed), ...references(seed) }).map(([name, value]) =>
        SELECTING_FIELDS.has(name) ? [name, value] : [name, name === 'password' ? 'short' : text],
      );
      const client = await openClient(portal, administrator);
      const response = await client.send(pathFor(page, seed), action, Object.fromEntries(values));
      const label = `${page} ${action}: ${response.status}`;
      responses.push({ page, ...response, shape: readShape(response.text), label });
    }
  }
  return { responses, elements: responses.flatMap(({ shape }) => shape.elements) };
}

/** Fields that select an object or one of a few values. Forms reject unknown values. */
const SELECTING_FIELDS = new Set(['kind', 'role', 'code']);

const HARMLESS = 'a harmless string';
const fields: string[] = [];
const recordField: ToText = (field) => {
  fields.push(field);
  return HARMLESS;
};
const baselines = await visitAll(await openSeededWorld(recordField));
/** Returns the part of a string that is always visible. Forms trim some strings, and pages truncate browser names. */
const toVisiblePart = (text: string) => normalize(text).trim().slice(0, 100);
const baselineForms = await submitForms(HARMLESS);
const count = (text: string, part: string) => (part === '' ? text.length : text.split(part).length - 1);
/** Also counts the JSON representation of the string, because the audit page shows details as JSON. */
const countVisible = (page: string, text: string) => {
  const [plain, json] = [text, JSON.stringify(text).slice(1, -1)].map(toVisiblePart) as [string, string];
  return count(page, plain) + (json.startsWith(plain) ? 0 : count(page, json));
};

describe(`${Object.keys(HOSTILE).length} hostile strings in ${new Set(fields).size} fields on ${baselines.length} pages`, () => {
  it('the pages show the seeded fields', () => {
    const pages = baselines.filter(({ shape }) => shape.text.includes(HARMLESS)).map(({ page }) => page);
    expect(pages).toEqual(expect.arrayContaining(['/', '/projects/:project', '/instance/rate-limit-keys']));
  });

  it.each(Object.entries(HOSTILE))('%s appears as text on every page and in one cell per export', async (_, text) => {
    const world = await openSeededWorld(() => text);
    await expectCells(world);
    for (const [index, response] of (await visitAll(world)).entries()) {
      const baseline = baselines[index]!;
      const { page, shape, status, headers } = response;
      expect(status, page).toBe(baseline.status);
      expect([...headers.keys()].toSorted(), page).toEqual([...baseline.headers.keys()].toSorted());
      expect([...headers.values()].join('\n'), page).not.toContain('pwned');
      if (isData(response)) {
        expect(parseBody(response), page).toHaveLength(parseBody(baseline).length);
        continue;
      }
      expect(shape.elements, page).toEqual(baseline.shape.elements);
      const expectedCount = count(baseline.shape.text, HARMLESS);
      expect(countVisible(shape.text, text), `${page} shows the string`).toBeGreaterThanOrEqual(expectedCount);
      expect(shape.addresses.map(toTarget), page).toEqual(baseline.shape.addresses.map(toTarget));
    }
  });
});

const isData = ({ headers }: Response) =>
  /^(application\/json|text\/event-stream)/.test(headers.get('content-type') ?? '') &&
  headers.get('x-content-type-options') === 'nosniff';

/** Parses a JSON body, or the JSON value of each event in a stream. @throws Error if a value is not JSON */
function parseBody({ headers, text }: Response): unknown[] {
  if (headers.get('content-type')?.startsWith('application/json') === true) return [JSON.parse(text)];
  const fields = text.split(/\r\n|\r|\n/).filter((line) => line !== '');
  for (const field of fields) expect(field).toMatch(/^data: \{/);
  return fields.map((field) => JSON.parse(field.slice('data: '.length)));
}

it.each(Object.entries(HOSTILE))(
  '%s appears as text in the response to every form and never causes a redirect to another site',
  async (_, text) => {
    const allowed = new Set([...baselines.flatMap(({ shape }) => shape.elements), ...baselineForms.elements]);
    for (const { shape, headers, label } of (await submitForms(text)).responses) {
      const injected = shape.elements.filter((element) => !allowed.has(element));
      expect(injected, label).toEqual([]);
      const external = shape.addresses.map(toTarget).filter((target) => target.startsWith('external'));
      expect(external, label).toEqual([]);
      const location = headers.get('location') ?? '/';
      expect(location === PROVIDER_URL ? '/' : location, label).toMatch(/^\/(?![/\\])/);
      expect(headers.get('set-cookie') ?? '', label).not.toContain('pwned');
    }
  },
);

/** Checks that every row of every export has the same number of cells, and that no cell is a formula. */
async function expectCells({ seed, client }: World): Promise<void> {
  for (const pathTo of EXPORTS) {
    const { status, text: file, headers } = await client.get(pathTo(seed));
    expect([status, headers.get('content-type')]).toEqual([200, 'text/csv; charset=utf-8']);
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('content-disposition')).toMatch(/^attachment; filename="[\w.-]+"$/);
    const cells = file.match(/"(?:[^"]|"")*"/g) ?? [];
    expect(cells.filter((cell) => /^"\s*[=+\-@\t\r]/.test(cell))).toEqual([]);
    const rows = file
      .replaceAll(/"(?:[^"]|"")*"/g, 'c')
      .trimEnd()
      .split('\r\n');
    expect(rows.length).toBeGreaterThan(1);
    expect(new Set(rows.map((row) => row.split(',').length)).size).toBe(1);
    for (const row of rows) expect(row).toMatch(/^(c|\d+)(,(c|\d+))*$/);
  }
}

/** Classifies the target of a link: this page, the portal or an external site. */
function toTarget(address: string): string {
  if (address.startsWith('#')) return 'this page';
  return /^\/(?![/\\])/.test(address) ? 'the portal' : `external: ${address}`;
}
