import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { invalidField } from '@playline/errors';
import {
  describeLink,
  GATHERING,
  keysOf,
  type PersonMembers,
  SPLIT_BLOCKERS,
  type Suspect,
  splitPerson,
} from '@playline/people';
import { choice, copyable, disclosure, field, hidden, number, table, time } from '../../frame/components.ts';
import { environmentPath } from '../../frame/layout.ts';
import type { Answer, FormAction, FormValues, PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import type { PortalParts } from '../../portal-parts.ts';
import type { ConsentChange, LinkDecision } from '../../reads/index.ts';
import type { PagesParts } from '../index.ts';
import { erasureKeysOf, SUBJECT_CHOICES, type Subject, subjectOf } from './subject.ts';

type Parts = Pick<PagesParts, 'people' | 'reads' | 'writeAudit'>;

/** While Redis does not answer, the search is shown all the same. */
async function heldIds({ people }: Parts, environmentId: string) {
  const suspects = await people.suspects(environmentId).catch(() => null);
  return suspects === null ? html`<p class="quiet">Held ids cannot be read now.</p>` : toHeldIds(suspects);
}

/** Who is one person, why, and what each has chosen; and what may be done about it. */
export function createPeoplePage(parts: Parts): PortalPage {
  return {
    path: '/projects/:project/environments/:environment/people',
    access: 'people.raw-ids',
    show: async (visit, fault) => {
      const { environment } = scopeOf(visit);
      const deed = fault?.values.text('deed');
      // The message about the mistake stands above the person that the form was about.
      if (fault !== undefined && (deed === 'erase' || deed === 'unlink')) return showPerson(parts, visit, fault.values);
      return {
        kind: 'page',
        title: `People of ${environment.name}`,
        content: html`<p class="quiet">Find a person by any id that clients have sent.</p>${toSearch(visit, fault?.values)}${await heldIds(parts, environment.id)}`,
      };
    },
    actions: {
      search: {
        access: 'people.raw-ids',
        run: async (visit, values) => {
          const answer = await showPerson(parts, visit, values);
          await parts.writeAudit(visit, { action: 'person.find', detail: { page: 'people', by: values.text('kind') } });
          return answer;
        },
      },
      erase: erasing(parts),
      unlink: unlinking(parts),
    },
  };
}

async function showPerson(parts: Parts, visit: Visit, values: FormValues): Promise<Answer> {
  const { environment } = scopeOf(visit);
  const subject = subjectOf(values, environment.id, parts.people.keyOf);
  const found = await findPerson(parts, subject, visit.signal);
  return {
    kind: 'page',
    title: `People of ${environment.name}`,
    content: html`${toSearch(visit)}${toPerson(visit, found)}`,
  };
}

const erasing = ({ people, writeAudit: note }: Parts): FormAction => ({
  access: 'erasure.request',
  needsFreshSignIn: true,
  run: async (visit, values) => {
    const { environment } = scopeOf(visit);
    const subject = subjectOf(values, environment.id, people.keyOf);
    const subjectKeys = erasureKeysOf(subject, people.keyOf);
    if (values.text('confirm') !== values.text('id'))
      throw invalidField('confirm', 'Nothing was erased: type the same id again to erase this person.');
    const { traceId, traceparent } = visit.exchange;
    const wanted = { environmentId: environment.id, subjectKeys, traceId, traceparent };
    const erasureId = await people.requestErasure(wanted);
    await note(visit, { action: 'erasure.request', object: erasureId });
    return {
      kind: 'page',
      title: 'The erasure is asked for',
      content: html`<p>Its id: ${copyable(erasureId, 'the id of the erasure')}</p>
<p>It is done within minutes. <a href="${erasuresPath(visit)}">Erasures</a> shows how far it has come, and gives its receipt.</p>
<p><a class="button" href="${visit.path}">Back to people</a></p>`,
    };
  },
});

const unlinking = ({ people, writeAudit: note }: Parts): FormAction => ({
  access: 'people.unlink',
  needsFreshSignIn: true,
  run: async (visit, values) => {
    const { environment } = scopeOf(visit);
    const subject = subjectOf(values, environment.id, people.keyOf);
    const chosen = new Set(values.all('member'));
    const household = await people.household(subject);
    const keys = household.members.map(({ key }) => key).filter((key) => chosen.has(key.toString('hex')));
    if (keys.length === 0 || keys.length !== chosen.size)
      throw invalidField('member', 'Choose identities of this person. It may have changed: look at it again.');
    const parting = splitPerson(keys, household);
    if (typeof parting === 'string') throw invalidField('member', SPLIT_BLOCKERS[parting]);
    const { traceId } = visit.exchange;
    const isSeen = await people.requestUnlink({ ...parting, environmentId: environment.id, traceId });
    const detail = { split: parting.leaving.length, stayed: parting.staying.length };
    await note(visit, { action: 'identity.unlink', object: household.personKey.toString('hex'), detail });
    return {
      kind: 'page',
      title: isSeen ? 'They are split' : 'The split is asked for',
      content: html`<p>${isSeen ? 'They are two persons now.' : 'Nobody has decided it yet: it waits for the linkers, or for an erasure that holds this person, or was refused. Find the person again: the decisions about links tell.'}</p>
<p>Trace id: <code>${traceId}</code></p>
<p><a class="button" href="${visit.path}">Back to people</a></p>`,
    };
  },
});

/** The form that finds a person. It is sent, never part of an address: an id would else stand in logs and histories. */
function toSearch(visit: Visit, values?: FormValues): Markup {
  return visit.form(
    'search',
    html`${choice({ name: 'kind', label: 'Kind of id', value: values?.text('kind') || 'anonymous', choices: SUBJECT_CHOICES })}
${field({ name: 'id', label: 'Id', value: values?.text('id') ?? '', isRequired: true, hint: 'As clients send it. It comes into no address and no log.' })}
<button>Find</button>`,
  );
}

/** Ids that gather anonymous ids as no person does; links of them are refused until an operator rules. */
function toHeldIds(suspects: readonly Suspect[]): Markup | '' {
  const held = suspects.filter(({ state }) => state === 'held');
  if (held.length === 0) return '';
  const rows = held
    .slice(0, HELD_SHOWN_MAX)
    .map(({ key, since }) => [copyable(key.toString('hex'), 'the identity key'), time(since)]);
  return html`<h2>Held ids (${number(held.length)})</h2>
<p>Each has linked more than ${number(GATHERING.anonymousIdsMax)} anonymous ids within ${number(GATHERING.windowMs / 3_600_000)} hours, as only a placeholder does. Further links of it are refused until an operator allows or blocks it: <code>npm run identity -- suspects</code>.</p>
${table('Held ids', ['Identity key', 'Held since'], rows)}`;
}

const HELD_SHOWN_MAX = 50;

/** A person, and what may be done about them. */
function toPerson(visit: Visit, found: FoundPerson): Markup {
  const { links, consents, members } = found;
  const refused = links.filter(({ outcome }) => outcome === 'refused');
  const known = new Map(members.map((member) => [member.keyHex, member]));
  const linkRows = (rows: readonly LinkDecision[]) => rows.map((link) => toLinkRow(link, known));
  const unlinked = found.isKnown
    ? 'Nobody has linked it: it is a person of its own.'
    : 'Nobody has linked it, and no message carries it.';
  return html`<h2>${found.isKnown ? 'Person' : 'No person has this id'}</h2>
<dl><dt>Person key</dt><dd>${copyable(found.personHex, 'the person key')}</dd><dt>Identities</dt><dd>${number(members.length)}${found.isLinked ? '' : html` <span class="quiet">${unlinked}</span>`}</dd></dl>
${table('Identities', MEMBER_HEADS, members.map(toMemberRow))}
<h2>Refused links</h2>
${refused.length === 0 ? html`<p class="quiet">None among the newest ${number(links.length)} decisions.</p>` : table('Refused links', LINK_HEADS, linkRows(refused))}
${links.length === 0 ? '' : disclosure(`All decisions about links (${links.length})`, table('Decisions about links', LINK_HEADS, linkRows(links)))}
<h2>Consents</h2>
${consents.length === 0 ? html`<p class="quiet">Nobody of this person has chosen anything.</p>` : toConsents(found, known)}
<h2>Erasure</h2>
<p><a href="${erasuresPath(visit)}">Erasures of this environment</a> shows what was asked for and how far each has come.</p>
${toErase(visit, found)}${toUnlink(visit, found)}`;
}

/** Where erasures of the environment stand. */
function erasuresPath({ project, environment }: Visit): string {
  return `${environmentPath(project?.id ?? '', environment?.name ?? '')}/erasures`;
}

const MEMBER_HEADS = ['Kind', 'Id', 'Identity key', 'Linked', 'By message', 'Trace'];

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

type Known = ReadonlyMap<string, FoundMember>;

/** The id where it is known, as the reader may see it; else the beginning of the key. */
function nameOf(keyHex: string, kind: string, known: Known): HtmlValue {
  return html`${kind} <code>${known.get(keyHex)?.id ?? `${keyHex.slice(0, 8)}…`}</code>`;
}

const LINK_HEADS = ['When', 'What', 'One', 'Other', 'What became of it', 'Message', 'Trace'];

function toLinkRow(link: LinkDecision, known: Known): HtmlValue[] {
  return [
    time(link.receivedMs),
    link.link,
    nameOf(link.a.identityId, link.a.kind, known),
    nameOf(link.b.identityId, link.b.kind, known),
    html`${link.outcome}: ${describeLink(link)}`,
    copyable(link.messageId, 'the message id'),
    copyable(link.traceId, 'the trace id'),
  ];
}

function toConsents({ consents }: FoundPerson, known: Known): HtmlValue {
  const seen = new Set<string>();
  const rows = consents.map(({ identityId, status, source, receivedMs, traceId }) => {
    const isCurrent = !seen.has(identityId);
    seen.add(identityId);
    const who = nameOf(identityId, known.get(identityId)?.kind ?? '', known);
    return [who, status, isCurrent ? 'now' : 'before', source, time(receivedMs), copyable(traceId, 'the trace id')];
  });
  return table('Consents, the newest first', ['Identity', 'Status', 'Counts', 'Source', 'When', 'Trace'], rows);
}

function toErase(visit: Visit, { subject, members }: FoundPerson): HtmlValue {
  const { named } = subject;
  if (!visit.mayDo('erasure.request')) return '';
  if (named === null) return html`<p class="quiet">To ask for an erasure, find the person by an id.</p>`;
  const also = named.kind === 'anonymous' ? '' : ' A user id is erased in every type and without one.';
  const form = visit.form(
    'erase',
    html`<p>This erases everything of this person: ${number(members.length)} ${members.length === 1 ? 'identity' : 'identities'}.${also} Nobody can take it back.</p>
${hidden('kind', named.kind)}${hidden('id', named.id)}
${field({ name: 'confirm', label: 'Type the id again', isRequired: true })}
<button class="danger">Erase this person</button>`,
  );
  return disclosure('Erase this person', form);
}

function toUnlink(visit: Visit, { subject, members }: FoundPerson): HtmlValue {
  if (!visit.mayDo('people.unlink') || members.length < 2) return '';
  const boxes = members.map(
    ({ keyHex, kind, id }) =>
      html`<label><input type="checkbox" name="member" value="${keyHex}"> ${kind ?? ''} <code>${id ?? keyHex}</code></label><br>`,
  );
  const form = visit.form(
    'unlink',
    html`<p>Those that you choose become one person of their own; the rest stays. Messages up to now do not join the two again, later ones may. Events keep their place.</p>
${hidden('kind', 'key')}${hidden('id', subject.key.toString('hex'))}${boxes}
<button class="danger">Split them off</button>`,
  );
  return disclosure('Split a wrong merge', form);
}

/** One identity of a person. */
interface FoundMember {
  readonly keyHex: string;
  /** Null for one that was named by its key and that nobody has linked. */
  readonly kind: string | null;
  /** Null where no event has it. */
  readonly id: string | null;
  /** Epoch milliseconds; null while nobody has linked it. */
  readonly linkedMs: number | null;
  /** The message that linked it first, of those that are shown. */
  readonly linkedBy: LinkDecision | null;
}

/** What is known of a person. */
interface FoundPerson {
  readonly subject: Subject;
  readonly personHex: string;
  readonly isLinked: boolean;
  /** Whether it is linked, or a message, a consent or a refused link has it. */
  readonly isKnown: boolean;
  readonly members: readonly FoundMember[];
  /** The newest first. */
  readonly links: readonly LinkDecision[];
  readonly consents: readonly ConsentChange[];
}

/** Reads a person: the graph, then what the tables have of everybody in it. @throws what the stores throw */
async function findPerson(
  { people, reads }: Pick<PortalParts, 'people' | 'reads'>,
  subject: Subject,
  signal: AbortSignal,
): Promise<FoundPerson> {
  const household = await people.household(subject);
  const identityIds = keysOf(household).map((key) => key.toString('hex'));
  const question = { environmentId: subject.environmentId, identityIds };
  const [links, consents, ids] = await Promise.all([
    reads.links(question, { signal }),
    reads.consents(question, { signal }),
    // The page is for those only who may see raw ids.
    reads.ids({ ...question, sight: 'raw ids' }, { signal }),
  ]);
  const members = toMembers(subject, household).map((member) => ({
    ...member,
    id: ids.get(member.keyHex) ?? null,
    linkedBy: links.findLast((link) => link.outcome === 'linked' && isAbout(link, member.keyHex)) ?? null,
  }));
  const personHex = household.personKey.toString('hex');
  const { isLinked } = household;
  const isKnown = isLinked || ids.size + links.length + consents.length > 0;
  return { subject, personHex, isLinked, isKnown, members, links, consents };
}

function toMembers(subject: Subject, { members }: PersonMembers) {
  if (members.length === 0)
    return [{ keyHex: subject.key.toString('hex'), kind: subject.named?.kind ?? null, linkedMs: null }];
  return members.map(({ key, kind, linkedAt }) => ({ keyHex: key.toString('hex'), kind, linkedMs: linkedAt }));
}

const isAbout = ({ a, b }: LinkDecision, keyHex: string) => a.identityId === keyHex || b.identityId === keyHex;
