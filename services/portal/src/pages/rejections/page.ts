/** Shows why messages are rejected: each cause with its client, trend, rule and fix, and the errors of one request. */

import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { REJECTION_CODES } from '@playline/contracts';
import { explainRejection } from '../../explain-rejection.ts';
import {
  chart,
  choice,
  emptyState,
  field,
  filterBar,
  hidden,
  keyValues,
  number,
  panel,
  percentage,
  shortened,
  table,
  tag,
  time,
  withAllOption,
} from '../../frame/components.ts';
import { CSV_TYPE, toCsvLine, toIso } from '../../frame/csv.ts';
import type { PageResponse, PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import { rangeOf, rangeSegments, rangesWith } from '../../frame/time-range.ts';
import { hrefWith } from '../../href.ts';
import type { Rejection, RejectionCause, RejectionCauses } from '../../reads/index.ts';
import type { PageParts } from '../index.ts';

type Parts = Pick<PageParts, 'reads' | 'frame' | 'writeAudit'>;

/** The length of the steps of a trend. */
const RANGES = rangesWith({
  '1h': { stepS: 120, step: '2 minutes' },
  '24h': { stepS: 3600, step: 'one hour' },
  '7d': { stepS: 6 * 3600, step: '6 hours' },
  '30d': { stepS: 86_400, step: 'one day' },
  '90d': { stepS: 3 * 86_400, step: '3 days' },
});
type Range = (typeof RANGES)[number];
const TRACE_ID = /^[0-9a-f]{32}$/;

export function createRejectionsPage({ reads, frame, writeAudit }: Parts): PortalPage {
  return {
    path: '/projects/:project/environments/:environment/rejections',
    access: 'rejections.read',
    show: async (visit) => {
      const { environment } = scopeOf(visit);
      const { query, signal } = visit;
      const range = rangeOf(query, RANGES);
      const untilMs = frame.wallClockMs();
      const filter = { code: query.get('code') ?? '', field: query.get('field') ?? '' };
      const search = { ...filter, environmentId: environment.id, stepS: range.stepS, untilMs };
      const sinceMs = untilMs - range.ms;
      const found = await reads.rejections({ ...search, sinceMs }, { signal });
      if (query.get('as') === 'csv') {
        await writeAudit(visit, { action: 'rejections.save', object: environment.id, detail: { range: range.name } });
        return toFile(environment.id, found.causes);
      }
      const trace = (query.get('trace') ?? '').trim().toLowerCase();
      const content = html`${filterBar(
        visit,
        html`${hidden('range', range.name)}
${choice({ name: 'code', label: 'Code', value: filter.code, choices: withAllOption(REJECTION_CODES) })}
${field({ name: 'field', label: 'Field', value: filter.field, maxLength: 128 })}
${field({ name: 'trace', label: 'Trace id of a response', value: trace, maxLength: 64 })}`,
      )}
${trace === '' ? '' : panel('Errors of one request', await toTrace(reads, visit, trace))}
${found.causes.length === 0 ? toEmpty(range) : toCauses({ visit, range, sinceMs }, found)}`;
      const actions = rangeSegments(visit, RANGES, range);
      return { kind: 'page', title: 'Rejections', content, actions, scripts: ['chart.js'] };
    },
  };
}

const FILE_COLUMNS = 'code|field|library|version|surfaces|errors|requests|first|last|traces'.split('|');

function toFile(environmentId: string, causes: readonly RejectionCause[]): PageResponse {
  const lines = causes.map(({ surfaces, traceIds, firstMs, lastMs, ...each }) => {
    const { code, field: name, library, libraryVersion, errors, requests } = each;
    const times = [toIso(firstMs), toIso(lastMs)];
    return [code, name, library, libraryVersion, surfaces.join(' '), errors, requests, ...times, traceIds.join(' ')];
  });
  const text = [FILE_COLUMNS, ...lines].map(toCsvLine).join('');
  return { kind: 'file', name: `rejections-${environmentId}.csv`, type: CSV_TYPE, text };
}

const toEmpty = ({ text }: Range) =>
  emptyState(
    'No rejections',
    html`<p>No matching messages were rejected in the last ${text}. If a message breaks a rule, its code, field and client appear here within seconds. To find out why a message is missing, enter the trace id of the gateway’s response.</p>`,
    { path: '/docs/messages', text: 'Rules of a message' },
  );

interface CauseScope {
  readonly visit: Visit;
  readonly range: Range;
  readonly sinceMs: number;
}

function toCauses(scope: CauseScope, { causes, totalCauses, totalErrors, totalTrend }: RejectionCauses): Markup {
  const { visit, range } = scope;
  const label = `Errors in the last ${range.text}, at most ${number(maxOf(totalTrend))} in ${range.step}`;
  const count =
    totalCauses > causes.length ? `top ${number(causes.length)} of ${number(totalCauses)}` : number(totalCauses);
  const rows = causes.map((cause) => ({
    cells: [
      html`<span title="${explainRejection(cause).sentence}">${explainRejection(cause).sentence}</span>`,
      tag(cause.code),
      toClient(cause),
      number(cause.errors),
      percentage(cause.errors, totalErrors),
      toBars(scope, cause.trend, `${number(cause.errors)} errors in the last ${range.text}`),
    ],
    detail: toDetail(scope, cause),
  }));
  const right = (text: string) => ({ text, align: 'right' as const });
  const columns = ['Rule', 'Code', 'Client', right('Errors'), right('Share'), 'Trend'];
  const file = html`<a class="btn" href="${hrefWith(visit, { as: 'csv', trace: '' })}">Export as CSV</a>`;
  return html`${panel(label, toChart(scope, totalTrend), { note: 'Under load, gateways record only a sample.' })}
${panel('Causes', table('Causes of rejections, most frequent first', columns, rows), { note: `${count} by field and client`, actions: file })}`;
}

const toClient = ({ library, libraryVersion }: Pick<Rejection, 'library' | 'libraryVersion'>) =>
  `${library} ${libraryVersion}`.trim() || 'unknown';

function toDetail({ visit }: CauseScope, cause: RejectionCause): Markup {
  const { code, field: name, requests, surfaces, firstMs, lastMs, traceIds } = cause;
  const { sentence, fix, docs } = explainRejection(cause);
  const rows: [string, HtmlValue][] = [
    ['Rule', `${sentence}.`],
    ['Fix', fix || 'See the documentation.'],
    ['Field', html`<code>${name}</code>`],
    ['Surfaces', surfaces.filter((each) => each !== '').join(', ') || 'unknown'],
    ['Requests', number(requests)],
    ['First and last', html`${time(firstMs)} – ${time(lastMs)}`],
    ['Sample requests', traceIds.filter((id) => id !== '').map((id) => toTraceLink(visit, id))],
  ];
  return html`${keyValues(rows)}<p><a class="docs" href="${docs}">Read about ${code}</a></p>`;
}

const toTraceLink = (visit: Visit, trace: string) =>
  html`${shortened(trace, 'the trace id')} <a href="${hrefWith(visit, { trace })}">Show its errors</a><br>`;

async function toTrace(reads: Parts['reads'], visit: Visit, traceId: string): Promise<HtmlValue> {
  if (!TRACE_ID.test(traceId))
    return html`<p class="message failed" role="alert">Enter a trace id with 32 hexadecimal digits. Every gateway response contains a trace id.</p>`;
  const environmentId = scopeOf(visit).environment.id;
  const found = await reads.rejectionsOfTrace({ environmentId, traceId }, { signal: visit.signal });
  if (found.length === 0)
    return html`<p>No rejections are stored for this request. They may be missing from the sample or older than 90 days.</p>`;
  const rows = found.map((each) => [
    explainRejection(each).sentence,
    tag(each.code),
    toClient(each),
    each.surface || '–',
    time(each.receivedMs),
  ]);
  return table('Rejections for this trace id', ['Rule', 'Code', 'Client', 'Surface', 'Received'], rows);
}

/** In SVG units. The style sheet defines the displayed size. */
const [STEP_WIDTH, BAR_WIDTH, HEIGHT, BAR_HEIGHT_MIN] = [10, 8, 100, 3];

const timeOf = ({ range, sinceMs }: CauseScope, step: number) => sinceMs + step * range.stepS * 1000;

const stepsOf = ({ range }: CauseScope) => Math.ceil(range.ms / 1000 / range.stepS);

function toChart(scope: CauseScope, trend: ReadonlyMap<number, number>): Markup {
  const all = Array.from({ length: stepsOf(scope) }, (_, step) => step);
  const points = [all.map((step) => timeOf(scope, step) / 1000), all.map((step) => trend.get(step) ?? 0)];
  const steps = [...trend].toSorted(([a], [b]) => a - b);
  const rows = steps.map(([step, errors]) => [time(timeOf(scope, step)), number(errors)]);
  return html`${chart('Errors over time', [['errors', 'bars', 'red']], points)}
<details class="numbers"><summary>View as table</summary>${table('Errors over time', ['From', { text: 'Errors', align: 'right' }], rows)}</details>`;
}

const maxOf = (trend: ReadonlyMap<number, number>) => [...trend.values()].reduce((max, each) => Math.max(max, each), 1);

/** Draws one bar per step, with a tooltip that shows the time and the number of errors. */
function toBars(scope: CauseScope, trend: ReadonlyMap<number, number>, label: string): Markup {
  const errorsMax = maxOf(trend);
  const width = STEP_WIDTH * stepsOf(scope);
  const bars = [...trend].map(([step, errors]) => {
    const height = Math.max(BAR_HEIGHT_MIN, Math.round((errors / errorsMax) * HEIGHT));
    const tooltip = `${toIso(timeOf(scope, step)).slice(0, 16).replace('T', ' ')} UTC: ${number(errors)}`;
    return html`<rect x="${step * STEP_WIDTH}" y="${HEIGHT - height}" width="${BAR_WIDTH}" height="${height}"><title>${tooltip}</title></rect>`;
  });
  return html`<svg class="bars" viewBox="0 0 ${width} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${label}"><path d="M0 ${HEIGHT}h${width}"></path>${bars}</svg>`;
}
