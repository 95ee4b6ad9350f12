import type { ProjectRecord } from '@playline/access-keys';
import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { number, span } from '../../frame/components.ts';
import { environmentPath } from '../../frame/layout.ts';
import type { Visit } from '../../frame/page.ts';
import type { OpenErasures } from '../../reads/index.ts';

/** An erasure usually takes a minute. One that is older than this is late, and somebody has to look. */
const LATE_MS = 5 * 60_000;

/** Erasures without a receipt of environments; null where nobody can tell now. */
export interface OldestErasures {
  readonly open: readonly OpenErasures[] | null;
  readonly nowMs: number;
}

/** The one of these environments that waits for longest, with its age, as a link to where it stands. */
export function toOldestErasure(
  { open, nowMs }: OldestErasures,
  project: ProjectRecord,
  environments: ProjectRecord['environments'] = project.environments,
): HtmlValue {
  if (open === null) return 'cannot be told now';
  const found = open.find(({ environmentId }) => environments.some(({ id }) => id === environmentId));
  const environment = environments.find(({ id }) => id === found?.environmentId);
  if (found === undefined || environment === undefined) return 'none';
  const ageMs = nowMs - found.oldestMs;
  const where = environments.length === 1 ? '' : ` in ${environment.name}`;
  const others = found.count === 1 ? '' : `, ${number(found.count)} wait`;
  const late = ageMs > LATE_MS ? html` <span class="tag bad">late</span>` : '';
  return html`<a href="${environmentPath(project.id, environment.name)}/erasures">${span(ageMs)}${where}</a>${others}${late}`;
}

/** What to do about the oldest erasure, where it takes too long. */
export function toErasureRemedy({ open, nowMs }: OldestErasures, visit: Visit): Markup {
  const [oldest] = open ?? [];
  if (oldest === undefined || nowMs - oldest.oldestMs <= LATE_MS) return html``;
  const who = visit.mayDo('accounts.read')
    ? html`<code>npm run status</code> says why the eraser does not go on, <code>npm run erasures -- show ${oldest.oldestId}</code> how far it has come.`
    : html`Tell whoever runs Playline the id of the erasure; a person waits for it.`;
  return html`<p class="message failed">An erasure has waited for ${span(nowMs - oldest.oldestMs)}; nothing of the person is found any more within a minute usually. ${who}</p>`;
}
