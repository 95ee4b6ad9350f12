/** The page that an environment opens on: its numbers over time or, before the first message, the next steps. */
import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { explainRejection } from '../../explain-rejection.ts';
import { chart, duration, number, panel, percentage, stat, status, table, time } from '../../frame/components.ts';
import { pathInEnvironment, projectPath } from '../../frame/layout.ts';
import { orNull } from '../../frame/or-null.ts';
import type { PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import { rangeOf, rangeSegments, rangesWith } from '../../frame/time-range.ts';
import { createCachedRead, type OpenDeadLetters } from '../../pipeline-status.ts';
import type { Overview, OverviewLine, OverviewSearch } from '../../reads/index.ts';
import type { PageParts } from '../index.ts';
import { isWaiting, toChecklist } from './checklist.ts';

type Parts = Pick<PageParts, 'reads' | 'pipeline' | 'keys' | 'accounts' | 'settings' | 'frame'>;

const MINUTE_S = 60;
const HOUR_S = 3_600;
const DAY_S = 24 * HOUR_S;

/** `stepS` is the length of the intervals in the chart, and `rowS` in its table. */
export const OVERVIEW_RANGES = rangesWith({
  '1h': { stepS: MINUTE_S, rowS: 5 * MINUTE_S },
  '24h': { stepS: 10 * MINUTE_S, rowS: HOUR_S },
  '7d': { stepS: HOUR_S, rowS: DAY_S },
  '30d': { stepS: 4 * HOUR_S, rowS: DAY_S },
});
type Range = (typeof OVERVIEW_RANGES)[number];

/** By this time, the event writer has usually counted a finished minute. */
const COUNTED_AFTER_S = 30;
/** Viewers share a result, because it changes only once a minute. */
const CACHED_MS = 10_000;

export function createOverviewPages(parts: Parts): PortalPage[] {
  const reads = new Map<string, () => Promise<Pick<View, 'search' | 'overview'>>>();
  const read = (environmentId: string, range: Range) => {
    const key = `${environmentId} ${range.name}`;
    const load = async () => {
      const search = toSearch(environmentId, range, parts.frame.wallClockMs());
      return { search, overview: await parts.reads.overview(search) };
    };
    const cached = reads.get(key) ?? createCachedRead(load, CACHED_MS);
    reads.set(key, cached);
    return cached();
  };
  return [
    {
      path: '/projects/:project/environments/:environment',
      access: 'project.read',
      show: (visit) => ({ kind: 'redirect', to: pathInEnvironment(visit, 'overview') }),
    },
    {
      path: '/projects/:project/environments/:environment/overview',
      access: 'project.read',
      show: async (visit) => {
        const { environment } = scopeOf(visit);
        const range = rangeOf(visit.query, OVERVIEW_RANGES);
        const deadLetters = orNull(parts.pipeline.openDeadLetters());
        const { search, overview } = await read(environment.id, range);
        if (isWaiting(overview, search)) return toChecklist(parts, visit, overview);
        const actions = rangeSegments(visit, OVERVIEW_RANGES, range);
        const content = toContent(visit, { range, search, overview, deadLetters: await deadLetters });
        return { kind: 'page', title: 'Overview', actions, content, scripts: ['chart.js'] };
      },
    },
  ];
}

export function toSearch(environmentId: string, { ms, stepS }: Range, nowMs: number): OverviewSearch {
  const spanS = ms / 1000;
  const nowS = Math.floor(nowMs / 1000) - COUNTED_AFTER_S;
  const untilS = nowS - (nowS % MINUTE_S);
  return { environmentId, spanS, stepS, sinceS: Math.ceil((untilS - spanS) / stepS) * stepS, untilS };
}

interface View {
  readonly range: Range;
  readonly search: OverviewSearch;
  readonly overview: Overview;
  readonly deadLetters: OpenDeadLetters | null;
}

function toContent(visit: Visit, view: View): HtmlValue {
  const { overview, search, range } = view;
  const times = html`${time(search.sinceS * 1000)} to ${time(search.untilS * 1000)}`;
  const explore = html`<a href="${pathInEnvironment(visit, 'explore')}?range=${range.name}">Explore</a>`;
  return html`${toFiring(visit)}${toCallout(visit, view)}
<section class="cards" aria-label="Figures">${toStats(view)}</section>
${panel('Messages per minute', toChart(view), { note: html`accepted, and recorded errors in red, ${times}` })}
<div class="split numbers">${panel('Top events', toEvents(overview), { note: `last ${range.text}`, actions: explore })}
<div>${panel('Clients', toClients(overview))}${panel('Open work', toWork(visit, view))}</div></div>`;
}

function toFiring(visit: Visit): HtmlValue {
  const { id } = scopeOf(visit).project;
  const count = visit.firing.get(id) ?? 0;
  if (count === 0) return '';
  const text = count === 1 ? 'An alert is firing in this project.' : `${count} alerts are firing in this project.`;
  return html`<div class="notice warn"><span class="grow"><b>${text}</b></span><a class="btn" href="${projectPath(id)}/alerts">Show alerts</a></div>`;
}

/** A cause is shown if it has at least this many errors and three times as many as in the previous span. */
const CALLOUT_ERRORS_MIN = 20;
const CALLOUT_GROWTH_MIN = 3;

/** The cause of rejections that grew most; undefined if none grew beyond the thresholds. */
export function findGrownCause(causes: readonly OverviewLine[]): OverviewLine | undefined {
  return causes
    .filter(({ value, previous }) => value >= CALLOUT_ERRORS_MIN && value >= CALLOUT_GROWTH_MIN * previous)
    .toSorted((a, b) => b.value - b.previous - (a.value - a.previous))[0];
}

function toCallout(visit: Visit, { overview, range }: View): HtmlValue {
  const cause = findGrownCause(overview.causes);
  if (cause === undefined) return '';
  const { name, field, library, libraryVersion, value, previous } = cause;
  const client = library === '' ? 'Unknown clients' : `${library} ${libraryVersion}`;
  const path = `${pathInEnvironment(visit, 'rejections')}?${new URLSearchParams({ range: range.name, code: name, field })}`;
  const link = visit.can('rejections.read') ? html`<a class="btn" href="${path}">Show rejections</a>` : '';
  return html`<div class="notice warn"><span class="grow"><b><bdi>${client}</bdi>: ${explainRejection({ code: name, field }).sentence}.</b> <span class="muted">${number(value)} errors in the last ${range.text}, ${previous === 0 ? 'none' : number(previous)} in the ${range.text} before. These messages are rejected. Everything else is stored.</span></span>${link}</div>`;
}

function toStats({ overview: { clients, causes, players, delay }, search }: View): HtmlValue {
  const [messages, errors] = [totalOf(clients), totalOf(causes)];
  const [rate, previousRate] = [rateOf(errors.value, messages.value), rateOf(errors.previous, messages.previous)];
  const points = `${(100 * Math.abs(rate - previousRate)).toFixed(2)} pp`;
  const current =
    players !== null && search.untilS - players.atS < Math.max(HOUR_S, search.spanS / 12) ? players : null;
  return html`${stat('Messages stored', number(messages.value), toChange(messages))}
${current === null ? stat('Active players', '–', 'not counted yet') : stat('Active players', number(current.value), current.previous === 0 ? '' : toChange(current))}
${stat('Rejection rate', `${(100 * rate).toFixed(2)}\u00a0%`, html`${toArrow(rate - previousRate, points, 'bad')} <span class="faint">${number(errors.value)} recorded errors</span>`)}
${stat('Post to queryable, p99', toDelay(delay?.value), delay?.previous ? html`<span class="faint">${toDelay(delay.previous)} before</span>` : '')}`;
}

const totalOf = (lines: readonly OverviewLine[]) => ({
  value: lines[0]?.total ?? 0,
  previous: lines[0]?.previousTotal ?? 0,
});
const rateOf = (errors: number, messages: number) => (errors === 0 ? 0 : errors / (errors + messages));
const toDelay = (ms = 0) => (ms === 0 ? '–' : ms < 10_000 ? `${(ms / 1000).toFixed(1)}\u00a0s` : duration(ms));

function toChange({ value, previous }: Pick<OverviewLine, 'value' | 'previous'>): HtmlValue {
  if (previous === 0) return value === 0 ? '' : html`<span class="faint">none before</span>`;
  const growth = value / previous - 1;
  return toArrow(growth, `${Math.abs(100 * growth).toFixed(1)}\u00a0%`, 'good');
}

/** @param effect whether growth is good or bad, which determines the colour */
function toArrow(growth: number, text: string, effect: 'good' | 'bad'): Markup {
  if (Math.abs(growth) < 0.0005) return html`<span class="faint">unchanged</span>`;
  const isUp = growth > 0;
  return html`<span class="${isUp === (effect === 'good') ? 'up' : 'down'}"><span class="visually-hidden">${isUp ? 'up' : 'down'}</span><span aria-hidden="true">${isUp ? '▲' : '▼'}</span> ${text}</span>`;
}

function toChart({ overview: { accepted, rejected }, search, range: { rowS } }: View): HtmlValue {
  const { sinceS, untilS, stepS } = search;
  const values = [accepted, rejected].map((points) => new Map(points.map(({ atS, value }) => [atS, value])));
  const times = Array.from({ length: Math.ceil((untilS - sinceS) / stepS) }, (_, index) => sinceS + index * stepS);
  // The last interval has not finished.
  const minutesOf = (atS: number) => (Math.min(atS + stepS, untilS) - atS) / MINUTE_S;
  const rates = values.map((of) => times.map((atS) => Number(((of.get(atS) ?? 0) / minutesOf(atS)).toFixed(2))));
  const rows = [...Map.groupBy(times, (atS) => atS - (atS % rowS))].map(([atS, at]) => [
    time(1000 * atS),
    ...values.map((of) => number(at.reduce((total, each) => total + (of.get(each) ?? 0), 0))),
  ]);
  const headers = ['From', { text: 'Messages', align: 'right' }, { text: 'Recorded errors', align: 'right' }] as const;
  const series = [
    ['accepted per minute', 'line', 'accent'],
    ['errors per minute', 'bars', 'red'],
  ] as const;
  return html`${chart('Messages per minute', series, [times, ...rates])}
<details class="numbers"><summary>View as table</summary>${table('Messages and recorded errors', headers, rows.toReversed())}</details>`;
}

const ROWS_MAX = 6;
const toTop = (lines: readonly OverviewLine[]) => lines.filter(({ value }) => value > 0).slice(0, ROWS_MAX);

function toEvents({ events, eventPlayers }: Overview): HtmlValue {
  if (events.length === 0) return html`<p class="muted">No messages in this time range.</p>`;
  const most = events[0]?.value ?? 0;
  const rows = toTop(events).map((event) => {
    const { name, value } = event;
    const players = eventPlayers.get(name);
    const bar = html`<svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true"><rect width="${Math.round((100 * value) / most)}" height="1"/></svg>`;
    const shown = html`<span class="share">${bar}<span>${name || 'without a name'}</span></span>`;
    return [shown, number(value), players === undefined ? '–' : number(players), toChange(event)];
  });
  const headers = ['Event', ...['Count', 'Players', 'Change'].map((text) => ({ text, align: 'right' as const }))];
  return table('Top events', headers, rows);
}

function toClients({ clients, causes }: Overview): HtmlValue {
  const { value: total } = totalOf(clients);
  const nameOf = ({ library, libraryVersion }: OverviewLine) => `${library || 'without a library'} ${libraryVersion}`;
  const mark = html` ${status('bad', html`<span class="visually-hidden">has rejections</span>`)}`;
  const rejected = new Set(causes.filter(({ value }) => value > 0).map(nameOf));
  const rows = toTop(clients).map((client) => [
    html`<bdi>${nameOf(client)}</bdi>${rejected.has(nameOf(client)) ? mark : ''}`,
    percentage(client.value, total),
  ]);
  return rows.length === 0
    ? html`<p class="muted">Client versions appear with their messages.</p>`
    : table('Clients', ['Client', { text: 'Share', align: 'right' }], rows);
}

function toWork(visit: Visit, { overview, deadLetters }: View): HtmlValue {
  const link = (page: string, text: string) => html`<a href="${pathInEnvironment(visit, page)}">${text}</a>`;
  const count = number(deadLetters?.byEnvironment.get(scopeOf(visit).environment.id) ?? 0);
  const rows = [
    [link('erasures', 'Erasures in progress'), number(overview.openErasures)],
    [link('mints', 'Mints pending'), number(overview.pendingMints)],
    ['Dead letters', deadLetters === null ? 'not available' : deadLetters.isComplete ? count : `at least ${count}`],
  ];
  return table('Open work', ['Work', { text: 'Open', align: 'right' }], rows);
}
