/** Shows the oldest open erasure of a project, and explains what to do if it is late. */
import type { ProjectRecord } from '@playline/access-keys';
import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { duration, number } from '../../frame/components.ts';
import { environmentPath } from '../../frame/layout.ts';
import type { Visit } from '../../frame/page.ts';
import type { OpenErasures } from '../../reads/index.ts';

const LATE_MS = 5 * 60_000;

export interface OldestErasures {
  readonly open: readonly OpenErasures[] | null;
  readonly nowMs: number;
}

/** Returns a link with the age of the oldest open erasure in these environments. */
export function toOldestErasure(
  { open, nowMs }: OldestErasures,
  project: ProjectRecord,
  environments: ProjectRecord['environments'] = project.environments,
): HtmlValue {
  if (open === null) return 'not available';
  const found = open.find(({ environmentId }) => environments.some(({ id }) => id === environmentId));
  const environment = environments.find(({ id }) => id === found?.environmentId);
  if (found === undefined || environment === undefined) return 'none';
  const ageMs = nowMs - found.oldestMs;
  const location = environments.length === 1 ? '' : ` in ${environment.name}`;
  const total = found.count === 1 ? '' : `, ${number(found.count)} open`;
  const late = ageMs > LATE_MS ? html` <span class="tag bad">late</span>` : '';
  return html`<a href="${environmentPath(project.id, environment.name)}/erasures">${duration(ageMs)}${location}</a>${total}${late}`;
}

/** Returns a warning about the oldest open erasure if it is late; otherwise empty. */
export function toErasureRemedy({ open, nowMs }: OldestErasures, visit: Visit): Markup {
  const [oldest] = open ?? [];
  if (oldest === undefined || nowMs - oldest.oldestMs <= LATE_MS) return html``;
  const remedy = visit.can('accounts.read')
    ? html`Run <code>npm run status</code> to see why the eraser makes no progress, and <code>npm run erasures -- show ${oldest.oldestId}</code> to see the state of this erasure.`
    : html`Report the erasure id to the operator of this instance.`;
  return html`<p class="message failed">An erasure has been open for ${duration(nowMs - oldest.oldestMs)}. Erasures usually take less than a minute. ${remedy}</p>`;
}
