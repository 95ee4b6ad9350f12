/** The mint requests of an environment. */
import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { MINT_STATUSES } from '@playline/contracts';
import { choice, copyable, emptyState, number, table, time, withAllOption } from '../../frame/components.ts';
import { CSV_LINES_MAX, CSV_TYPE, toCsv, toIso } from '../../frame/csv.ts';
import type { PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import { MINTS_SHOWN_MAX, type MintLine, readManyMints } from '../../reads/index.ts';
import type { PageParts } from '../index.ts';

/** Long enough, because mints complete within minutes. `npm run mints -- list` lists older mints. */
const MINTS_MAX_AGE_MS = 90 * 86_400_000;

type Parts = Pick<PageParts, 'reads' | 'frame' | 'writeAudit'>;

export function createMintsPage({ reads, frame, writeAudit }: Parts): PortalPage {
  return {
    path: '/projects/:project/environments/:environment/mints',
    access: 'project.read',
    show: async (visit) => {
      const { environment } = scopeOf(visit);
      const { query, signal } = visit;
      const status = MINT_STATUSES.find((each) => each === query.get('status')) ?? ('' as const);
      const search = { environmentId: environment.id, sinceMs: frame.wallClockMs() - MINTS_MAX_AGE_MS, status };
      if (query.get('as') === 'csv') {
        await writeAudit(visit, { action: 'mints.save', object: environment.id, detail: { status } });
        const lists = readManyMints((each) => reads.mints(each, { signal }), search, CSV_LINES_MAX);
        const chunks = toCsv(lists, { columns: COLUMNS, toCells, toLastLine });
        return { kind: 'streamed file', name: `mints-${environment.id}.csv`, type: CSV_TYPE, chunks };
      }
      const mints = await reads.mints(search, { signal });
      const content = html`${toFilter(status)}${mints.length === 0 ? toEmpty(status) : toTable(visit, mints, status)}`;
      return { kind: 'page', title: `Mints in ${environment.name}`, content };
    },
  };
}

const toFilter = (status: string): Markup =>
  html`<form class="form filter" method="get">${choice({ name: 'status', label: 'Status', value: status, choices: withAllOption(MINT_STATUSES) })}
<button class="outline">Filter</button></form>`;

const toEmpty = (status: string): Markup =>
  status === ''
    ? emptyState(
        'No mints in 90 days',
        html`<p>Your game server requests mints with a secret key, as described in the chain API documentation. Each request appears here with its transaction, or with the reason why it is waiting.</p>`,
      )
    : emptyState(`No ${status} mints`, html`<p>Change the status filter to see other mints.</p>`);

function toTable({ path }: Visit, mints: readonly MintLine[], status: string): Markup {
  const columns = ['Asset', 'Collection', 'Token', 'Owner', 'Status', 'Transaction'];
  return html`${table('Mint requests', columns, mints.map(toRow))}
<p>${mints.length === MINTS_SHOWN_MAX ? `Showing the newest ${MINTS_SHOWN_MAX}. ` : ''}<a href="${`${path}?${new URLSearchParams({ status, as: 'csv' })}`}">Export the last 90 days as CSV</a></p>`;
}

function toRow(mint: MintLine): readonly HtmlValue[] {
  const { tokenId, amount, transactionHash } = mint;
  return [
    html`${copyable(mint.referenceId, 'the reference id')}<br>${time(mint.requestedMs)}`,
    html`${mint.chain}<br>${copyable(mint.contractAddress, 'the collection’s address')}`,
    html`${tokenId ?? '–'}${amount === null ? '' : html` × ${amount}`}`,
    copyable(mint.ownerAddress, 'the owner’s address'),
    html`${toStatus(mint)}<br>${time(mint.changedMs)}`,
    transactionHash === null ? '–' : copyable(transactionHash, 'the transaction hash'),
  ];
}

function toStatus({ status, stage, reason, error }: MintLine): Markup {
  if (status === 'failed') return html`failed: ${error ?? 'no reason recorded'}`;
  if (status !== 'pending') return html`${status}`;
  return html`pending, ${stage}${reason === null ? '' : html`: ${reason}`}`;
}

const COLUMNS =
  'requested|changed|reference id|chain|collection|token|amount|owner|signer|status|stage|reason|error|transaction|trace id'.split(
    '|',
  );

const toCells = (mint: MintLine): readonly string[] => [
  toIso(mint.requestedMs),
  toIso(mint.changedMs),
  mint.referenceId,
  mint.chain,
  mint.contractAddress,
  mint.tokenId ?? '',
  mint.amount ?? '',
  mint.ownerAddress,
  mint.signerAddress,
  mint.status,
  mint.stage,
  mint.reason ?? '',
  mint.error ?? '',
  mint.transactionHash ?? '',
  mint.traceId,
];

const toLastLine = () =>
  `This export is limited to ${number(CSV_LINES_MAX, 'mints')}. Run npm run mints -- list to list all mints.`;
