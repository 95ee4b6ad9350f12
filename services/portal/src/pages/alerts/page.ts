import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import {
  ALERT_THRESHOLDS,
  type Alert,
  type AlertKind,
  type FoundAlerts,
  findAlerts,
  type MetricsParts,
  readMetrics,
} from '../../alerts/find-alerts.ts';
import { emptyState, panel, table } from '../../frame/components.ts';
import { duration, number, percentage } from '../../frame/format.ts';
import { environmentPath } from '../../frame/layout.ts';
import type { PortalPage, Visit } from '../../frame/page.ts';
import { projectOf } from '../../frame/scope.ts';

export function createAlertsPage(parts: MetricsParts): PortalPage {
  return {
    path: '/projects/:project/alerts',
    access: 'project.read',
    show: async (visit) => {
      const project = projectOf(visit);
      const found = findAlerts(project, await readMetrics(parts, [project]));
      return { kind: 'page', title: 'Alerts', content: toContent(visit, found) };
    },
  };
}

function toContent(visit: Visit, { alerts, unavailable }: FoundAlerts): Markup {
  const missing =
    unavailable.length === 0
      ? ''
      : html`<p class="message failed" role="alert">Currently unavailable: ${unavailable.map((kind) => ALERT_NAMES[kind]).join(', ')}. Alerts of these types may be missing.</p>`;
  const rows = alerts.map((alert): readonly HtmlValue[] => [
    ALERT_NAMES[alert.kind],
    alert.environment ?? 'all',
    toCurrentValue(alert),
    toRemedy(visit, alert),
  ]);
  const emptyText = html`<p>Alerts appear here when a value exceeds its threshold.${unavailable.length === 0 ? ' All values are below their thresholds.' : ''}</p>`;
  const docs = { path: '/docs/operate', text: 'How to operate Playline' } as const;
  return html`${missing}
${rows.length === 0 ? emptyState('No alerts', emptyText, docs) : table('Alerts', ['Alert', 'Environment', 'Current value', 'What to do'], rows)}
${panel('Checks', CHECKS, { note: 'Alerts are computed when you open this page. No notifications are sent and no history is kept.' })}`;
}

const { rejectedFraction, minMessages, delayMs, unusedMs, minRefusals, refusedFraction } = ALERT_THRESHOLDS;
const CHECKS = html`<dl class="kv">
<dt>Rejections</dt><dd>More than ${percentage(rejectedFraction, 1)} of messages were rejected in the last hour, out of at least ${number(minMessages)} messages.</dd>
<dt>Visible delay</dt><dd>The oldest unstored message on the log is more than ${duration(delayMs)} old. All projects share one event writer.</dd>
<dt>Dead letters</dt><dd>At least one dead letter is open.</dd>
<dt>Unused key</dt><dd>A secret key has not been used for ${duration(unusedMs)}.</dd>
<dt>Refused key</dt><dd>Gateways refused at least ${number(minRefusals)} of the key’s requests in the last hour, and at least ${percentage(refusedFraction, 1)} of its requests.</dd>
</dl>`;

const ALERT_NAMES: Readonly<Record<AlertKind, string>> = {
  rejections: 'Rejections',
  delay: 'Visible delay',
  'dead letters': 'Dead letters',
  'unused key': 'Unused key',
  'refused key': 'Refused key',
};

function toCurrentValue({ kind, value, total, name }: Alert): HtmlValue {
  if (kind === 'rejections') return `${percentage(value, total)} of ${number(total, 'messages')}`;
  if (kind === 'delay') return `${duration(value)}; ${number(total)} waiting`;
  if (kind === 'dead letters') return number(value, value === 1 ? 'dead letter' : 'dead letters');
  if (kind === 'unused key') return `${name}: unused for ${duration(value)}`;
  return `${name}: ${number(value)} of ${number(total, 'requests')} refused`;
}

function toRemedy({ project }: Visit, { kind, environment }: Alert): HtmlValue {
  if (kind === 'dead letters') return html`As an operator, run <code>npm run dead-letters -- list</code>`;
  if (kind === 'delay') return html`As an operator, run <code>npm run status</code>`;
  if (environment === null) return '–';
  const page = kind === 'rejections' ? 'rejections' : 'keys';
  const linkTexts = {
    rejections: 'View affected messages and clients',
    'unused key': 'Revoke the key if it is no longer needed',
    'refused key': 'View the reason',
  };
  return html`<a href="${environmentPath(project?.id ?? '', environment)}/${page}">${linkTexts[kind]}</a>`;
}
