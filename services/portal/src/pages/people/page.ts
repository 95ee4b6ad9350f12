/** Finds a person by id, shows the person, and requests erasures and splits. */
import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { type IdentityKind, ZERO_KEY } from '@playline/contracts';
import { invalidField } from '@playline/errors';
import {
  isPlaceholder,
  keysOf,
  listSimilarIds,
  SPLIT_BLOCKERS,
  SUSPECT_LIMIT,
  splitPerson,
  USER_KINDS,
} from '@playline/people';
import {
  choice,
  disclosure,
  docsLink,
  field,
  hidden,
  panel,
  shortened,
  table,
  tag,
  time,
} from '../../frame/components.ts';
import { number } from '../../frame/format.ts';
import { pathInEnvironment } from '../../frame/layout.ts';
import type { FormAction, FormValues, PageResponse, PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import type { PageParts } from '../index.ts';
import { countText, findPerson, toName, toPersonFile, toPersonPage, toPersonPath } from './person.ts';
import { type KeyOf, parseKey, readSubjects, SUBJECT_CHOICES, type Subject, toSubjects } from './subject.ts';

type Parts = Pick<PageParts, 'people' | 'reads' | 'writeAudit'>;

export function createPeoplePage(parts: Parts): PortalPage {
  return {
    path: '/projects/:project/environments/:environment/people',
    access: 'people.raw-ids',
    show: async (visit, failure) => {
      const key = parseKey(visit.query.get('person') ?? failure?.values.text('person') ?? '');
      if (key !== null) return showPerson(parts, visit, key, failure?.values);
      if (failure?.values.text('form') === 'erase') return toUnknownPage(parts, visit, failure.values);
      const content = html`${toSearch(visit, failure?.values)}${await toHeldIds(parts, visit)}`;
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

const keyOfIn = ({ people }: Pick<Parts, 'people'>, visit: Visit): KeyOf => {
  const { id: environmentId } = scopeOf(visit).environment;
  return (kind: IdentityKind, id: string) => people.keyOf(environmentId, kind, id);
};

/** Uses POST, so that ids never appear in a URL, a log or the browser history. */
async function search(parts: Parts, visit: Visit, values: FormValues): Promise<PageResponse> {
  const subjects = readSubjects(values, keyOfIn(parts, visit));
  await parts.writeAudit(visit, { action: 'person.find', detail: { page: 'people', by: values.text('kind') } });
  const found = await findKnown(parts, visit, subjects);
  if (found.length === 0) return toUnknownPage(parts, visit, values);
  if (found.length === 1) return { kind: 'redirect', to: toPersonPath(visit, found[0]!.key) };
  const content = html`<p>Different people use this id under different types.</p>${toSubjectTable(visit, found)}`;
  return { kind: 'page', title: `${number(found.length)} people have this id`, content };
}

const toSubjectTable = (visit: Visit, subjects: readonly Subject[]): Markup =>
  table(
    'People',
    ['Type', 'Id'],
    subjects.map(({ key, kind, id }) => [
      tag(kind ?? 'identity key'),
      html`<a class="exact" href="${toPersonPath(visit, key)}"><bdi>${id}</bdi></a>`,
    ]),
  );

/** Returns one subject per person. The graph knows links that ClickHouse does not contain yet. */
async function findKnown({ people, reads }: Parts, visit: Visit, subjects: readonly Subject[]): Promise<Subject[]> {
  const environmentId = scopeOf(visit).environment.id;
  const identityIds = subjects.map(({ key }) => key.toString('hex'));
  const [known, persons] = await Promise.all([
    reads.ids({ environmentId, identityIds, idAccess: 'raw ids' }, { signal: visit.signal }),
    Promise.all(subjects.map(({ key }) => people.members({ environmentId, key }))),
  ]);
  const found = subjects.map((subject, index) => ({ subject, ...persons[index]! }));
  const byPerson = found
    .filter(({ subject, isLinked }) => isLinked || known.has(subject.key.toString('hex')))
    .map(({ subject, personKey }) => [personKey.toString('hex'), subject] as const);
  return [...new Map(byPerson.toReversed()).values()].toReversed();
}

async function showPerson(parts: Parts, visit: Visit, key: Buffer, values?: FormValues): Promise<PageResponse> {
  const isFile = visit.query.get('as') === 'csv';
  await parts.writeAudit(visit, { action: isFile ? 'person.save' : 'person.view', object: key.toString('hex') });
  if (isFile) return toPersonFile(parts, visit, key);
  const found = await findPerson(parts, visit, key);
  if (!found.isKnown) return toUnknownPage(parts, visit, values);
  const isErasure = visit.query.get('confirm') === 'erase' || values?.text('form') === 'erase';
  if (!isErasure || !visit.can('erasure.request')) return toPersonPage(visit, found, values);
  const { events = 0 } = found.profile ?? {};
  const all = `${countText(found.members.length, 'identity', 'identities')} and ${countText(events, 'event', 'events')}`;
  const text = html`This permanently erases all data about <b><bdi>${toName(found)}</bdi></b>: ${all}, with all links and consents. A user id is erased under every type and without a type. The erasure cannot be undone.`;
  const cancel = html`<p><a href="${toPersonPath(visit, key)}">Cancel</a></p>`;
  const form = toEraseForm(visit, text, hidden('person', key.toString('hex')), values);
  return { kind: 'page', title: 'Erase this person?', content: html`${form}${cancel}` };
}

const toEraseForm = (visit: Visit, text: HtmlValue, fields: HtmlValue, values?: FormValues): Markup =>
  visit.form(
    'erase',
    html`<p>${text}</p>${fields}
${field({ name: 'confirm', label: 'To confirm, type the id as clients sent it', isRequired: true, value: values?.text('confirm') ?? '' })}
<button class="danger">Erase person</button>`,
  );

const eraseAction = ({ people, writeAudit }: Parts): FormAction => ({
  access: 'erasure.request',
  needsFreshSignIn: true,
  run: async (visit, values) => {
    const environmentId = scopeOf(visit).environment.id;
    const [keyOf, person] = [keyOfIn({ people }, visit), parseKey(values.text('person'))];
    const keys =
      person === null
        ? readSubjects(values, keyOf).map(({ key }) => key)
        : keysOf(await people.members({ environmentId, key: person }));
    // The confirmation is an id of the person, from which the keys to erase follow. It may begin or end with spaces.
    const typed = [values.all('confirm')[0] ?? '', values.text('confirm')].flatMap((id) => toSubjects(id, keyOf));
    const match = typed.find(({ key }) => keys.some((each) => each.equals(key)));
    if (match === undefined)
      throw invalidField(
        'confirm',
        'Nothing was erased. Type one of the ids of this person exactly as clients sent it.',
      );
    if (isPlaceholder(match.id))
      throw invalidField('confirm', 'This id is a placeholder that many clients send. No data is stored for it.');
    // As in the gateway, a user id is erased under every identity type and without a type.
    const kinds: readonly IdentityKind[] = match.kind === 'anonymous' ? ['anonymous'] : USER_KINDS;
    const subjectKeys = kinds.map((kind) => keyOf(kind, match.id));
    const { traceId, traceparent } = visit.exchange;
    const erasureId = await people.requestErasure({ environmentId, subjectKeys, traceId, traceparent });
    await writeAudit(visit, { action: 'erasure.request', object: erasureId });
    return { kind: 'redirect', to: pathInEnvironment(visit, `erasures/${erasureId}`) };
  },
});

const unlinkAction = ({ people, writeAudit }: Parts): FormAction => ({
  access: 'people.unlink',
  needsFreshSignIn: true,
  run: async (visit, values) => {
    const environmentId = scopeOf(visit).environment.id;
    const person = await people.members({ environmentId, key: parseKey(values.text('person')) ?? ZERO_KEY });
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
    const to = toPersonPath(visit, split.staying[0]!.key);
    return { kind: 'redirect', to, notice: isApplied ? 'split' : 'split-requested' };
  },
});

/** Suggests only ids that can be looked up by key. Offers no erasure until the reader opens it. */
async function toUnknownPage(parts: Parts, visit: Visit, values?: FormValues): Promise<PageResponse> {
  const id = values?.text('id') ?? '';
  const isErasable = id !== '' && values?.text('kind') !== 'key' && visit.can('erasure.request');
  const keyOf = keyOfIn(parts, visit);
  const near = id === '' ? [] : listSimilarIds(id).flatMap((each) => toSubjects(each, keyOf));
  const similar = await findKnown(parts, visit, near);
  const note = { note: 'of another type, in another case or with spaces' };
  return {
    kind: 'page',
    title: 'No person has this id',
    content: html`<p>No message in this environment contains this id. A person appears here within seconds after the first message. ${docsLink('/docs/identity', 'How ids become a person')}</p>
${similar.length === 0 ? '' : panel('Similar ids', toSubjectTable(visit, similar), note)}${toSearch(visit, values)}
${isErasable && values !== undefined ? toUnknownErasure(visit, values) : ''}`,
  };
}

function toUnknownErasure(visit: Visit, values: FormValues): Markup {
  const choices = [
    { value: 'untyped', text: 'a user id, of every type and without a type' },
    { value: 'anonymous', text: 'an anonymous id' },
  ];
  const kind = choice({ name: 'kind', label: 'The id is', value: values.text('kind'), choices });
  const text =
    'Use this only to fulfil an erasure request for exactly this id. Messages that were sent before the request and arrive later are then not stored. The erasure cannot be undone.';
  const form = toEraseForm(visit, text, html`${hidden('id', values.text('id'))}${kind}`, values);
  return disclosure('Erase an id without messages…', form, values.text('form') === 'erase');
}

function toSearch(visit: Visit, values?: FormValues): Markup {
  const hint =
    'Any id that clients send, such as an email address or an anonymous id, or an identity key. It never appears in a URL or a log.';
  return visit.form(
    'search',
    html`${field({ name: 'id', label: 'Id', value: values?.text('id') ?? '', isRequired: true, hint })}
${choice({ name: 'kind', label: 'Type', value: values?.text('kind') || 'any', choices: SUBJECT_CHOICES })}
<button>Find person</button>`,
    { className: 'form find' },
  );
}

const HELD_SHOWN_MAX = 50;

/** Lists ids that have linked more anonymous ids than one person is likely to have. Works without Redis. */
async function toHeldIds({ people }: Parts, visit: Visit): Promise<HtmlValue> {
  const suspects = await people.suspects(scopeOf(visit).environment.id).catch(() => null);
  if (suspects === null) return html`<p class="muted">Held ids are currently unavailable.</p>`;
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
