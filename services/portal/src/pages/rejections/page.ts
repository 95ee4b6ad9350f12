import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { choice, emptyState, field, number, table, time } from '../../frame/components.ts';
import { CSV_TYPE, toCsvLine } from '../../frame/csv.ts';
import type { Answer, PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import type { Rejection, RejectionCount, RejectionStep } from '../../reads/index.ts';
import type { PagesParts } from '../index.ts';

const HOUR_MS = 3_600_000;

/** Spans that can be looked at, and the steps of their bars. */
const SPANS = [
  { value: '1', text: 'the last hour', stepS: 120 },
  { value: '24', text: 'the last day', stepS: 3600 },
  { value: '168', text: 'the last week', stepS: 6 * 3600 },
  { value: '2160', text: 'the last 90 days', stepS: 2 * 86_400 },
] as const;
const DEFAULT_SPAN = SPANS[1];
/** As traces are: 32 hexadecimal digits. */
const TRACE = /^[0-9a-f]{32}$/;

/** Why messages of an environment were rejected: by code, field and client, over time, and of one request. */
export function createRejectionsPage({
  reads,
  frame,
  writeAudit: note,
}: Pick<PagesParts, 'reads' | 'frame' | 'writeAudit'>): PortalPage {
  return {
    path: '/projects/:project/environments/:environment/rejections',
    access: 'rejections.read',
    show: async (visit) => {
      const { environment } = scopeOf(visit);
      const { query, signal } = visit;
      const span = SPANS.find(({ value }) => value === query.get('hours')) ?? DEFAULT_SPAN;
      const untilMs = frame.wallClockMs();
      const times = { sinceMs: untilMs - Number(span.value) * HOUR_MS, untilMs };
      const [code, name] = [query.get('code') ?? '', query.get('field') ?? ''];
      const asked = { environmentId: environment.id, ...times, code, field: name };
      const trace = (query.get('trace') ?? '').trim().toLowerCase();
      if (query.get('as') === 'csv') {
        await note(visit, { action: 'rejections.save', object: environment.id, detail: { hours: span.value } });
        return toFile(environment.id, await reads.rejections(asked, { signal }));
      }
      const ofRequest = { environmentId: environment.id, traceId: trace };
      const [counts, steps, ofTrace] = await Promise.all([
        reads.rejections(asked, { signal }),
        reads.rejectionSteps({ ...asked, stepS: span.stepS }, { signal }),
        TRACE.test(trace) ? reads.rejectionsOfTrace(ofRequest, { signal }) : null,
      ]);
      const content = html`${toFilter(visit, { hours: span.value, code, name })}
${
  counts.length === 0
    ? toEmpty(span.text)
    : html`${toChart(steps, { ...times, stepS: span.stepS })}${toCounts(visit, counts, span.value)}
<p>${toLink(visit, { hours: span.value, code, field: name, as: 'csv' }, 'Export as CSV')}</p>`
}
${toTrace(visit, trace, ofTrace)}`;
      return { kind: 'page', title: `Rejections of ${environment.name}`, content };
    },
  };
}

const FILE_COLUMNS = ['code', 'field', 'library', 'version', 'surface', 'errors', 'last', 'trace'];

/** What the table shows, without rounding and shortening. */
function toFile(environmentId: string, counts: readonly RejectionCount[]): Answer {
  const lines = counts.map((each) => [
    ...[each.code, each.field, each.library, each.libraryVersion, each.surface, each.errors],
    ...[new Date(each.lastMs).toISOString(), each.lastTraceId],
  ]);
  const text = [FILE_COLUMNS, ...lines].map(toCsvLine).join('');
  return { kind: 'file', name: `rejections-${environmentId}.csv`, type: CSV_TYPE, text };
}

interface Filter {
  readonly hours: string;
  readonly code: string;
  readonly name: string;
}

function toFilter({ path }: Visit, { hours, code, name }: Filter): Markup {
  return html`<p>What the gateway refused, and which client sent it. A sample: under load it leaves errors out.</p>
<form class="form filter" method="get" action="${path}">
${choice({ name: 'hours', label: 'Span', value: hours, choices: SPANS })}
${field({ name: 'code', label: 'Code', value: code, charactersMax: 64 })}
${field({ name: 'field', label: 'Field', value: name, charactersMax: 128 })}
<button class="outline">Show</button>
</form>`;
}

const toEmpty = (span: string) =>
  emptyState(
    'Nothing was rejected',
    html`<p>No message of this environment was refused in ${span}. Whoever misses one looks for the trace id of its answer below.</p>`,
  );

/** A link to the same page, narrowed; words of clients stand in it encoded. */
function toLink({ path }: Visit, filter: Readonly<Record<string, string>>, text: string): Markup {
  return html`<a href="${`${path}?${new URLSearchParams(filter)}`}">${text}</a>`;
}

function toCounts(visit: Visit, counts: readonly RejectionCount[], hours: string): Markup {
  const rows = counts.map((each): readonly HtmlValue[] => [
    toLink(visit, { hours, code: each.code }, each.code),
    toLink(visit, { hours, code: each.code, field: each.field }, each.field === '' ? '–' : each.field),
    [each.library, each.libraryVersion].filter((text) => text !== '').join(' ') || '–',
    each.surface === '' ? '–' : each.surface,
    number(each.errors),
    time(each.lastMs),
    toLink(visit, { hours, trace: each.lastTraceId }, each.lastTraceId.slice(0, 8)),
  ]);
  const heads = ['Code', 'Field', 'Library', 'Surface', 'Errors', 'Last', 'Trace'];
  return html`<h2>By code, field and client</h2>${table('Rejections by code, field and client', heads, rows)}`;
}

function toTrace({ path }: Visit, trace: string, found: readonly Rejection[] | null): Markup {
  const rows = (found ?? []).map((each): readonly HtmlValue[] => [
    ...[each.code, each.field, `${each.library} ${each.libraryVersion}`.trim(), each.surface],
    time(each.receivedMs),
  ]);
  const none =
    found === null
      ? html`<p class="message failed">A trace id has 32 hexadecimal digits; it stands in every answer of the gateway.</p>`
      : html`<p>Nothing was rejected in that request, or it was left out of the sample, or it is older than 90 days.</p>`;
  return html`<h2>By trace id</h2>
<form class="form filter" method="get" action="${path}">
${field({ name: 'trace', label: 'Trace id', value: trace, charactersMax: 64 })}<button class="outline">Look for it</button>
</form>
${trace === '' ? '' : rows.length === 0 ? none : table('Rejections of the request', ['Code', 'Field', 'Library', 'Surface', 'Received'], rows)}`;
}

/** In units of the drawing; the style sheet says how large it is shown. */
const WIDTH = 600;
const HEIGHT = 120;
/** The gap between bars, as a part of a step. */
const GAP = 0.2;
/** A bar of few errors is still this high, so that it can be seen. */
const BAR_MIN = 2;

interface ChartSpan {
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly stepS: number;
}

/** Errors over time as bars, one a step of the span; each says its time and number when it is pointed at. */
function toChart(steps: readonly RejectionStep[], { sinceMs, untilMs, stepS }: ChartSpan): Markup {
  const stepMs = stepS * 1000;
  const first = Math.floor(sinceMs / stepMs) * stepMs;
  const count = Math.max(1, Math.ceil((untilMs - first) / stepMs));
  const errors = new Map<number, number>();
  for (const step of steps) errors.set(step.stepMs, (errors.get(step.stepMs) ?? 0) + step.errors);
  const most = [...errors.values()].reduce((most, each) => Math.max(most, each), 1);
  const width = WIDTH / count;
  const bars = [...errors].map(([at, value]) => {
    const height = Math.max(BAR_MIN, (value / most) * HEIGHT);
    const x = ((at - first) / stepMs + GAP / 2) * width;
    const says = `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC: ${number(value)}`;
    return html`<rect x="${round(x)}" y="${round(HEIGHT - height)}" width="${round(width * (1 - GAP))}" height="${round(height)}"><title>${says}</title></rect>`;
  });
  const label = `Errors over time, at most ${number(most)} in a step of ${toStepText(stepS)}`;
  return html`<svg class="chart" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${label}"><rect class="ground" x="0" y="0" width="${WIDTH}" height="${HEIGHT}"></rect>${bars}</svg>
<p class="hint">${label}.</p>`;
}

const round = (value: number) => String(Math.round(value * 100) / 100);

function toStepText(stepS: number): string {
  if (stepS < 3600) return `${stepS / 60} minutes`;
  return stepS < 86_400 ? `${stepS / 3600} hours` : `${stepS / 86_400} days`;
}
