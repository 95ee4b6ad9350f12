/** Shows rejected messages by code, field and client, over time, and by trace id. */
import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { choice, emptyState, field, number, table, time } from '../../frame/components.ts';
import { CSV_TYPE, toCsvLine, toIso } from '../../frame/csv.ts';
import type { PageResponse, PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import type { Rejection, RejectionCount, RejectionStep } from '../../reads/index.ts';
import type { PageParts } from '../index.ts';

type Parts = Pick<PageParts, 'reads' | 'frame' | 'writeAudit'>;

const HOUR_MS = 3_600_000;

/** Time ranges in hours, and the interval that each bar of the chart covers. */
const RANGES = [
  { value: '1', text: 'the last hour', stepS: 120 },
  { value: '24', text: 'the last day', stepS: 3600 },
  { value: '168', text: 'the last week', stepS: 6 * 3600 },
  { value: '2160', text: 'the last 90 days', stepS: 2 * 86_400 },
] as const;
const DEFAULT_RANGE = RANGES[1];
const TRACE_ID = /^[0-9a-f]{32}$/;

export function createRejectionsPage({ reads, frame, writeAudit }: Parts): PortalPage {
  return {
    path: '/projects/:project/environments/:environment/rejections',
    access: 'rejections.read',
    show: async (visit) => {
      const { environment } = scopeOf(visit);
      const { query, signal } = visit;
      const { value: hours, text, stepS } = RANGES.find(({ value }) => value === query.get('hours')) ?? DEFAULT_RANGE;
      const untilMs = frame.wallClockMs();
      const range = { sinceMs: untilMs - Number(hours) * HOUR_MS, untilMs };
      const filter = { code: query.get('code') ?? '', field: query.get('field') ?? '' };
      const search = { environmentId: environment.id, ...range, ...filter };
      if (query.get('as') === 'csv') {
        await writeAudit(visit, { action: 'rejections.save', object: environment.id, detail: { hours } });
        return toFile(environment.id, await reads.rejections(search, { signal }));
      }
      const traceId = (query.get('trace') ?? '').trim().toLowerCase();
      const [counts, steps, traceRejections] = await Promise.all([
        reads.rejections(search, { signal }),
        reads.rejectionSteps({ ...search, stepS }, { signal }),
        TRACE_ID.test(traceId) ? reads.rejectionsOfTrace({ environmentId: environment.id, traceId }, { signal }) : null,
      ]);
      const content = html`${toFilter(visit, { hours, ...filter })}
${
  counts.length === 0
    ? toEmpty(text)
    : html`${toChart(steps, { ...range, stepS })}${toCountTable(visit, counts, hours)}
<p>${toLink(visit, { hours, ...filter, as: 'csv' }, 'Export as CSV')}</p>`
}
${toTraceSection(visit, traceId, traceRejections)}`;
      return { kind: 'page', title: `Rejections in ${environment.name}`, content };
    },
  };
}

const FILE_COLUMNS = ['code', 'field', 'library', 'version', 'surface', 'errors', 'last', 'trace'];

function toFile(environmentId: string, counts: readonly RejectionCount[]): PageResponse {
  const lines = counts.map(({ lastMs, lastTraceId, ...each }) => {
    const { code, field, library, libraryVersion, surface, errors } = each;
    return [code, field, library, libraryVersion, surface, errors, toIso(lastMs), lastTraceId];
  });
  const text = [FILE_COLUMNS, ...lines].map(toCsvLine).join('');
  return { kind: 'file', name: `rejections-${environmentId}.csv`, type: CSV_TYPE, text };
}

function toFilter({ path }: Visit, filter: { hours: string; code: string; field: string }): Markup {
  return html`<p>See which messages the gateways rejected and which clients sent them. Under load, the gateways record only a sample of the errors.</p>
<form class="form filter" method="get" action="${path}">
${choice({ name: 'hours', label: 'Time range', value: filter.hours, choices: RANGES })}
${field({ name: 'code', label: 'Code', value: filter.code, maxLength: 64 })}
${field({ name: 'field', label: 'Field', value: filter.field, maxLength: 128 })}
<button class="outline">Filter</button>
</form>`;
}

const toEmpty = (range: string) =>
  emptyState(
    'No rejections',
    html`<p>No matching messages were rejected in ${range}. To find out why a message is missing, search below for the trace id from the gateway's response.</p>`,
  );

function toLink({ path }: Visit, filter: Readonly<Record<string, string>>, text: string): Markup {
  return html`<a href="${`${path}?${new URLSearchParams(filter)}`}">${text}</a>`;
}

function toCountTable(visit: Visit, counts: readonly RejectionCount[], hours: string): Markup {
  const rows = counts.map((each): readonly HtmlValue[] => [
    toLink(visit, { hours, code: each.code }, each.code),
    toLink(visit, { hours, code: each.code, field: each.field }, each.field || '–'),
    [each.library, each.libraryVersion].filter((text) => text !== '').join(' ') || '–',
    each.surface || '–',
    number(each.errors),
    time(each.lastMs),
    toLink(visit, { hours, trace: each.lastTraceId }, each.lastTraceId.slice(0, 8)),
  ]);
  const columns = ['Code', 'Field', 'Library', 'Surface', 'Errors', 'Last', 'Trace'];
  return html`<h2>By code, field and client</h2>${table('Rejections by code, field and client', columns, rows)}`;
}

function toTraceSection({ path }: Visit, trace: string, found: readonly Rejection[] | null): Markup {
  const rows = (found ?? []).map((each): readonly HtmlValue[] => [
    each.code,
    each.field,
    `${each.library} ${each.libraryVersion}`.trim(),
    each.surface,
    time(each.receivedMs),
  ]);
  const columns = ['Code', 'Field', 'Library', 'Surface', 'Received'];
  const emptyText =
    found === null
      ? html`<p class="message failed">Enter a trace id with 32 hexadecimal digits. Every gateway response contains a trace id.</p>`
      : html`<p>No rejections are stored for this request. They may be missing from the sample or older than 90 days.</p>`;
  return html`<h2>By trace id</h2>
<form class="form filter" method="get" action="${path}">
${field({ name: 'trace', label: 'Trace id', value: trace, maxLength: 64 })}<button class="outline">Search</button>
</form>
${trace === '' ? '' : rows.length === 0 ? emptyText : table('Rejections for this trace id', columns, rows)}`;
}

/** In SVG units. The style sheet defines the displayed size. */
const WIDTH = 600;
const HEIGHT = 120;
const BAR_HEIGHT_MIN = 2;
const GAP_FRACTION = 0.2;

interface ChartRange {
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly stepS: number;
}

/** Draws one bar per interval, with a tooltip that shows the time and the number of errors. */
function toChart(steps: readonly RejectionStep[], { sinceMs, untilMs, stepS }: ChartRange): Markup {
  const stepMs = stepS * 1000;
  const first = Math.floor(sinceMs / stepMs) * stepMs;
  const count = Math.max(1, Math.ceil((untilMs - first) / stepMs));
  const errors = new Map<number, number>();
  for (const step of steps) errors.set(step.stepMs, (errors.get(step.stepMs) ?? 0) + step.errors);
  const errorsMax = [...errors.values()].reduce((max, each) => Math.max(max, each), 1);
  const width = WIDTH / count;
  const bars = [...errors].map(([at, value]) => {
    const height = Math.max(BAR_HEIGHT_MIN, (value / errorsMax) * HEIGHT);
    const x = ((at - first) / stepMs + GAP_FRACTION / 2) * width;
    const tooltip = `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC: ${number(value)}`;
    return html`<rect x="${round(x)}" y="${round(HEIGHT - height)}" width="${round(width * (1 - GAP_FRACTION))}" height="${round(height)}"><title>${tooltip}</title></rect>`;
  });
  const label = `Errors over time, at most ${number(errorsMax)} in any ${toStepText(stepS)} interval`;
  return html`<svg class="chart" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${label}"><rect class="ground" x="0" y="0" width="${WIDTH}" height="${HEIGHT}"></rect>${bars}</svg>
<p class="hint">${label}.</p>`;
}

const round = (value: number) => String(Math.round(value * 100) / 100);

function toStepText(stepS: number): string {
  if (stepS < 3600) return `${stepS / 60}-minute`;
  return stepS < 86_400 ? `${stepS / 3600}-hour` : `${stepS / 86_400}-day`;
}
