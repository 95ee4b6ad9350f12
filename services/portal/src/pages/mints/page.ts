import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { MINT_STATUSES } from '@playline/contracts';
import { choice, copyable, emptyState, number, table, time } from '../../frame/components.ts';
import { CSV_LINES_MAX, CSV_TYPE, toIso, toLimitedCsv } from '../../frame/csv.ts';
import type { Answer, PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import { MINTS_SHOWN_MAX, type MintLine, type MintSearch, type PortalReads, readManyMints } from '../../reads/index.ts';
import type { PagesParts } from '../index.ts';

/** Mints are final within minutes; what is older stands in the history, and behind `npm run mints -- list`. */
const SHOWN_MS = 90 * 86_400_000;

/** What became of assets that games asked to be minted. */
export function createMintsPage({
  reads,
  frame,
  writeAudit: note,
}: Pick<PagesParts, 'reads' | 'frame' | 'writeAudit'>): PortalPage {
  return {
    path: '/projects/:project/environments/:environment/mints',
    access: 'project.read',
    show: async (visit) => {
      const { environment } = scopeOf(visit);
      const { query, signal } = visit;
      const status: MintSearch['status'] = MINT_STATUSES.find((each) => each === query.get('status')) ?? '';
      const question = { environmentId: environment.id, sinceMs: frame.wallClockMs() - SHOWN_MS, status };
      if (query.get('as') === 'csv') {
        await note(visit, { action: 'mints.save', object: environment.id, detail: { status } });
        return toMintsFile(reads, { search: question, signal });
      }
      const mints = await reads.mints(question, { signal });
      const content = html`${toFilter(status)}${mints.length === 0 ? toEmpty(status) : toTable(visit, mints, status)}`;
      return { kind: 'page', title: `Mints of ${environment.name}`, content };
    },
  };
}

function toFilter(status: string): Markup {
  const choices = [{ value: '', text: 'all' }, ...MINT_STATUSES.map((value) => ({ value, text: value }))];
  return html`<form class="form filter" method="get">${choice({ name: 'status', label: 'Status', value: status, choices })}
<button class="outline">Show</button></form>`;
}

const toEmpty = (status: string): Markup =>
  status === ''
    ? emptyState(
        'No asset was asked for in 90 days',
        html`<p>A game's server asks for assets of a linked collection with a secret key: the documentation of the chain interface says how. Each then stands here with its transaction, or with why it waits.</p>`,
      )
    : emptyState(`None is ${status}`, html`<p>Show all to see what there is.</p>`);

function toTable({ path }: Visit, mints: readonly MintLine[], status: string): Markup {
  const heads = ['Asset', 'Collection', 'Token', 'For', 'Status', 'Transaction'];
  return html`${table('Mint requests', heads, mints.map(toRow))}
<p>${mints.length === MINTS_SHOWN_MAX ? `The newest ${MINTS_SHOWN_MAX}. ` : ''}<a href="${`${path}?${new URLSearchParams({ status, as: 'csv' })}`}">Save all of 90 days as CSV</a></p>`;
}

function toRow(mint: MintLine): readonly HtmlValue[] {
  const { tokenId, amount, transactionHash } = mint;
  return [
    html`${copyable(mint.referenceId, 'the reference id')}<br>${time(mint.requestedMs)}`,
    html`${mint.chain}<br>${copyable(mint.contractAddress, 'the address of the collection')}`,
    html`${tokenId ?? '–'}${amount === null ? '' : html` × ${amount}`}`,
    copyable(mint.ownerAddress, 'the address of the owner'),
    html`${toState(mint)}<br>${time(mint.changedMs)}`,
    transactionHash === null ? '–' : copyable(transactionHash, 'the hash of the transaction'),
  ];
}

/** A pending one says how far it is and why it waits, a failed one why it failed. */
function toState({ status, stage, reason, error }: MintLine): Markup {
  if (status === 'failed') return html`failed: ${error ?? 'no reason was given'}`;
  if (status !== 'pending') return html`${status}`;
  return html`pending, ${stage}${reason === null ? '' : html`: ${reason}`}`;
}

const COLUMNS = [
  ...['requested', 'changed', 'reference id', 'chain', 'collection', 'token', 'amount', 'owner', 'signer', 'status'],
  ...['stage', 'reason', 'error', 'transaction', 'trace id'],
];

const toCells = (mint: MintLine): readonly string[] => [
  ...[toIso(mint.requestedMs), toIso(mint.changedMs), mint.referenceId, mint.chain, mint.contractAddress],
  ...[mint.tokenId ?? '', mint.amount ?? '', mint.ownerAddress, mint.signerAddress, mint.status, mint.stage],
  ...[mint.reason ?? '', mint.error ?? '', mint.transactionHash ?? '', mint.traceId],
];

interface MintsFileOptions {
  readonly search: MintSearch;
  readonly signal: AbortSignal;
}

/** All that a page of mints would show, however many. */
function toMintsFile(reads: Pick<PortalReads, 'mints'>, { search: question, signal }: MintsFileOptions): Answer {
  const lists = readManyMints((each) => reads.mints(each, { signal }), question, CSV_LINES_MAX);
  const toEnd = () => `This file ends here, at ${number(CSV_LINES_MAX, 'mints')}: npm run mints -- list has all.`;
  const pieces = toLimitedCsv(lists, { columns: COLUMNS, toCells, toLastLine: toEnd });
  return { kind: 'long file', name: `mints-${question.environmentId}.csv`, type: CSV_TYPE, pieces };
}
