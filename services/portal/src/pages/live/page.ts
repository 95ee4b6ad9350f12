import { keysOfProject } from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { choice, copyableBlock, emptyState, field, hidden, number } from '../../frame/components.ts';
import { CSV_LINES_MAX, CSV_TYPE, toIso, toLimitedCsv } from '../../frame/csv.ts';
import { environmentPath } from '../../frame/layout.ts';
import type { Answer, FormAction, FormValues, PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import { FILTER_CHOICES, type LiveFilter, NO_FILTER, parseFilter } from '../../live/index.ts';
import {
  type MessageLine,
  type MessagePosition,
  type MessageSearch,
  type PortalReads,
  readManyMessages,
} from '../../reads/index.ts';
import type { PagesParts } from '../index.ts';
import { toFirstEvent } from '../keys/revealed.ts';
import { keysOfId } from '../people/subject.ts';
import { isMasked } from './events.ts';
import { searchToSave, toSearch } from './search.ts';

type Parts = Pick<PagesParts, 'keys' | 'settings' | 'searchMessages' | 'reads' | 'people' | 'frame' | 'writeAudit'>;

/** What becomes of each message of an environment, as it happens. */
export function createLivePage(parts: Parts): PortalPage {
  return {
    path: '/projects/:project/environments/:environment/live',
    access: 'live.read',
    show: async (visit, fault) => {
      const { project, environment } = scopeOf(visit);
      const path = `${environmentPath(project.id, environment.name)}/live`;
      const place = {
        environmentId: environment.id,
        path,
        query: visit.query,
        signal: visit.signal,
        idAccess: isMasked(visit) ? ('masked ids' as const) : ('raw ids' as const),
        nowMs: parts.frame.wallClockMs(),
      };
      // Refuses what the role may not look for, before anything is read.
      const filter = parseFilter(visit.query, !isMasked(visit));
      const saved = visit.query.get('as') === 'csv' ? searchToSave(place) : null;
      if (saved !== null) return saving(parts, visit, saved);
      return {
        kind: 'page',
        title: `Live messages of ${environment.name}`,
        content: html`${toExplanation(visit)}
${toFilter(path, filter)}
${toPersonFilter(visit, filter, fault?.values)}
${toLive(path, filter)}
${emptyState('Waiting for the first message', await toFirstMessage(parts, visit))}
${await toSearch(parts, place)}`,
        scripts: ['live.js'],
      };
    },
    actions: { person: choosingPerson(parts) },
  };
}

/** Ids of many people leave the portal with it: the audit says who took them, and of which time. */
async function saving({ reads, writeAudit: note }: Parts, visit: Visit, search: MessageSearch): Promise<Answer> {
  const [since, until] = [search.sinceMs, search.untilMs].map((ms) => new Date(ms).toISOString());
  const detail = { since: since ?? '', until: until ?? '', ids: search.idAccess };
  await note(visit, { action: 'messages.save', object: search.environmentId, detail });
  return toStoredFile(reads, { search, signal: visit.signal });
}

/**
 * Makes a filter of an id, which is sent and stands in no address: what does is its keyed hashes. Whoever sees no raw ids may
 * not ask whether one is there.
 */
const choosingPerson = ({ people, writeAudit: note }: Parts): FormAction => ({
  access: 'people.raw-ids',
  run: async (visit, values) => {
    const { environment } = scopeOf(visit);
    const who = keysOfId(values.text('person'), environment.id, people.keyOf).join('.');
    const filter = Object.keys(NO_FILTER).map((name): [string, string] => [name, values.text(name)]);
    const query = new URLSearchParams(filter.filter(([name, value]) => value !== '' && name !== 'who'));
    query.set('who', who);
    await note(visit, { action: 'person.find', detail: { page: 'live', by: 'id' } });
    return { kind: 'see', to: `${visit.path}?${query}` };
  },
});

function toPersonFilter(visit: Visit, filter: LiveFilter, values?: FormValues): HtmlValue {
  if (!visit.mayDo('people.raw-ids')) return '';
  const kept = Object.entries(filter).filter(([name, value]) => value !== '' && name !== 'who');
  const now =
    filter.who === '' ? '' : html`<p class="hint">Messages of one person are shown, here and in the search below.</p>`;
  return visit.form(
    'person',
    html`${kept.map(([name, value]) => hidden(name, value))}${field({ name: 'person', label: 'Id of a person', value: values?.text('person') ?? '', charactersMax: 300 })}
<button>Show theirs</button>${now}<p class="hint">An anonymous id or a user id, as clients send it. It comes into no address and no log.</p>`,
    { className: 'form filter' },
  );
}

function toExplanation(visit: Visit): HtmlValue {
  const masked = isMasked(visit)
    ? ' Ids are shown by their first two characters, and properties are left out, as your role has it.'
    : '';
  return html`<p>Each message shows within two seconds of its answer, and says what becomes of it: <b>accepted</b> (on the log), <b>stored</b> (in ClickHouse), <b>rejected</b> (with field and code), <b>fenced</b> (about somebody who is erased), <b>dead-lettered</b> (an operator has to look). Nothing of it is kept.${masked}</p>`;
}

/** Sent by GET, so that a filtered view is a link. */
function toFilter(path: string, filter: LiveFilter): HtmlValue {
  const choices = Object.entries(FILTER_CHOICES).map(([name, values]) =>
    choice({
      name,
      label: LABELS[name as keyof typeof FILTER_CHOICES],
      value: filter[name as keyof LiveFilter],
      choices: [{ value: '', text: 'all' }, ...values.map((value) => ({ value, text: value }))],
    }),
  );
  const person = filter.who === '' ? '' : hidden('who', filter.who);
  return html`<form class="form filter" method="get" action="${path}" aria-label="Filter">${person}${choices}
${field({ name: 'name', label: 'Name contains', value: filter.name, charactersMax: 200 })}
${field({ name: 'id', label: 'Id', value: filter.id, charactersMax: 36 })}
<button>Filter</button> <a href="${path}">Show all</a>
<p class="hint">Id: of a message or of a trace; for those who may see raw ids, also an identity key.</p></form>`;
}

const LABELS = { type: 'Type', surface: 'Surface', test: 'Test traffic', fate: 'Fate' } as const;

/** The script fills it; without one it says what is missing. */
function toLive(path: string, filter: LiveFilter): HtmlValue {
  const query = new URLSearchParams(Object.entries(filter).filter(([, value]) => value !== ''));
  const events = `${path}/events${query.size === 0 ? '' : `?${query}`}`;
  return html`<section class="live" data-events="${events}">
<noscript><p class="message failed">Live messages need JavaScript. The search below works without.</p></noscript>
<p><button type="button" class="pause" hidden>Pause</button> <span role="status" class="counts">Connecting…</span></p>
<p class="trouble" role="alert" hidden></p>
<div class="scroll" tabindex="0" role="region" aria-label="Live messages" hidden><table><caption class="unseen">Live messages, the newest first</caption>
<thead><tr>${['Received', 'Fate', 'Type', 'Name or field', 'Surface', 'Who'].map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
<tbody></tbody></table></div></section>`;
}

async function toFirstMessage({ keys, settings }: Parts, visit: Visit): Promise<HtmlValue> {
  const { project, environment } = scopeOf(visit);
  const live = keysOfProject(await keys.all(), project.id).find(
    (key) => key.environmentId === environment.id && key.kind === 'publishable' && key.revokedAt === null,
  );
  const keysPath = `${environmentPath(project.id, environment.name)}/keys`;
  if (live === undefined)
    return html`<p>This environment has no publishable key yet. <a href="${keysPath}">Create one</a>, then send a message with it.</p>`;
  const command = toFirstEvent(live.text ?? '', settings);
  return html`<p>Nothing comes? Send one, and watch it arrive:</p>
${copyableBlock(command, 'the command that sends a message')}
<p>An answer of 401 means another key; 400 names the field that is wrong, and the message shows here as rejected. What was sent before this page was open is in the search below.</p>`;
}

const COLUMNS = [
  ...['happened', 'received', 'type', 'name', 'surface', 'test', 'library', 'version', 'anonymous id', 'user id'],
  ...['message id', 'trace id'],
];

const toCells = (line: MessageLine): readonly string[] => [
  ...[toIso(line.happenedMs), toIso(line.receivedMs), line.type, line.name, line.surface, line.isTest ? 'yes' : 'no'],
  ...[line.library, line.libraryVersion, line.anonymousId, line.userId, line.messageId, line.traceId],
];

interface StoredFileOptions {
  readonly search: MessageSearch;
  readonly signal: AbortSignal;
}

/** All that a search finds, as its page shows it to whoever asks; of more than it takes it says where it ended. */
export function toStoredFile(reads: Pick<PortalReads, 'messages'>, { search, signal }: StoredFileOptions): Answer {
  const messages = (each: MessageSearch) => reads.messages(each, { signal });
  const lists = readManyMessages(messages, search, CSV_LINES_MAX);
  const pieces = toLimitedCsv(lists, { columns: COLUMNS, toCells, toLastLine: toEnd });
  return { kind: 'long file', name: `messages-${search.environmentId}.csv`, type: CSV_TYPE, pieces };
}

/** A search takes whole seconds, so the next file begins with the messages of the last second once more. */
function toEnd({ happenedMs }: MessagePosition): string {
  const until = toIso(Math.ceil(happenedMs / 1000) * 1000).slice(0, 19);
  return `This file ends here, at ${number(CSV_LINES_MAX, 'messages')}: search until ${until} for those before.`;
}
