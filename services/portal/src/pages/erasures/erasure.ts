/** Shows how far an erasure is, from the request to the receipt. A script reloads the steps until the receipt exists. */
import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { duration, keyValues, number, panel, shortened, status, table, time } from '../../frame/components.ts';
import { pathInEnvironment } from '../../frame/layout.ts';
import type { PortalPage } from '../../frame/page.ts';
import { pageNotFound, scopeOf } from '../../frame/scope.ts';
import type { ErasureProgress } from '../../reads/index.ts';
import type { PageParts } from '../index.ts';

const ERASURE_ID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/;

export function createErasurePage({ reads }: Pick<PageParts, 'reads'>): PortalPage {
  return {
    path: '/projects/:project/environments/:environment/erasures/:erasure',
    access: 'erasures.read',
    show: async (visit) => {
      const erasureId = visit.params.erasure ?? '';
      if (!ERASURE_ID.test(erasureId)) throw pageNotFound();
      const erasure = { environmentId: scopeOf(visit).environment.id, erasureId };
      const [progress, receipt] = await Promise.all([
        reads.erasureProgress(erasure, { signal: visit.signal }),
        reads.receipt(erasure, { signal: visit.signal }),
      ]);
      const file = pathInEnvironment(visit, `erasures/${erasureId}/receipt`);
      const steps = receipt === null ? listSteps(progress) : listReceiptSteps(receipt);
      return {
        kind: 'page',
        title: receipt === null ? 'Erasure in progress' : 'Person erased',
        heading: html`Erasure ${receipt === null ? status('wait', 'in progress') : status('ok', 'complete')}`,
        actions: receipt === null ? '' : html`<a class="btn primary" href="${file}" download>Download receipt</a>`,
        content: html`${toSteps(erasureId, steps, receipt !== null)}${receipt === null ? '' : toReceipt(receipt)}
<p><a href="${pathInEnvironment(visit, 'erasures')}">All erasures</a></p>`,
        scripts: ['erasure.js'],
      };
    },
  };
}

interface Step {
  readonly title: string;
  readonly note: HtmlValue;
  readonly isDone: boolean;
}

const FENCED = 'Late messages from before the request are no longer stored.';

function listSteps(progress: ErasureProgress | null): readonly Step[] {
  const { requestedMs = null, identities = 0, deleted = 0, fencedMs = null } = progress ?? {};
  const found = identities === 0 ? '' : ` ${number(identities)} ${identities === 1 ? 'identity' : 'identities'} found.`;
  const isRequested = requestedMs !== null;
  const picking = 'Waiting for the eraser to store a request with this id, which usually takes less than a second.';
  return [
    { title: 'Requested', note: isRequested ? html`${time(requestedMs)}${found}` : picking, isDone: isRequested },
    { title: 'Fenced', note: fencedMs === null ? 'Waiting' : FENCED, isDone: fencedMs !== null },
    { title: 'Deleted', note: deleted === 0 ? 'Waiting' : `${number(deleted)} records so far`, isDone: false },
    { title: 'Verified', note: 'All stores are searched again.', isDone: false },
    { title: 'Receipt', note: 'Proves what was deleted and when.', isDone: false },
  ];
}

/** Of the fields of the receipt, those that the page shows. */
interface ShownReceipt {
  readonly acceptedAt: string;
  readonly fencedAt: string;
  readonly visiblyErasedAt: string;
  readonly physicallyErasedAt: string | null;
  readonly logExpiresAt: string;
  readonly logExpiredAt: string | null;
  readonly closureCount: number;
  readonly deleted: Readonly<Record<string, string | number>>;
  readonly verified: Readonly<Record<string, string | number>>;
}

const toShown = (receipt: Readonly<Record<string, unknown>>) => receipt as unknown as ShownReceipt;
const sum = (counts: ShownReceipt['deleted']) =>
  Object.values(counts).reduce<number>((all, each) => all + Number(each), 0);

function listReceiptSteps(receipt: Readonly<Record<string, unknown>>): readonly Step[] {
  const { acceptedAt, fencedAt, visiblyErasedAt, closureCount, deleted, verified } = toShown(receipt);
  const since = (at: string) => `after ${duration(Date.parse(at) - Date.parse(acceptedAt))}`;
  const records = sum(deleted);
  const stores = Object.keys(deleted).length;
  return [
    { title: 'Requested', note: time(Date.parse(acceptedAt)), isDone: true },
    { title: 'Fenced', note: `${since(fencedAt)}. ${FENCED}`, isDone: true },
    {
      title: 'Deleted',
      note:
        records === 0
          ? 'Nothing was stored about this person. Check that the id in the request was correct.'
          : `${number(records)} ${records === 1 ? 'record' : 'records'} of ${number(closureCount)} ${closureCount === 1 ? 'identity' : 'identities'}`,
      isDone: true,
    },
    {
      title: 'Verified',
      note: `${since(visiblyErasedAt)}. ${number(sum(verified))} records remain in ${number(stores)} tables and stores.`,
      isDone: true,
    },
    { title: 'Receipt', note: 'Download it for the person who requested the erasure.', isDone: true },
  ];
}

function toSteps(erasureId: string, steps: readonly Step[], isComplete: boolean): Markup {
  const current = steps.find(({ isDone }) => !isDone);
  const items = steps.map(
    (step) =>
      html`<li class="${step.isDone ? 'done' : step === current ? 'current' : ''}"${step === current ? html` aria-current="step"` : ''}>${status(step.isDone ? 'ok' : 'wait', step.title)} <span class="muted">${step.note}</span></li>`,
  );
  const note = isComplete
    ? ''
    : html`<p class="muted" role="status">This page updates by itself. Without JavaScript, reload it. Erasures usually take less than a minute.</p>`;
  return html`<div class="erasure" data-complete="${String(isComplete)}">${panel('Progress', html`<ol class="steps">${items}</ol>${note}`, { note: html`Erasure id ${shortened(erasureId, 'the erasure id')}` })}</div>`;
}

function toReceipt(receipt: Readonly<Record<string, unknown>>): Markup {
  const { physicallyErasedAt, logExpiresAt, logExpiredAt, deleted } = toShown(receipt);
  const toTime = (at: string) => time(Date.parse(at));
  const rows = Object.entries(deleted)
    .filter(([, count]) => Number(count) > 0)
    .map(([store, count]) => [html`<code>${store}</code>`, number(Number(count))]);
  const later = keyValues([
    ['Disks purged', physicallyErasedAt ? toTime(physicallyErasedAt) : 'when ClickHouse has rewritten its files'],
    ['Log expired', logExpiredAt ? toTime(logExpiredAt) : html`due ${toTime(logExpiresAt)}`],
  ]);
  const deletedTable = table('Deleted', ['Store', { text: 'Deleted', align: 'right' }], rows);
  return html`${rows.length === 0 ? '' : panel('Deleted per store', deletedTable)}${panel('Afterwards', later)}`;
}
