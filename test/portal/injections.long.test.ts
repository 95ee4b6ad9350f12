import { afterEach, describe, expect, it } from 'vitest';
import { HOSTILE } from './hostile-texts.ts';
import { asRead, type Shape, shapeOf } from './page-shape.ts';
import { actionUseOf, FILES, pagesOf, pathFor, personOf, type Response, storedPathFor } from './pages.ts';
import { AUTHOR, plant, plantAccount, type TextOf } from './planted.ts';
import { NEAR_PROVIDER, openPlantedPortal, type PlantedPortal } from './planted-portal.ts';

let portals: PlantedPortal[] = [];
afterEach(async () => {
  for (const portal of portals) await portal.close();
  portals = [];
});

interface Answer extends Response {
  readonly page: string;
  readonly shape: Shape;
}

type World = Awaited<ReturnType<typeof openWith>>;

/** A portal with the text in every field of a project, and the owner of the project as an administrator. */
async function openWith(textOf: TextOf) {
  const portal = await openPlantedPortal();
  portals.push(portal);
  const planted = await plant(portal, { id: 'demo', textOf });
  await portal.parts.accounts.changedBy(AUTHOR).change((accounts) => {
    const owner = accounts.find(({ id }) => id === planted.members.owner);
    return owner === undefined ? null : { ...owner, isAdministrator: true };
  });
  return { portal, planted, person: await personOf(portal, planted.members.owner) };
}

async function visitAll({ portal, planted, person }: World): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (const { path } of pagesOf(portal)) {
    const seen = await person.get(pathFor(path, planted));
    answers.push({ page: path, ...seen, shape: shapeOf(seen.text) });
  }
  const found = await person.send(pathFor(PEOPLE, planted), 'search', { kind: 'key', id: planted.personKey });
  const listed = await person.get(storedPathFor(planted));
  return [
    ...answers,
    { page: 'a person who was found', ...found, shape: shapeOf(found.text) },
    { page: 'stored messages of a span', ...listed, shape: shapeOf(listed.text) },
  ];
}

const PEOPLE = '/projects/:project/environments/:environment/people';

interface FormAnswer extends Answer {
  readonly label: string;
}

/** Answers of every form of every page. Every field contains the text, except fields that choose a value. */
async function formsWith(text: string): Promise<{ answers: FormAnswer[]; elements: string[] }> {
  const portal = await openPlantedPortal();
  portals.push(portal);
  const planted = await plant(portal, { id: 'demo', textOf: (field) => field });
  const administrator = await plantAccount(portal, { isAdministrator: true });
  const answers: FormAnswer[] = [];
  for (const { path: page, actions = {} } of pagesOf(portal)) {
    for (const action of Object.keys(actions)) {
      const { plain = () => ({}), refers = () => ({}) } = actionUseOf(page, action);
      // A short password is refused, and the form shows the other fields again.
      const values = Object.entries({ ...plain(planted), ...refers(planted) }).map(([name, value]) =>
        CHOOSING.has(name) ? [name, value] : [name, name === 'password' ? 'short' : text],
      );
      const person = await personOf(portal, administrator);
      const seen = await person.send(pathFor(page, planted), action, Object.fromEntries(values));
      answers.push({ page, ...seen, shape: shapeOf(seen.text), label: `${page} ${action}: ${seen.status}` });
    }
  }
  return { answers, elements: answers.flatMap(({ shape }) => shape.elements) };
}

/** Fields that choose an object or one of a few values. A form with another text in them is refused. */
const CHOOSING = new Set(['kind', 'role', 'code']);

const USUAL = 'a usual text';
const fields: string[] = [];
const textOfField: TextOf = (field) => {
  fields.push(field);
  return USUAL;
};
const usual = await visitAll(await openWith(textOfField));
/** The part of a text that is always visible: forms trim some texts, and the name of a browser is cut off. */
const shownOf = (text: string) => asRead(text).trim().slice(0, 100);
const typedInForms = await formsWith(USUAL);
/** The audit shows details as JSON, so the text may also be visible in its JSON form. */
const timesSeen = (shown: string, text: string) => {
  const escaped = JSON.stringify(text).slice(1, -1);
  return (
    timesShown(shown, shownOf(text)) + (escaped.startsWith(shownOf(text)) ? 0 : timesShown(shown, shownOf(escaped)))
  );
};
const timesShown = (text: string, part: string) => (part === '' ? text.length : text.split(part).length - 1);

