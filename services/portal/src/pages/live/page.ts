/** Messages of an environment and their outcomes as they arrive, with a search of stored messages. */
import { keysOfProject } from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { allOr, choice, copyableBlock, emptyState, field, hidden, number } from '../../frame/components.ts';
import { CSV_LINES_MAX, CSV_TYPE, toCsv, toIso } from '../../frame/csv.ts';
import { pathInEnvironment } from '../../frame/layout.ts';
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
import { searchToSave, toSearchSection } from './search.ts';

type Parts = Pick<PagesParts, 'keys' | 'settings' | 'reads' | 'people' | 'frame' | 'writeAudit'>;

export function createLivePage(parts: Parts): PortalPage {
  return {
    path: '/projects/:project/environments/:environment/live',
    access: 'live.read',
    show: async (visit, fault) => {
      const { environment } = scopeOf(visit);
      const path = pathInEnvironment(visit, 'live');
      const scope = {
        environmentId: environment.id,
        path,
        query: visit.query,
        signal: visit.signal,
        idAccess: isMasked(visit) ? ('masked ids' as const) : ('raw ids' as const),
        nowMs: parts.frame.wallClockMs(),
      };
      // Refuses a filter that the role must not use, before anything is read.
      const filter = parseFilter(visit.query, !isMasked(visit));
      const search = visit.query.get('as') === 'csv' ? searchToSave(scope) : null;
      if (search !== null) {
        const [since = '', until = ''] = [search.sinceMs, search.untilMs].map(toIso);
        const detail = { since, until, ids: search.idAccess };
        await parts.writeAudit(visit, { action: 'messages.save', object: environment.id, detail });
        return toStoredFile(parts.reads, search, visit.signal);
      }
      return {
        kind: 'page',
        title: `Live messages of ${environment.name}`,
        content: html`${toExplanation(visit)}
${toFilter(path, filter)}
${toPersonFilter(visit, filter, fault?.values)}
${toLive(path, filter)}
${emptyState('Waiting for the first message', await toFirstMessage(parts, visit))}
${await toSearchSection(parts.reads, scope)}`,
        scripts: ['live.js'],
      };
    },
    actions: { person: personAction(parts) },
  };
}

/** Makes a filter of an id. Only the keyed hashes of the id become part of the address. */
const personAction = ({ people, writeAudit }: Parts): FormAction => ({
  access: 'people.raw-ids',
  run: async (visit, values) => {
    const who = keysOfId(values.text('person'), scopeOf(visit).environment.id, people.keyOf).join('.');
    const filter = Object.keys(NO_FILTER).map((name): [string, string] => [name, values.text(name)]);
    const query = new URLSearchParams(filter.filter(([name, value]) => value !== '' && name !== 'who'));
    query.set('who', who);
    await writeAudit(visit, { action: 'person.find', detail: { page: 'live', by: 'id' } });
    return { kind: 'redirect', to: `${visit.path}?${query}` };
  },
});

function toPersonFilter(visit: Visit, filter: LiveFilter, values?: FormValues): HtmlValue {
  if (!visit.mayDo('people.raw-ids')) return '';
  const kept = Object.entries(filter).filter(([name, value]) => value !== '' && name !== 'who');
  const note =
    filter.who === '' ? '' : html`<p class="hint">Showing messages of one person, here and in the search below.</p>`;
  return visit.form(
    'person',
    html`${kept.map(([name, value]) => hidden(name, value))}${field({ name: 'person', label: 'Id of a person', value: values?.text('person') ?? '', charactersMax: 300 })}
<button>Show messages</button>${note}<p class="hint">An anonymous id or a user id, as clients send it. It never appears in an address or a log.</p>`,
    { className: 'form filter' },
  );
}

