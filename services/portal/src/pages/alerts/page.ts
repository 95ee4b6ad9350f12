import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import {
  ALERT_BOUNDS,
  type Alert,
  type AlertKind,
  type FiguresParts,
  type FoundAlerts,
  findAlerts,
  readFigures,
} from '../../alerts/find-alerts.ts';
import { emptyState, number, share, span, table } from '../../frame/components.ts';
import { environmentPath } from '../../frame/layout.ts';
import type { PortalPage, Visit } from '../../frame/page.ts';
import { projectOf } from '../../frame/scope.ts';

export function createAlertsPage(parts: FiguresParts): PortalPage {
  return {
    path: '/projects/:project/alerts',
    access: 'project.read',
    show: async (visit) => {
      const project = projectOf(visit);
      const found = findAlerts(project, await readFigures(parts, [project]));
      return { kind: 'page', title: `Alerts of ${project.name}`, content: toContent(visit, found) };
    },
  };
}

function toContent(visit: Visit, { alerts, unknown }: FoundAlerts): Markup {
  const missing =
    unknown.length === 0
      ? ''
      : html`<p class="message failed" role="alert">Not available now: ${unknown.map((kind) => NAMES[kind]).join(', ')}. Alerts of these kinds may be missing.</p>`;
  const rows = alerts.map((alert): readonly HtmlValue[] => [
    NAMES[alert.kind],
    alert.environment ?? 'all',
    toFigures(alert),
    toRemedy(visit, alert),
  ]);
  const nothing = html`<p>Alerts appear here when a value is out of bounds.${unknown.length === 0 ? ' All values are within their bounds.' : ''}</p>`;
  return html`${missing}
${rows.length === 0 ? emptyState('No alerts', nothing) : table('Alerts', ['What', 'Environment', 'Now', 'What to do'], rows)}
<h2>What is checked</h2>
<ul>
<li>Rejections: more than ${share(ALERT_BOUNDS.rejectedShare, 1)} of at least ${number(ALERT_BOUNDS.messagesMin)} messages in the last hour.</li>
<li>Visible delay: the oldest message on the log has waited more than ${span(ALERT_BOUNDS.delayMs)} to be stored. One writer stores for all projects.</li>
<li>Dead letters: any that is open.</li>
<li>Unused key: a secret key that was not used for ${span(ALERT_BOUNDS.unusedMs)}.</li>
<li>Refused key: at least ${number(ALERT_BOUNDS.refusals)} refused requests in the last hour, and ${share(ALERT_BOUNDS.refusedShare, 1)} of the key's requests.</li>
</ul>
<p class="quiet">Alerts are computed when you open this page. No notifications are sent and no history is kept.</p>`;
}

const NAMES: Readonly<Record<AlertKind, string>> = {
  rejections: 'Rejections',
  delay: 'Visible delay',
  'dead letters': 'Dead letters',
  'unused key': 'Unused key',
  'refused key': 'Refused key',
};

function toFigures({ kind, value, total, name }: Alert): HtmlValue {
  if (kind === 'rejections') return `${share(value, total)} of ${number(total, 'messages')}`;
  if (kind === 'delay') return `${span(value)}; ${number(total)} waiting`;
  if (kind === 'dead letters') return number(value, value === 1 ? 'dead letter' : 'dead letters');
  if (kind === 'unused key') return `${name}: for ${span(value)}`;
  return `${name}: ${number(value)} of ${number(total, 'requests')} refused`;
}

function toRemedy({ project }: Visit, { kind, environment }: Alert): HtmlValue {
  if (kind === 'dead letters') return html`An operator runs <code>npm run dead-letters -- list</code>`;
  if (kind === 'delay') return html`An operator runs <code>npm run status</code>`;
  if (environment === null) return '–';
  const page = kind === 'rejections' ? 'rejections' : 'keys';
  const texts = {
    rejections: 'See which messages and clients',
    'unused key': 'Revoke the key if it is not needed',
    'refused key': 'See the reason',
  };
  return html`<a href="${environmentPath(project?.id ?? '', environment)}/${page}">${texts[kind]}</a>`;
}