describe(`${Object.keys(HOSTILE).length} hostile texts in ${new Set(fields).size} fields of ${usual.length} pages`, () => {
  it('the fields are shown on the pages', () => {
    const showing = usual.filter(({ shape }) => shape.text.includes(USUAL)).map(({ page }) => page);
    expect(showing).toEqual(expect.arrayContaining(['/', '/projects/:project', '/instance/rate-limit-keys']));
  });

  it.each(Object.entries(HOSTILE))('%s is text on every page, and one cell of every file', async (_, text) => {
    const world = await openWith(() => text);
    await expectCells(world);
    for (const [index, answer] of (await visitAll(world)).entries()) {
      const plain = usual[index]!;
      const { page, shape, status, headers } = answer;
      expect(status, page).toBe(plain.status);
      expect([...headers.keys()].toSorted(), page).toEqual([...plain.headers.keys()].toSorted());
      expect(
        [...headers].filter(([, value]) => value.includes('taken')),
        page,
      ).toEqual([]);
      if (isData(answer)) {
        expect(jsonOf(answer), page).toHaveLength(jsonOf(plain).length);
        continue;
      }
      expect(shape.elements, page).toEqual(plain.shape.elements);
      const times = timesShown(plain.shape.text, USUAL);
      expect(timesSeen(shape.text, text), `${page} shows it`).toBeGreaterThanOrEqual(times);
      expect(shape.addresses.map(toKind), page).toEqual(plain.shape.addresses.map(toKind));
    }
  });
});

const isData = ({ headers }: Response) =>
  /^(application\/json|text\/event-stream)/.test(headers.get('content-type') ?? '') &&
  headers.get('x-content-type-options') === 'nosniff';

/** The JSON values of a body. An event stream has one per event. @throws Error when a value is not JSON */
function jsonOf({ headers, text }: Response): unknown[] {
  if (headers.get('content-type')?.startsWith('application/json') === true) return [JSON.parse(text)];
  const fields = text.split(/\r\n|\r|\n/).filter((line) => line !== '');
  for (const field of fields) expect(field).toMatch(/^data: \{/);
  return fields.map((field) => JSON.parse(field.slice('data: '.length)));
}

it.each(Object.entries(HOSTILE))(
  '%s is shown as text in the answer of every form, which leads to no other address',
  async (_, text) => {
    const known = new Set([...usual.flatMap(({ shape }) => shape.elements), ...typedInForms.elements]);
    for (const { shape, headers, label } of (await formsWith(text)).answers) {
      expect(
        shape.elements.filter((each) => !known.has(each)),
        label,
      ).toEqual([]);
      expect(
        shape.addresses.map(toKind).filter((kind) => kind.startsWith('another')),
        label,
      ).toEqual([]);
      const location = headers.get('location') ?? '/';
      expect(location === NEAR_PROVIDER ? '/' : location, label).toMatch(/^\/(?![/\\])/);
      expect(headers.get('set-cookie') ?? '', label).not.toContain('taken');
    }
  },
);

/** Expects the same number of cells in each line of every file, and no formula. */
async function expectCells({ planted, person }: World): Promise<void> {
  for (const pathTo of FILES) {
    const { status, text: file, headers } = await person.get(pathTo(planted));
    expect([status, headers.get('content-type'), headers.get('cache-control')]).toEqual([
      ...[200, 'text/csv; charset=utf-8', 'no-store'],
    ]);
    expect([headers.get('x-content-type-options'), headers.get('content-disposition')]).toEqual([
      ...['nosniff', expect.stringMatching(/^attachment; filename="[\w.-]+"$/)],
    ]);
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

/** Whether an address leads to a page of the portal, by path, or to another site. */
function toKind(address: string): string {
  if (address.startsWith('#')) return 'this page';
  return /^\/(?![/\\])/.test(address) ? 'the portal' : `another: ${address}`;
}
