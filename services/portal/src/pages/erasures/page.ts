import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { copyable, emptyState, number, span, table, time } from '../../frame/components.ts';
import { environmentPath } from '../../frame/layout.ts';
import { pageNotFound } from '../../frame/not-found.ts';
import type { PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import type { PortalParts } from '../../portal-parts.ts';
import type { ErasureLine } from '../../reads/index.ts';

type Parts = Pick<PortalParts, 'reads'>;

const PATH = '/projects/:project/environments/:environment/erasures';
const ERASURE_ID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/;

/** Erasures of an environment, and how far each has come. */
export function createErasuresPage({ reads }: Parts): PortalPage {
  return {
    path: PATH,
    access: 'erasures.read',
    show: async (visit) => {
      const { environment } = scopeOf(visit);
      const erasures = await reads.erasures(environment.id, { signal: visit.signal });
      return { kind: 'page', title: `Erasures of ${environment.name}`, content: toContent(visit, erasures) };
    },
  };
}

/** The receipt of one erasure, as a file to keep. */
export function createReceiptPage({ reads }: Parts): PortalPage {
  return {
    path: `${PATH}/:erasure/receipt`,
    access: 'erasures.read',
    show: async (visit) => {
      const { environment } = scopeOf(visit);
      const erasureId = visit.params.erasure ?? '';
      const isId = ERASURE_ID.test(erasureId);
      const receipt = isId
        ? await reads.receipt({ environmentId: environment.id, erasureId }, { signal: visit.signal })
        : null;
      if (receipt === null) throw pageNotFound();
      const text = `${JSON.stringify(receipt, null, 2)}\n`;
      return { kind: 'file', name: `erasure-${erasureId}.json`, type: 'application/json', text };
    },
  };
}

function toContent(visit: Visit, erasures: readonly ErasureLine[]): Markup {
  if (erasures.length === 0)
    return emptyState(
      'No erasure was asked for',
      html`<p>Clients ask for one with a secret key: the documentation of the gateway says how. It then stands here with what has become of it.</p>`,
    );
  const rows = erasures.map((each) => toRow(visit, each));
  const heads = ['Erasure', 'State', 'Deleted', 'Fenced', 'Invisible', 'Off the disk', 'Out of the log', 'Receipt'];
  return html`<p>From the first step on nothing older of a person comes back; every time is counted from the request.</p>
${table('Erasures', heads, rows)}
${erasures.length === 500 ? html`<p class="hint">The newest 500. Older ones: npm run erasures -- list.</p>` : ''}`;
}

function toRow(visit: Visit, each: ErasureLine): readonly HtmlValue[] {
  const { project, environment } = scopeOf(visit);
  const receipt = `${environmentPath(project.id, environment.name)}/erasures/${encodeURIComponent(each.erasureId)}/receipt`;
  const since = (ms: number | null) => (ms === null ? '–' : span(ms - each.requestedMs));
  const due = each.logExpiresMs === null ? '–' : html`due ${time(each.logExpiresMs)}`;
  return [
    html`${copyable(each.erasureId, 'the id of the erasure')}<br>${time(each.requestedMs)}`,
    each.state,
    toDeletedText(each),
    since(each.fencedMs),
    since(each.visiblyErasedMs),
    since(each.physicallyErasedMs),
    each.logExpiredMs === null ? due : since(each.logExpiredMs),
    each.state === 'waiting' ? '–' : html`<a href="${receipt}">Download</a>`,
  ];
}

/**
 * What an erasure deletes. An identity that was never seen is often an id that was not percent-encoded, such as one with
 * a plus.
 */
function toDeletedText({ identities, deleted }: ErasureLine): HtmlValue {
  const of = identities === null ? '–' : html`${number(identities)} ${identities === 1 ? 'identity' : 'identities'}`;
  if (deleted === null) return of;
  return html`${of}<br>${deleted === 0 ? 'nothing was stored' : html`${number(deleted)} records`}`;
}
