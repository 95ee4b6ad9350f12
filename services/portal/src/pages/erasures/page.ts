import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { copyable, emptyState, keyValues, type Row, shortened, status, table, time } from '../../frame/components.ts';
import { duration, number } from '../../frame/format.ts';
import { pathInEnvironment } from '../../frame/layout.ts';
import type { PortalPage, Visit } from '../../frame/page.ts';
import { pageNotFound, scopeOf } from '../../frame/scope.ts';
import type { ErasureLine } from '../../reads/index.ts';
import type { PageParts } from '../index.ts';

type Parts = Pick<PageParts, 'reads'>;

const PATH = '/projects/:project/environments/:environment/erasures';
const ERASURE_ID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/;

export function createErasuresPage({ reads }: Parts): PortalPage {
  return {
    path: PATH,
    access: 'erasures.read',
    show: async (visit) => {
      const erasures = await reads.erasures(scopeOf(visit).environment.id, { signal: visit.signal });
      return { kind: 'page', title: 'Erasures', content: toContent(visit, erasures) };
    },
  };
}

export function createReceiptPage({ reads }: Parts): PortalPage {
  return {
    path: `${PATH}/:erasure/receipt`,
    access: 'erasures.read',
    show: async (visit) => {
      const environmentId = scopeOf(visit).environment.id;
      const erasureId = visit.params.erasure ?? '';
      if (!ERASURE_ID.test(erasureId)) throw pageNotFound();
      const receipt = await reads.receipt({ environmentId, erasureId }, { signal: visit.signal });
      if (receipt === null) throw pageNotFound();
      const text = `${JSON.stringify(receipt, null, 2)}\n`;
      return { kind: 'file', name: `erasure-${erasureId}.json`, type: 'application/json', text };
    },
  };
}

function toContent(visit: Visit, erasures: readonly ErasureLine[]): Markup {
  if (erasures.length === 0)
    return emptyState(
      'No erasures yet',
      html`<p>Your servers request erasures with a secret key, and project owners request them on a person’s page. Each erasure appears here with its progress and its receipt.</p>`,
      { path: '/docs/erasure', text: 'How erasure works' },
    );
  const start = Math.max(0, Number(visit.query.get('from')) || 0);
  const page = erasures.slice(start, start + PAGE_LINES);
  const next = start + PAGE_LINES;
  return html`<p class="muted">Durations are measured from the request. After a person is fenced, late messages from before the request are not stored.</p>
${table(
  'Erasures',
  ['Requested', 'Erasure', 'State', 'Erased', 'After', 'Receipt'],
  page.map((each) => toRow(visit, each)),
)}
${next < erasures.length ? html`<p><a class="button outline" href="${visit.path}?from=${next}">Older erasures</a></p>` : ''}
${erasures.length === 500 ? html`<p class="hint">Shows the newest 500. To list older erasures, run npm run erasures -- list.</p>` : ''}`;
}

const PAGE_LINES = 50;

function toRow(visit: Visit, each: ErasureLine): Row {
  const receipt = pathInEnvironment(visit, `erasures/${encodeURIComponent(each.erasureId)}/receipt`);
  const since = (ms: number | null) => (ms === null ? '–' : duration(ms - each.requestedMs));
  const due = each.logExpiresMs === null ? '–' : html`due ${time(each.logExpiresMs)}`;
  return {
    cells: [
      time(each.requestedMs),
      shortened(each.erasureId, 'the erasure id'),
      status(each.visiblyErasedMs === null ? 'wait' : 'ok', each.state),
      toDeletedText(each),
      since(each.visiblyErasedMs),
      each.state === 'waiting' ? '–' : html`<a href="${receipt}">Download</a>`,
    ],
    detail: keyValues([
      ['Erasure', copyable(each.erasureId, 'the erasure id')],
      ['Fenced', since(each.fencedMs)],
      ['Invisible', since(each.visiblyErasedMs)],
      ['Disk purged', since(each.physicallyErasedMs)],
      ['Log expired', each.logExpiredMs === null ? due : since(each.logExpiredMs)],
    ]),
  };
}

/** Reports an erasure that found no data: the id in the request may not have been percent-encoded. */
function toDeletedText({ identities, deleted }: ErasureLine): HtmlValue {
  const count = identities === null ? '–' : html`${number(identities)} ${identities === 1 ? 'identity' : 'identities'}`;
  if (deleted === null) return count;
  return html`${count}, ${deleted === 0 ? 'nothing was stored' : number(deleted, deleted === 1 ? 'record' : 'records')}`;
}
