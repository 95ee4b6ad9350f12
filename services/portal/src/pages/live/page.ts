/** Shows messages and their outcomes as they arrive, and searches stored messages. */
import { keysOfProject } from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { choice, copyableBlock, emptyState, field, hidden, number, withAllOption } from '../../frame/components.ts';
import { CSV_LINES_MAX, CSV_TYPE, toCsv, toIso } from '../../frame/csv.ts';
import { pathInEnvironment } from '../../frame/layout.ts';
import type { FormAction, FormValues, PageResponse, PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import { FILTER_CHOICES, type LiveFilter, NO_FILTER, parseFilter } from '../../live/index.ts';
import {
  type MessageLine,
  type MessagePosition,
  type MessageSearch,
  type PortalReads,
  readManyMessages,
} from '../../reads/index.ts';
import type { PageParts } from '../index.ts';
import { toEventCommand } from '../keys/new-key.ts';
import { toIdentityKeys } from '../people/subject.ts';
import { shouldMaskIds } from './events.ts';
import { toExportSearch, toSearchSection } from './search.ts';

type Parts = Pick<PageParts, 'keys' | 'settings' | 'reads' | 'people' | 'frame' | 'writeAudit'>;

export function createLivePage(parts: Parts): PortalPage {
  return {
    path: '/projects/:project/environments/:environment/live',
    access: 'live.read',
    show: async (visit, failure) => {
      const { environment } = scopeOf(visit);
      const path = pathInEnvironment(visit, 'live');
      const scope = {
        environmentId: environment.id,
        path,
        query: visit.query,
        signal: visit.signal,
        idAccess: shouldMaskIds(visit) ? ('masked ids' as const) : ('raw ids' as const),
        nowMs: parts.frame.wallClockMs(),
      };
      // Rejects filters that the role may not use, before any query runs.
      const filter = parseFilter(visit.query, !shouldMaskIds(visit));
      const search = visit.query.get('as') === 'csv' ? toExportSearch(scope) : null;
      if (search !== null) {
        const [since = '', until = ''] = [search.sinceMs, search.untilMs].map(toIso);
        const detail = { since, until, ids: search.idAccess };
        await parts.writeAudit(visit, { action: 'messages.save', object: environment.id, detail });
        return toMessagesFile(parts.reads, search, visit.signal);
      }
      return {
        kind: 'page',
        title: `Live messages in ${environment.name}`,
        content: html`${toExplanation(visit)}
${toFilter(path, filter)}
${toPersonFilter(visit, filter, failure?.values)}
${toLive(path, filter)}
${emptyState('Waiting for the first message', await toFirstMessage(parts, visit))}
${await toSearchSection(parts.reads, scope)}`,
        scripts: ['live.js'],
      };
    },
    actions: { person: personAction(parts) },
  };
}

/** Converts an id into a filter. The URL contains keyed hashes of the id, never the id. */
const personAction = ({ people, writeAudit }: Parts): FormAction => ({
  access: 'people.raw-ids',
  run: async (visit, values) => {
    const who = toIdentityKeys(values.text('person'), scopeOf(visit).environment.id, people.keyOf).join('.');
    const fields = Object.keys(NO_FILTER).map((name): [string, string] => [name, values.text(name)]);
    const query = new URLSearchParams(fields.filter(([name, value]) => value !== '' && name !== 'who'));
    query.set('who', who);
    await writeAudit(visit, { action: 'person.find', detail: { page: 'live', by: 'id' } });
    return { kind: 'redirect', to: `${visit.path}?${query}` };
  },
});

function toPersonFilter(visit: Visit, filter: LiveFilter, values?: FormValues): HtmlValue {
  if (!visit.can('people.raw-ids')) return '';
  const otherFields = Object.entries(filter).filter(([name, value]) => value !== '' && name !== 'who');
  const note =
    filter.who === '' ? '' : html`<p class="hint">Showing messages from one person, here and in the search below.</p>`;
  return visit.form(
    'person',
    html`${otherFields.map(([name, value]) => hidden(name, value))}${field({ name: 'person', label: 'Person’s id', value: values?.text('person') ?? '', maxLength: 300 })}
<button>Show messages</button>${note}<p class="hint">An anonymous id or a user id, as sent by clients. The id never appears in a URL or a log.</p>`,
    { className: 'form filter' },
  );
}

function toExplanation(visit: Visit): HtmlValue {
  const masked = shouldMaskIds(visit)
    ? ' With your role, ids are shortened to two characters and properties are hidden.'
    : '';
  return html`<p>Each message appears within two seconds, with its outcome: <b>accepted</b> (on the log), <b>stored</b> (in ClickHouse), <b>rejected</b> (with field and code), <b>fenced</b> (the person was erased) or <b>dead-lettered</b> (an operator must act). Messages in this list are not saved.${masked}</p>`;
}

const FILTER_LABELS = { type: 'Type', surface: 'Surface', test: 'Test traffic', outcome: 'Outcome' } as const;

/** Uses GET, so that users can share a filtered page as a link. */
function toFilter(path: string, filter: LiveFilter): HtmlValue {
  const choices = (Object.keys(FILTER_CHOICES) as (keyof typeof FILTER_CHOICES)[]).map((name) =>
    choice({ name, label: FILTER_LABELS[name], value: filter[name], choices: withAllOption(FILTER_CHOICES[name]) }),
  );
  const person = filter.who === '' ? '' : hidden('who', filter.who);
  return html`<form class="form filter" method="get" action="${path}" aria-label="Filter">${person}${choices}
${field({ name: 'name', label: 'Name contains', value: filter.name, maxLength: 200 })}
${field({ name: 'id', label: 'Id', value: filter.id, maxLength: 36 })}
<button>Filter</button> <a href="${path}">Show all</a>
<p class="hint">The id can be a message id, a trace id or, if your role has access to raw ids, an identity key.</p></form>`;
}

const COLUMNS = ['Received', 'Outcome', 'Type', 'Name or field', 'Surface', 'User'];

function toLive(path: string, filter: LiveFilter): HtmlValue {
  const query = new URLSearchParams(Object.entries(filter).filter(([, value]) => value !== ''));
  const events = `${path}/events${query.size === 0 ? '' : `?${query}`}`;
  return html`<section class="live" data-events="${events}">
<noscript><p class="message failed">Live messages require JavaScript. The search below works without it.</p></noscript>
<p><button type="button" class="pause" hidden>Pause</button> <span role="status" class="counts">Connecting…</span></p>
<p class="trouble" role="alert" hidden></p>
<div class="scroll" tabindex="0" role="region" aria-label="Live messages" hidden><table><caption class="visually-hidden">Live messages, newest first</caption>
<thead><tr>${COLUMNS.map((column) => html`<th scope="col">${column}</th>`)}</tr></thead>
<tbody></tbody></table></div></section>`;
}

async function toFirstMessage({ keys, settings }: Parts, visit: Visit): Promise<HtmlValue> {
  const { project, environment } = scopeOf(visit);
  const live = keysOfProject(await keys.all(), project.id).find(
    (key) => key.environmentId === environment.id && key.kind === 'publishable' && key.revokedAt === null,
  );
  if (live === undefined)
    return html`<p>This environment has no publishable key yet. <a href="${pathInEnvironment(visit, 'keys')}">Create a key</a>, then use it to send a message.</p>`;
  return html`<p>To send a message, run this command:</p>
${copyableBlock(toEventCommand(live.text ?? '', settings), 'the command that sends a message')}
<p>A 401 response means that the key is not valid. A 400 response names the invalid field, and the message appears here as rejected. To find messages sent before you opened this page, use the search below.</p>`;
}

const FILE_COLUMNS =
  'happened|received|type|name|surface|test|library|version|anonymous id|user id|message id|trace id'.split('|');

const toCells = (line: MessageLine): readonly string[] => [
  toIso(line.happenedMs),
  toIso(line.receivedMs),
  line.type,
  line.name,
  line.surface,
  line.isTest ? 'yes' : 'no',
  line.library,
  line.libraryVersion,
  line.anonymousId,
  line.userId,
  line.messageId,
  line.traceId,
];

/** Times in searches have a resolution of one second, so the next export repeats the messages of the last second. */
function toLastLine({ happenedMs }: MessagePosition): string {
  const until = toIso(Math.ceil(happenedMs / 1000) * 1000).slice(0, 19);
  return `This export is limited to ${number(CSV_LINES_MAX, 'messages')}. For older messages, search until ${until}.`;
}

export function toMessagesFile(
  reads: Pick<PortalReads, 'messages'>,
  search: MessageSearch,
  signal: AbortSignal,
): Extract<PageResponse, { kind: 'streamed file' }> {
  const lists = readManyMessages((each) => reads.messages(each, { signal }), search, CSV_LINES_MAX);
  const chunks = toCsv(lists, { columns: FILE_COLUMNS, toCells, toLastLine });
  return { kind: 'streamed file', name: `messages-${search.environmentId}.csv`, type: CSV_TYPE, chunks };
}
