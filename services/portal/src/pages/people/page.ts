/** Finds a person by id, shows their identities, links and consents, and requests erasures and splits. */
import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { invalidField } from '@playline/errors';
import { describeLink, keysOf, SPLIT_BLOCKERS, SUSPECT_LIMIT, type Suspect, splitPerson } from '@playline/people';
import { choice, copyable, disclosure, field, hidden, number, table, time } from '../../frame/components.ts';
import { pathInEnvironment } from '../../frame/layout.ts';
import type { FormAction, FormValues, PageResponse, PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import type { LinkDecision } from '../../reads/index.ts';
import type { PageParts } from '../index.ts';
import { readSubject, SUBJECT_CHOICES, type Subject, toErasureKeys } from './subject.ts';

type Parts = Pick<PageParts, 'people' | 'reads' | 'writeAudit'>;

export function createPeoplePage(parts: Parts): PortalPage {
  return {
    path: '/projects/:project/environments/:environment/people',
    access: 'people.raw-ids',
    show: async (visit, failure) => {
      const { environment } = scopeOf(visit);
      const action = failure?.values.text('form');
      if (failure !== undefined && (action === 'erase' || action === 'unlink'))
        return showPerson(parts, visit, failure.values);
      return {
        kind: 'page',
        title: `People in ${environment.name}`,
        content: html`<p class="quiet">Find a person by any id that clients send.</p>${toSearch(visit, failure?.values)}${await readHeldIds(parts, environment.id)}`,
      };
    },
    actions: {
      search: {
        access: 'people.raw-ids',
        run: async (visit, values) => {
          const response = await showPerson(parts, visit, values);
          const detail = { page: 'people', by: values.text('kind') };
          await parts.writeAudit(visit, { action: 'person.find', detail });
          return response;
        },
      },
      erase: eraseAction(parts),
      unlink: unlinkAction(parts),
    },
  };
}

async function showPerson(parts: Parts, visit: Visit, values: FormValues): Promise<PageResponse> {
  const { environment } = scopeOf(visit);
  const subject = readSubject(values, environment.id, parts.people.keyOf);
  const found = await findPerson(parts, subject, visit.signal);
  return {
    kind: 'page',
    title: `People in ${environment.name}`,
    content: html`${toSearch(visit)}${toPerson(visit, found)}`,
  };
}

const eraseAction = ({ people, writeAudit }: Parts): FormAction => ({
  access: 'erasure.request',
  needsFreshSignIn: true,
  run: async (visit, values) => {
    const environmentId = scopeOf(visit).environment.id;
    const subjectKeys = toErasureKeys(readSubject(values, environmentId, people.keyOf), people.keyOf);
    if (values.text('confirm') !== values.text('id'))
      throw invalidField('confirm', 'Nothing was erased. Type the same id again to erase this person.');
    const { traceId, traceparent } = visit.exchange;
    const erasureId = await people.requestErasure({ environmentId, subjectKeys, traceId, traceparent });
    await writeAudit(visit, { action: 'erasure.request', object: erasureId });
    return {
      kind: 'page',
      title: 'Erasure requested',
      content: html`<p>Erasure id: ${copyable(erasureId, 'the erasure id')}</p>
<p>The erasure completes within minutes. Its progress and receipt appear on <a href="${pathInEnvironment(visit, 'erasures')}">Erasures</a>.</p>
<p><a class="button" href="${visit.path}">Back to people</a></p>`,
    };
  },
});

const unlinkAction = ({ people, writeAudit }: Parts): FormAction => ({
  access: 'people.unlink',
  needsFreshSignIn: true,
  run: async (visit, values) => {
    const environmentId = scopeOf(visit).environment.id;
    const person = await people.members(readSubject(values, environmentId, people.keyOf));
    const chosen = new Set(values.all('member'));
    const keys = person.members.map(({ key }) => key).filter((key) => chosen.has(key.toString('hex')));
    if (keys.length === 0 || keys.length !== chosen.size)
      throw invalidField(
        'member',
        'Select at least one identity of this person. If the identities have changed, check them and try again.',
      );
    const split = splitPerson(keys, person);
    if (typeof split === 'string') throw invalidField('member', SPLIT_BLOCKERS[split]);
    const { traceId } = visit.exchange;
    const isApplied = await people.requestUnlink({ ...split, environmentId, traceId });
    const detail = { split: split.leaving.length, stayed: split.staying.length };
    await writeAudit(visit, { action: 'identity.unlink', object: person.personKey.toString('hex'), detail });
    return {
      kind: 'page',
      title: isApplied ? 'Person split' : 'Split requested',
      content: html`<p>${isApplied ? 'The identities now belong to two persons.' : 'No decision has arrived yet. The split may be waiting for the linker or for an erasure of this person, or it may have been refused. Find the person again to see the decision.'}</p>
<p>Trace id: <code>${traceId}</code></p>
<p><a class="button" href="${visit.path}">Back to people</a></p>`,
    };
  },
});

/** Uses POST, so that ids never appear in a URL, a log or the browser history. */
function toSearch(visit: Visit, values?: FormValues): Markup {
  return visit.form(
    'search',
    html`${choice({ name: 'kind', label: 'Id type', value: values?.text('kind') || 'anonymous', choices: SUBJECT_CHOICES })}
${field({ name: 'id', label: 'Id', value: values?.text('id') ?? '', isRequired: true, hint: 'The id as sent by clients. It never appears in a URL or a log.' })}
<button>Find</button>`,
  );
}

/** Returns a note if Redis is unavailable, so that the search form is still shown. */
async function readHeldIds({ people }: Parts, environmentId: string): Promise<HtmlValue> {
  const suspects = await people.suspects(environmentId).catch(() => null);
  return suspects === null ? html`<p class="quiet">Held ids are currently unavailable.</p>` : toHeldIds(suspects);
}

const HELD_SHOWN_MAX = 50;

/** Lists ids that have linked more anonymous ids than one person is likely to have. */
function toHeldIds(suspects: readonly Suspect[]): HtmlValue {
  const held = suspects.filter(({ state }) => state === 'held');
  if (held.length === 0) return '';
  const rows = held
    .slice(0, HELD_SHOWN_MAX)
    .map(({ key, since }) => [copyable(key.toString('hex'), 'the identity key'), time(since)]);
  return html`<h2>Held ids (${number(held.length)})</h2>
<p>Each of these ids has linked more than ${number(SUSPECT_LIMIT.anonymousIdsMax)} anonymous ids within ${number(SUSPECT_LIMIT.windowMs / 3_600_000)} hours, so it is probably a placeholder. Further links are refused until an operator allows or blocks the id with <code>npm run identity -- suspects</code>.</p>
${table('Held ids', ['Identity key', 'Held since'], rows)}`;
}

const MEMBER_COLUMNS = ['Type', 'Id', 'Identity key', 'Linked', 'Linked by message', 'Trace id'];
const LINK_COLUMNS = ['Time', 'Link', 'First identity', 'Second identity', 'Outcome', 'Message id', 'Trace id'];

function toPerson(visit: Visit, found: FoundPerson): Markup {
  const { links, consents, members } = found;
  const refused = links.filter(({ outcome }) => outcome === 'refused');
  const membersByKey = new Map(members.map((member) => [member.keyHex, member]));
  const linkTable = (caption: string, shown: readonly LinkDecision[]) =>
    table(
      caption,
      LINK_COLUMNS,
      shown.map((each) => toLinkRow(each, membersByKey)),
    );
  const unlinked = found.isKnown ? 'Not linked to any other identity.' : 'No message contains this id.';
  return html`<h2>${found.isKnown ? 'Person' : 'No person has this id'}</h2>
<dl><dt>Person key</dt><dd>${copyable(found.personHex, 'the person key')}</dd><dt>Identities</dt><dd>${number(members.length)}${found.isLinked ? '' : html` <span class="quiet">${unlinked}</span>`}</dd></dl>
${table('Identities', MEMBER_COLUMNS, members.map(toMemberRow))}
<h2>Refused links</h2>
${refused.length === 0 ? html`<p class="quiet">No refused links among the newest ${number(links.length)} decisions.</p>` : linkTable('Refused links', refused)}
${links.length === 0 ? '' : disclosure(`All link decisions (${links.length})`, linkTable('Link decisions', links))}
<h2>Consents</h2>
${consents.length === 0 ? html`<p class="quiet">No consents are recorded for this person.</p>` : toConsents(found, membersByKey)}
<h2>Erasure</h2>
<p>Erasure requests and their progress are on <a href="${pathInEnvironment(visit, 'erasures')}">Erasures</a>.</p>
${toEraseForm(visit, found)}${toSplitForm(visit, found)}`;
}

function toMemberRow({ kind, id, keyHex, linkedMs, linkedBy }: FoundMember): HtmlValue[] {
  return [
    kind ?? '–',
    id === null ? '–' : html`<code>${id}</code>`,
    copyable(keyHex, 'the identity key'),
    linkedMs === null ? '–' : time(linkedMs),
    linkedBy === null ? '–' : copyable(linkedBy.messageId, 'the message id'),
    linkedBy === null ? '–' : copyable(linkedBy.traceId, 'the trace id'),
  ];
}

type MembersByKey = ReadonlyMap<string, FoundMember>;

/** Shows the id if it is known, and otherwise the first digits of the key. */
function toIdentityText(keyHex: string, kind: string, membersByKey: MembersByKey): HtmlValue {
  return html`${kind} <code>${membersByKey.get(keyHex)?.id ?? `${keyHex.slice(0, 8)}…`}</code>`;
}

function toLinkRow(link: LinkDecision, membersByKey: MembersByKey): HtmlValue[] {
  return [
    time(link.receivedMs),
    link.link,
    toIdentityText(link.a.identityId, link.a.kind, membersByKey),
    toIdentityText(link.b.identityId, link.b.kind, membersByKey),
    html`${link.outcome}: ${describeLink(link)}`,
    copyable(link.messageId, 'the message id'),
    copyable(link.traceId, 'the trace id'),
  ];
}

function toConsents({ consents }: FoundPerson, membersByKey: MembersByKey): HtmlValue {
  const seen = new Set<string>();
  const rows = consents.map(({ identityId, status, source, receivedMs, traceId }) => {
    const isCurrent = !seen.has(identityId);
    seen.add(identityId);
    const identity = toIdentityText(identityId, membersByKey.get(identityId)?.kind ?? '', membersByKey);
    return [identity, status, isCurrent ? 'yes' : 'no', source, time(receivedMs), copyable(traceId, 'the trace id')];
  });
  return table('Consents, newest first', ['Identity', 'Status', 'Current', 'Source', 'Time', 'Trace id'], rows);
}

function toEraseForm(visit: Visit, { subject, members }: FoundPerson): HtmlValue {
  const { named } = subject;
  if (!visit.can('erasure.request')) return '';
  if (named === null) return html`<p class="quiet">To request an erasure, find the person by id, not by key.</p>`;
  const types = named.kind === 'anonymous' ? '' : ' The user id is erased under every type and without a type.';
  const identities = members.length === 1 ? 'identity' : 'identities';
  const form = visit.form(
    'erase',
    html`<p>This permanently erases all data about this person (${number(members.length)} ${identities}).${types} The erasure cannot be undone.</p>
${hidden('kind', named.kind)}${hidden('id', named.id)}
${field({ name: 'confirm', label: 'Type the id again', isRequired: true })}
<button class="danger">Erase this person</button>`,
  );
  return disclosure('Erase this person', form);
}

function toSplitForm(visit: Visit, { subject, members }: FoundPerson): HtmlValue {
  if (!visit.can('people.unlink') || members.length < 2) return '';
  const boxes = members.map(
    ({ keyHex, kind, id }) =>
      html`<label><input type="checkbox" name="member" value="${keyHex}"> ${kind ?? ''} <code>${id ?? keyHex}</code></label><br>`,
  );
  const form = visit.form(
    'unlink',
    html`<p>The selected identities become a separate person. Messages received before the split cannot join the two persons again, but later messages can. Events stay with their identities.</p>
${hidden('kind', 'key')}${hidden('id', subject.key.toString('hex'))}${boxes}
<button class="danger">Split person</button>`,
  );
  return disclosure('Split this person', form);
}

type FoundPerson = Awaited<ReturnType<typeof findPerson>>;
type FoundMember = FoundPerson['members'][number];

async function findPerson({ people, reads }: Parts, subject: Subject, signal: AbortSignal) {
  const person = await people.members(subject);
  const identityIds = keysOf(person).map((key) => key.toString('hex'));
  const search = { environmentId: subject.environmentId, identityIds };
  const [links, consents, ids] = await Promise.all([
    reads.links(search, { signal }),
    reads.consents(search, { signal }),
    reads.ids({ ...search, idAccess: 'raw ids' }, { signal }),
  ]);
  const unlinked = [{ key: subject.key, kind: subject.named?.kind ?? null, linkedAt: null }];
  const members = (person.members.length === 0 ? unlinked : person.members).map(({ key, kind, linkedAt }) => {
    const keyHex = key.toString('hex');
    const isLinkOf = ({ a, b, outcome }: LinkDecision) =>
      outcome === 'linked' && (a.identityId === keyHex || b.identityId === keyHex);
    // Decisions are sorted newest first, so this is the oldest decision that linked the identity.
    const linkedBy = links.findLast(isLinkOf) ?? null;
    // `id` is null if no event contains the id. `kind` is null for an unlinked identity that was found by key.
    return { keyHex, kind, linkedMs: linkedAt, id: ids.get(keyHex) ?? null, linkedBy };
  });
  const { isLinked } = person;
  const isKnown = isLinked || ids.size + links.length + consents.length > 0;
  return { subject, personHex: person.personKey.toString('hex'), isLinked, isKnown, members, links, consents };
}
