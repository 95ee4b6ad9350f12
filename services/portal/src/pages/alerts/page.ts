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

/** What somebody should look at in a project, as it is now. */
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
      : html`<p class="message failed" role="alert">Cannot be told now: ${unknown.map((kind) => NAMES[kind]).join(', ')}. That nothing stands here of it means nothing.</p>`;
  const rows = alerts.map((alert): readonly HtmlValue[] => [
    NAMES[alert.kind],
    alert.environment ?? 'all',
    toFigures(alert),
    toRemedy(visit, alert),
  ]);
  const nothing = html`<p>Each is counted when this page is looked at.${unknown.length === 0 ? ' All is within its bounds.' : ''}</p>`;
  return html`${missing}
${rows.length === 0 ? emptyState('No alert', nothing) : table('Alerts', ['What', 'Environment', 'Now', 'What to do'], rows)}
<h2>What is looked at</h2>
<ul>
<li>Rejections: more than ${share(ALERT_BOUNDS.rejectedShare, 1)} of the messages of the last hour, where there were ${number(ALERT_BOUNDS.messagesMin)} at least.</li>
<li>Visible delay: the oldest message on the log has waited for more than ${span(ALERT_BOUNDS.delayMs)} to be stored. One writer stores for all projects.</li>
<li>Dead letters: any that is open.</li>
<li>Unused key: a secret key that was not used for ${span(ALERT_BOUNDS.unusedMs)}.</li>
<li>Refused key: ${number(ALERT_BOUNDS.refusals)} requests of the last hour or more, and ${share(ALERT_BOUNDS.refusedShare, 1)} of those under the key.</li>
</ul>
<p class="quiet">Nobody is written to, and nothing is kept: what was so an hour ago and is not any more stands nowhere here.</p>`;
}

const NAMES: Readonly<Record<AlertKind, string>> = {
  rejections: 'Rejections',
  delay: 'Visible delay',
  'dead letters': 'Dead letters',
  'unused key': 'Unused key',
  'refused key': 'Refused key',
};

function toFigures({ kind, figures: { value, of, name } }: Alert): HtmlValue {
  if (kind === 'rejections') return `${share(value, of)} of ${number(of, 'messages')}`;
  if (kind === 'delay') return `${span(value)}; ${number(of)} wait`;
  if (kind === 'dead letters') return number(value, value === 1 ? 'letter' : 'letters');
  if (kind === 'unused key') return `${name}: for ${span(value)}`;
  return `${name}: ${number(value)} of ${number(of, 'requests')} refused`;
}

function toRemedy({ project }: Visit, { kind, environment }: Alert): HtmlValue {
  if (kind === 'dead letters') return html`An operator looks: <code>npm run dead-letters -- list</code>`;
  if (kind === 'delay') return html`An operator looks: <code>npm run status</code>`;
  if (environment === null) return '–';
  const page = kind === 'rejections' ? 'rejections' : 'keys';
  const text =
    kind === 'rejections'
      ? 'See which, and by which client'
      : kind === 'unused key'
        ? 'Revoke it, if nobody needs it'
        : 'See why';
  return html`<a href="${environmentPath(project?.id ?? '', environment)}/${page}">${text}</a>`;
}
