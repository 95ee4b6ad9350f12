/** The mint requests of an environment. */
import { html, type Markup } from '@playline/api-docs';
import { MINT_STATUSES } from '@playline/contracts';
import {
  choice,
  copyable,
  emptyState,
  filterBar,
  keyValues,
  number,
  type Row,
  shortened,
  status,
  table,
  time,
  withAllOption,
} from '../../frame/components.ts';
import { CSV_LINES_MAX, CSV_TYPE, toCsv, toIso } from '../../frame/csv.ts';
import type { PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import { type MintLine, type MintPosition, readManyMints } from '../../reads/index.ts';
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
      const mints = await reads.mints({ ...search, mintsMax: PAGE_LINES + 1, before: readPosition(visit) }, { signal });
      const file = new URLSearchParams({ status, as: 'csv' });
      const actions = html`<a class="button outline" href="${`${visit.path}?${file}`}" title="The last 90 days">Export as CSV</a>`;
      const content = html`${toFilter(status)}${mints.length === 0 ? toEmpty(status) : toTable(visit, mints, status)}`;
      return { kind: 'page', title: 'Mints', actions, content };
    },
  };
}

const PAGE_LINES = 50;

/** The reference id is last, because it can contain dots. */
const POSITION = /^(\d{1,14})\.([\w-]{1,100})\.(0x[0-9a-f]{40})\.(.{1,300})$/is;

function readPosition({ query }: Visit): MintPosition | undefined {
  const [, requestedMs, chain = '', contractAddress = '', referenceId = ''] =
    POSITION.exec(query.get('before') ?? '') ?? [];
  return requestedMs === undefined
    ? undefined
    : { requestedMs: Number(requestedMs), chain, contractAddress, referenceId };
}

const toFilter = (status: string): Markup =>
  filterBar(html`${choice({ name: 'status', label: 'Status', value: status, choices: withAllOption(MINT_STATUSES) })}
<button class="outline">Filter</button>`);

const toEmpty = (status: string): Markup =>
  status === ''
    ? emptyState(
        'No mints in 90 days',
        html`<p>Your game server requests mints with a secret key. Each request appears here with its transaction, or with the reason why it is waiting.</p>`,
        { path: '/docs/quickstart', text: 'Request a mint' },
      )
    : emptyState(`No ${status} mints`, html`<p>Change the status filter to see other mints.</p>`);

function toTable({ path }: Visit, mints: readonly MintLine[], status: string): Markup {
  const page = mints.slice(0, PAGE_LINES);
  const { requestedMs, chain, contractAddress, referenceId } = page.at(-1)!;
  const before = [requestedMs, chain, contractAddress, referenceId].join('.');
  const older = `${path}?${new URLSearchParams({ status, before })}`;
  return html`${table('Mint requests', ['Requested', 'Asset', 'Collection', 'Token', 'Owner', 'Status'], page.map(toRow))}
${mints.length > page.length ? html`<p><a class="button outline" href="${older}">Older mints</a></p>` : ''}`;
}

function toRow(mint: MintLine): Row {
  const { tokenId, amount, transactionHash } = mint;
  const token = html`${tokenId ?? '–'}${amount === null ? '' : html` × ${amount}`}`;
  return {
    cells: [
      time(mint.requestedMs),
      shortened(mint.referenceId, 'the reference id'),
      shortened(mint.contractAddress, 'the collection’s address'),
      token,
      shortened(mint.ownerAddress, 'the owner’s address'),
      toStatus(mint),
    ],
    detail: keyValues([
      ['Status', toStatus(mint)],
      ['Changed', time(mint.changedMs)],
      ['Transaction', transactionHash === null ? '–' : copyable(transactionHash, 'the transaction hash')],
      ['Chain', mint.chain],
      ['Collection', copyable(mint.contractAddress, 'the collection’s address')],
      ['Owner', copyable(mint.ownerAddress, 'the owner’s address')],
      ['Signer', copyable(mint.signerAddress, 'the signer’s address')],
      ['Reference id', copyable(mint.referenceId, 'the reference id')],
      ['Trace id', copyable(mint.traceId, 'the trace id')],
    ]),
  };
}

function toStatus({ status: name, stage, reason, error }: MintLine): Markup {
  if (name === 'failed') return status('bad', `failed: ${error ?? 'no reason recorded'}`);
  if (name !== 'pending') return status('ok', name);
  return status('wait', `pending, ${stage}${reason === null ? '' : `: ${reason}`}`);
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