function toExplanation(visit: Visit): HtmlValue {
  const masked = isMasked(visit)
    ? ' For your role, ids are shortened to two characters and properties are hidden.'
    : '';
  return html`<p>Each message appears within two seconds, with its outcome: <b>accepted</b> (on the log), <b>stored</b> (in ClickHouse), <b>rejected</b> (with field and code), <b>fenced</b> (about an erased person), <b>dead-lettered</b> (an operator must act). This view is not stored.${masked}</p>`;
}

const LABELS = { type: 'Type', surface: 'Surface', test: 'Test traffic', outcome: 'Outcome' } as const;

/** Sent by GET, so that a filtered view is a link. */
function toFilter(path: string, filter: LiveFilter): HtmlValue {
  const choices = (Object.keys(FILTER_CHOICES) as (keyof typeof FILTER_CHOICES)[]).map((name) =>
    choice({ name, label: LABELS[name], value: filter[name], choices: allOr(FILTER_CHOICES[name]) }),
  );
  const person = filter.who === '' ? '' : hidden('who', filter.who);
  return html`<form class="form filter" method="get" action="${path}" aria-label="Filter">${person}${choices}
${field({ name: 'name', label: 'Name contains', value: filter.name, charactersMax: 200 })}
${field({ name: 'id', label: 'Id', value: filter.id, charactersMax: 36 })}
<button>Filter</button> <a href="${path}">Show all</a>
<p class="hint">A message id, a trace id or, for roles that see raw ids, an identity key.</p></form>`;
}

const HEADS = ['Received', 'Outcome', 'Type', 'Name or field', 'Surface', 'Who'];

function toLive(path: string, filter: LiveFilter): HtmlValue {
  const query = new URLSearchParams(Object.entries(filter).filter(([, value]) => value !== ''));
  const events = `${path}/events${query.size === 0 ? '' : `?${query}`}`;
  return html`<section class="live" data-events="${events}">
<noscript><p class="message failed">Live messages need JavaScript. The search below works without.</p></noscript>
<p><button type="button" class="pause" hidden>Pause</button> <span role="status" class="counts">Connecting…</span></p>
<p class="trouble" role="alert" hidden></p>
<div class="scroll" tabindex="0" role="region" aria-label="Live messages" hidden><table><caption class="unseen">Live messages, newest first</caption>
<thead><tr>${HEADS.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
<tbody></tbody></table></div></section>`;
}

async function toFirstMessage({ keys, settings }: Parts, visit: Visit): Promise<HtmlValue> {
  const { project, environment } = scopeOf(visit);
  const live = keysOfProject(await keys.all(), project.id).find(
    (key) => key.environmentId === environment.id && key.kind === 'publishable' && key.revokedAt === null,
  );
  if (live === undefined)
    return html`<p>This environment has no publishable key yet. <a href="${pathInEnvironment(visit, 'keys')}">Create one</a>, then send a message with it.</p>`;
  return html`<p>Send a message and watch it arrive:</p>
${copyableBlock(toFirstEvent(live.text ?? '', settings), 'the command that sends a message')}
<p>A 401 response means a wrong key. A 400 response names the wrong field, and the message appears here as rejected. Messages sent before you opened this page are in the search below.</p>`;
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

/** A search takes whole seconds, so the next file repeats the messages of the last second. */
function toLastLine({ happenedMs }: MessagePosition): string {
  const until = toIso(Math.ceil(happenedMs / 1000) * 1000).slice(0, 19);
  return `This file ends here, at ${number(CSV_LINES_MAX, 'messages')}: search until ${until} for older ones.`;
}

export function toStoredFile(
  reads: Pick<PortalReads, 'messages'>,
  search: MessageSearch,
  signal: AbortSignal,
): Extract<Answer, { kind: 'streamed file' }> {
  const lists = readManyMessages((each) => reads.messages(each, { signal }), search, CSV_LINES_MAX);
  const pieces = toCsv(lists, { columns: FILE_COLUMNS, toCells, toLastLine });
  return { kind: 'streamed file', name: `messages-${search.environmentId}.csv`, type: CSV_TYPE, pieces };
}
