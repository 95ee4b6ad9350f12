/** Finds a person by id, shows the person, and requests erasures and splits. */
import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import type { IdentityKind } from '@playline/contracts';
import { invalidField } from '@playline/errors';
import { keysOf, SPLIT_BLOCKERS, SUSPECT_LIMIT, type Suspect, splitPerson } from '@playline/people';
import {
  choice,
  disclosure,
  docsLink,
  field,
  hidden,
  number,
  panel,
  shortened,
  table,
  tag,
  time,
} from '../../frame/components.ts';
import { pathInEnvironment } from '../../frame/layout.ts';
import type { FormAction, FormValues, PageResponse, PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import type { PageParts } from '../index.ts';
import { toPersonFile } from './export-person.ts';
import { type FoundPerson, findPerson } from './find-person.ts';
import { countText, PARTS, toName, toPersonPage, toPersonPath } from './person.ts';
import {
  findKind,
  listNearSubjects,
  parseKey,
  readSubjects,
  SUBJECT_CHOICES,
  type Subject,
  toErasureKeys,
} from './subject.ts';

type Parts = Pick<PageParts, 'people' | 'reads' | 'writeAudit' | 'frame' | 'settings'>;

export function createPeoplePage(parts: Parts): PortalPage {
  return {
    path: '/projects/:project/environments/:environment/people',
    access: 'people.raw-ids',
    show: async (visit, failure) => {
      const key = parseKey(visit.query.get('person') ?? failure?.values.text('person') ?? '');
      if (key !== null) return showPerson(parts, visit, key, failure?.values);
      if (failure?.values.text('form') === 'erase') return toUnknownPage(parts, visit, failure.values);
      const content = html`${toSearch(visit, failure?.values)}${await readHeldIds(parts, scopeOf(visit).environment.id)}`;
      return { kind: 'page', title: 'Find a person', content };
    },
    actions: {
      search: { access: 'people.raw-ids', run: (visit, values) => search(parts, visit, values) },
      erase: eraseAction(parts),
      unlink: unlinkAction(parts),
    },
    notices: {
      split: 'The identities now belong to two persons.',
      'split-requested':
        'Split requested. It may wait for the linker or for an erasure of this person, or it may be refused. The decision appears in the timeline.',
    },
  };
}

const keyOfIn =
  ({ people }: Pick<Parts, 'people'>, visit: Visit) =>
  (kind: IdentityKind, id: string) =>
    people.keyOf(scopeOf(visit).environment.id, kind, id);

/** Uses POST, so that ids never appear in a URL, a log or the browser history. */
async function search(parts: Parts, visit: Visit, values: FormValues): Promise<PageResponse> {
  const subjects = readSubjects(values, keyOfIn(parts, visit));
  await parts.writeAudit(visit, { action: 'person.find', detail: { page: 'people', by: values.text('kind') } });
  const found = await findKnown(parts, visit, subjects);
  if (found.length === 0) return toUnknownPage(parts, visit, values);
  if (found.length === 1) return { kind: 'redirect', to: toSubjectPath(visit, found[0]!) };
  const content = html`<p>Different people use this id under different types. Choose one of them.</p>${toSubjectTable(visit, found)}`;
  return { kind: 'page', title: `${number(found.length)} people have this id`, content };
}

const toSubjectPath = (visit: Visit, { key, kind }: Subject) =>
  toPersonPath(visit, key.toString('hex'), { kind: kind ?? '' });

const toSubjectTable = (visit: Visit, subjects: readonly Subject[]): Markup =>
  table(
    'People',
    ['Type', 'Id', 'Person'],
    subjects.map((each) => [
      tag(each.kind ?? 'identity key'),
      html`<bdi class="exact">${each.id ?? each.key.toString('hex')}</bdi>`,
      html`<a href="${toSubjectPath(visit, each)}">Open</a>`,
    ]),
  );

/** Returns one subject per person. The graph knows links that ClickHouse does not contain yet. */
async function findKnown({ people, reads }: Parts, visit: Visit, subjects: readonly Subject[]): Promise<Subject[]> {
  const environmentId = scopeOf(visit).environment.id;
  const identityIds = subjects.map(({ key }) => key.toString('hex'));
  const [known, persons] = await Promise.all([
    reads.knownIdentities({ environmentId, identityIds }, { signal: visit.signal }),
    Promise.all(subjects.map(({ key }) => people.members({ environmentId, key }))),
  ]);
  const byPerson = new Map<string, Subject>();
  for (const [index, subject] of subjects.entries()) {
    const { isLinked, personKey } = persons[index]!;
    const name = personKey.toString('hex');
    if ((isLinked || known.has(identityIds[index]!)) && !byPerson.has(name)) byPerson.set(name, subject);
  }
  return [...byPerson.values()];
}

const POSITION = /^(\d{1,14})\.([0-9a-f]{32})$/;

async function showPerson(parts: Parts, visit: Visit, key: Buffer, values?: FormValues): Promise<PageResponse> {
  const environmentId = scopeOf(visit).environment.id;
  const [nowMs, signal] = [parts.frame.wallClockMs(), visit.signal];
  const object = key.toString('hex');
  if (visit.query.get('as') === 'json') {
    await parts.writeAudit(visit, { action: 'person.save', object });
    const person = await parts.people.members({ environmentId, key });
    return toPersonFile(parts, { environmentId, person, nowMs, signal });
  }
  const [, ms, id = ''] = POSITION.exec(visit.query.get('after') ?? '') ?? [];
  const after = ms === undefined ? null : { happenedMs: Number(ms), id };
  const show = PARTS.find((part) => part.show === visit.query.get('show'))?.show ?? '';
  const subject = { key, kind: findKind(visit.query.get('kind') ?? '') };
  const [found] = await Promise.all([
    findPerson(parts, { environmentId, subject, show, after, nowMs, signal }),
    parts.writeAudit(visit, { action: 'person.view', object }),
  ]);
  if (!found.isKnown)
    return { kind: 'page', title: NO_PERSON, content: html`${toUnknownNote(parts)}${toSearch(visit)}` };
  const isErasure = visit.query.get('confirm') === 'erase' || values?.text('form') === 'erase';
  if (isErasure && visit.can('erasure.request')) return toErasePage(visit, found);
  return toPersonPage(visit, found, { show, isFirst: after === null, nowMs });
}

function toErasePage(visit: Visit, found: FoundPerson): PageResponse {
  const { keyHex, members, profile } = found;
  const events = profile?.counts ? ` and ${countText(profile.counts.events, 'event', 'events')}` : '';
  const form = visit.form(
    'erase',
    html`<p>This permanently erases all data about <b><bdi>${toName(found)}</bdi></b>: ${countText(members.length, 'identity', 'identities')}${events}, consents and links. A user id is erased under every type and without a type. The erasure cannot be undone.</p>
${hidden('person', keyHex)}
${field({ name: 'confirm', label: 'Type one of the person’s ids', isRequired: true, hint: 'As shown on the page of the person.' })}
<p><button class="danger">Erase person</button> <a class="btn" href="${toPersonPath(visit, keyHex)}">Cancel</a></p>`,
  );
  return { kind: 'page', title: 'Erase this person?', content: form };
}

const eraseAction = ({ people, writeAudit }: Parts): FormAction => ({
  access: 'erasure.request',
  needsFreshSignIn: true,
  run: async (visit, values) => {
    const environmentId = scopeOf(visit).environment.id;
    const key = parseKey(values.text('person'));
    const subjectKeys =
      key === null
        ? readUnknown({ people }, visit, values)
        : await readConfirmed({ people }, visit, values, keysOf(await people.members({ environmentId, key })));
    const { traceId, traceparent } = visit.exchange;
    const erasureId = await people.requestErasure({ environmentId, subjectKeys, traceId, traceparent });
    await writeAudit(visit, { action: 'erasure.request', object: erasureId });
    return { kind: 'redirect', to: pathInEnvironment(visit, `erasures/${erasureId}`) };
  },
});

/** The confirmation is one of the person's ids, so that the keys to erase follow from it. */
async function readConfirmed(
  parts: Pick<Parts, 'people'>,
  visit: Visit,
  values: FormValues,
  keys: readonly Buffer[],
): Promise<Buffer[]> {
  const keyOf = keyOfIn(parts, visit);
  // An id may begin or end with spaces, which other fields ignore.
  const typed = [...values.all('confirm'), values.text('confirm')].flatMap((id) => (id === '' ? [] : listSameIds(id)));
  const match = typed.find(({ kind, id }) => keys.some((key) => key.equals(keyOf(kind, id))));
  if (match === undefined)
    throw invalidField('confirm', 'Nothing was erased. Type one of the ids of this person exactly as shown.');
  return toErasureKeys(match.kind, match.id, keyOf);
}

const KINDS = SUBJECT_CHOICES.flatMap(({ value }) => findKind(value) ?? []);
const listSameIds = (id: string) => KINDS.map((kind) => ({ kind, id }));

/** An id that no message contains can be erased, because messages with the id may still be on their way. */
function readUnknown(parts: Pick<Parts, 'people'>, visit: Visit, values: FormValues): Buffer[] {
  const kind = findKind(values.text('kind'));
  if (kind === null) throw invalidField('kind', 'Choose an id type.');
  if (values.text('confirm') !== values.text('id'))
    throw invalidField('confirm', 'Nothing was erased. Type the same id again to erase it.');
  return toErasureKeys(kind, values.text('id'), keyOfIn(parts, visit));
}

const unlinkAction = ({ people, writeAudit }: Parts): FormAction => ({
  access: 'people.unlink',
  needsFreshSignIn: true,
  run: async (visit, values) => {
    const environmentId = scopeOf(visit).environment.id;
    const key = parseKey(values.text('person'));
    if (key === null) throw invalidField('person', 'Find the person again.');
    const person = await people.members({ environmentId, key });
    const chosen = new Set(values.all('member'));
    const keys = person.members.map((each) => each.key).filter((each) => chosen.has(each.toString('hex')));
    if (keys.length === 0 || keys.length !== chosen.size)
      throw invalidField(
        'member',
        'Select at least one identity of this person. If the identities have changed, check them and try again.',
      );
    const split = splitPerson(keys, person);
    if (typeof split === 'string') throw invalidField('member', SPLIT_BLOCKERS[split]);
    const isApplied = await people.requestUnlink({ ...split, environmentId, traceId: visit.exchange.traceId });
    const detail = { split: split.leaving.length, stayed: split.staying.length };
    await writeAudit(visit, { action: 'identity.unlink', object: person.personKey.toString('hex'), detail });
    const to = toPersonPath(visit, split.staying[0]!.key.toString('hex'));
    return { kind: 'redirect', to, notice: isApplied ? 'split' : 'split-requested' };
  },
});

const NO_PERSON = 'No person has this id';

const toUnknownNote = ({ settings }: Parts): Markup =>
  html`<p>No message in this environment contains this id. A person appears here within seconds after the first message with the id. ${docsLink(settings, '/docs/identity', 'How ids become a person')}</p>`;

/** Only ids that can be looked up by key are suggested. */
async function toUnknownPage(parts: Parts, visit: Visit, values: FormValues): Promise<PageResponse> {
  const id = values.text('id');
  const keyOf = keyOfIn(parts, visit);
  const near = id === '' ? [] : await findKnown(parts, visit, listNearSubjects(id, keyOf));
  const suggestions =
    near.length === 0
      ? ''
      : panel('Similar ids', toSubjectTable(visit, near), { note: 'Another type, case or spacing' });
  return {
    kind: 'page',
    title: NO_PERSON,
    content: html`${toUnknownNote(parts)}${suggestions}${toSearch(visit, values)}${toUnknownErasure(visit, values)}`,
  };
}

/** Closed by default, because whoever mistypes an id does not want to erase anything. */
function toUnknownErasure(visit: Visit, values: FormValues): HtmlValue {
  const [kind, id] = [values.text('kind'), values.text('id')];
  if (!visit.can('erasure.request') || kind === 'key' || id === '') return '';
  const choices = SUBJECT_CHOICES.filter(({ value }) => value === 'anonymous' || value === 'untyped').map((each) =>
    each.value === 'untyped' ? { value: 'untyped', text: 'user id, under every type and without a type' } : each,
  );
  const form = visit.form(
    'erase',
    html`<p>Request this only to fulfil an erasure request for exactly this id. Messages with the id that were sent before the request and arrive later are then not stored. The erasure cannot be undone.</p>
${hidden('id', id)}${choice({ name: 'kind', label: 'Erase as', value: kind === 'anonymous' ? kind : 'untyped', choices })}
${field({ name: 'confirm', label: 'Type the id again', isRequired: true })}
<button class="danger">Erase this id</button>`,
  );
  return disclosure('Erase an id that no message contains…', form, values.text('form') === 'erase');
}

function toSearch(visit: Visit, values?: FormValues): Markup {
  return visit.form(
    'search',
    html`${field({ name: 'id', label: 'Id', value: values?.text('id') ?? '', isRequired: true, hint: 'Any id as sent by clients: an anonymous id, a user id such as an email address, or an identity key. It never appears in a URL or a log.' })}
${choice({ name: 'kind', label: 'Type', value: values?.text('kind') || 'any', choices: SUBJECT_CHOICES })}
<button>Find person</button>`,
    { className: 'form find' },
  );
}

/** Returns a note if Redis is unavailable, so that the search form is still shown. */
async function readHeldIds({ people }: Parts, environmentId: string): Promise<HtmlValue> {
  const suspects = await people.suspects(environmentId).catch(() => null);
  return suspects === null ? html`<p class="muted">Held ids are currently unavailable.</p>` : toHeldIds(suspects);
}

const HELD_SHOWN_MAX = 50;

/** Lists ids that have linked more anonymous ids than one person is likely to have. */
function toHeldIds(suspects: readonly Suspect[]): HtmlValue {
  const held = suspects.filter(({ state }) => state === 'held');
  if (held.length === 0) return '';
  const rows = held
    .slice(0, HELD_SHOWN_MAX)
    .map(({ key, since }) => [shortened(key.toString('hex'), 'the identity key'), time(since)]);
  return panel(
    `Held ids (${number(held.length)})`,
    html`<p>Each of these ids has linked more than ${number(SUSPECT_LIMIT.anonymousIdsMax)} anonymous ids within ${number(SUSPECT_LIMIT.windowMs / 3_600_000)} hours, so it is probably a placeholder. Further links are refused until an operator allows or blocks the id with <code>npm run identity -- suspects</code>.</p>
${table('Held ids', ['Identity key', 'Held since'], rows)}`,
  );
}
