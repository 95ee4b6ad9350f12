/** The history of the alerts of a project, from the audit log. */
import { html, type Markup } from '@playline/api-docs';
import { panel, status, table, time } from '../../frame/components.ts';
import type { Visit } from '../../frame/page.ts';
import { projectOf } from '../../frame/scope.ts';
import type { AuditLine } from '../../reads/index.ts';
import { readPosition } from '../audit/page.ts';
import type { PageParts } from '../index.ts';

export type History = readonly AuditLine[];

const PAGE_LINES = 25;
/** The page Audit shows entries of two years. */
const HISTORY_MS = 90 * 86_400_000;
const CLOCK_SKEW_MS = 60_000;

export function readHistory({ reads, frame }: Pick<PageParts, 'reads' | 'frame'>, visit: Visit): Promise<History> {
  const untilMs = frame.wallClockMs() + CLOCK_SKEW_MS;
  const range = { projectId: projectOf(visit).id, sinceMs: untilMs - HISTORY_MS, untilMs };
  const page = { actionPrefix: 'alert.', entriesMax: PAGE_LINES + 1, before: readPosition(visit) };
  return reads.audit({ ...range, ...page }, { signal: visit.signal });
}

export interface HistoryView {
  readonly visit: Visit;
  /** Null if it cannot be read. */
  readonly history: History | null;
  readonly toName: (accountId: string) => string;
}

const ENTRIES: Readonly<Record<string, Markup>> = {
  'alert.fired': status('bad', 'fired'),
  'alert.cleared': status('ok', 'cleared'),
  'alert.acknowledged': status('wait', 'acknowledged'),
  'alert.delivery-failed': status('warn', 'delivery failed'),
  'alert.test': status('wait', 'test sent'),
};

export function toHistory({ visit, history, toName }: HistoryView): Markup {
  if (history === null) return panel('History', html`<p>The history is currently not available.</p>`);
  const none = html`<p class="muted">Alerts appear here when they fire, and remain for 90 days.</p>`;
  if (history.length === 0) return panel('History', none);
  const project = projectOf(visit);
  const page = history.slice(0, PAGE_LINES);
  const rows = page.map(({ happenedMs, action, object, environmentId, detail, actor }) => {
    const { environment = '', text, channel, reason } = parseDetail(detail);
    const id = environmentId || environment;
    const name = project.environments.find((each) => each.id === id)?.name ?? id;
    const value = text ?? (reason === undefined ? '–' : `${channel ?? ''}: ${reason}`);
    const rule = object === project.id ? '–' : object;
    return [time(happenedMs), ENTRIES[action] ?? action, rule, name || '–', value, actor === '' ? '–' : toName(actor)];
  });
  const { happenedMs, entryId } = page.at(-1)!;
  const older = new URLSearchParams({ before: String(happenedMs), entry: entryId });
  const link = html`<p><a class="button outline" href="${visit.path}?${older.toString()}">Older entries</a></p>`;
  const headers = ['Time', 'Event', 'Alert', 'Environment', 'Value', 'Author'];
  return panel('History', html`${table('History', headers, rows)}${history.length > page.length ? link : ''}`);
}

type Detail = Readonly<Partial<Record<'environment' | 'text' | 'channel' | 'reason', string>>>;

function parseDetail(detail: string): Detail {
  try {
    return JSON.parse(detail) as Detail;
  } catch {
    return {};
  }
}
