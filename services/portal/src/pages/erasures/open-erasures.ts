/** The oldest open erasure of projects, and what to do when it is late. */
import type { ProjectRecord } from '@playline/access-keys';
import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { number, span } from '../../frame/components.ts';
import { environmentPath } from '../../frame/layout.ts';
import type { Visit } from '../../frame/page.ts';
import type { OpenErasures } from '../../reads/index.ts';

/** An erasure usually takes a minute. */
const LATE_MS = 5 * 60_000;

export interface OldestErasures {
  /** Null when they cannot be read now. */
  readonly open: readonly OpenErasures[] | null;
  readonly nowMs: number;
}

/** Age of the oldest erasure of these environments, as a link. */
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
  const where = environments.length === 1 ? '' : ` in ${environment.name}`;
  const others = found.count === 1 ? '' : `, ${number(found.count)} open`;
  const late = ageMs > LATE_MS ? html` <span class="tag bad">late</span>` : '';
  return html`<a href="${environmentPath(project.id, environment.name)}/erasures">${span(ageMs)}${where}</a>${others}${late}`;
}

/** Empty while no erasure is late. */
export function toErasureRemedy({ open, nowMs }: OldestErasures, visit: Visit): Markup {
  const [oldest] = open ?? [];
  if (oldest === undefined || nowMs - oldest.oldestMs <= LATE_MS) return html``;
  const remedy = visit.mayDo('accounts.read')
    ? html`Run <code>npm run status</code> to see why the eraser makes no progress, and <code>npm run erasures -- show ${oldest.oldestId}</code> for its state.`
    : html`Report its id to the operator of this instance.`;
  return html`<p class="message failed">An erasure has been open for ${span(nowMs - oldest.oldestMs)}. Erasures usually take less than a minute. ${remedy}</p>`;
}
