/** The mint requests of an environment. */
import { html, type Markup } from '@playline/api-docs';
import { MINT_STATUSES } from '@playline/contracts';
import { emptyState, fields, type Row, shortened, status, table, time } from '../../frame/components.ts';
import { CSV_LINES_MAX, CSV_TYPE, toCsv, toIso } from '../../frame/csv.ts';
import { number } from '../../frame/format.ts';
import { choice, filterBar, withAllOption } from '../../frame/forms.ts';
import type { PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import { type MintLine, readManyMints } from '../../reads/index.ts';
import type { PageParts } from '../index.ts';

/** Long enough, because mints complete within minutes. `npm run mints -- list` lists older mints. */
const MINTS_MAX_AGE_MS = 90 * 86_400_000;
const MINTS_MAX = 100;

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
      const mints = await reads.mints({ ...search, mintsMax: MINTS_MAX }, { signal });
      const file = new URLSearchParams({ status, as: 'csv' });
      const actions = html`<a class="button outline" href="${`${visit.path}?${file}`}" title="The last 90 days">Export as CSV</a>`;
      const content = html`${toFilter(visit, status)}${mints.length === 0 ? toEmpty(status) : toTable(mints)}`;
      return { kind: 'page', title: 'Mints', actions, content };
    },
  };
}

const toFilter = (visit: Visit, status: string): Markup =>
  filterBar(
    visit,
    html`${choice({ name: 'status', label: 'Status', value: status, choices: withAllOption(MINT_STATUSES) })}`,
  );

const toEmpty = (status: string): Markup =>
  status === ''
    ? emptyState(
        'No mints in 90 days',
        html`<p>Your game server requests mints with a secret key. Each request appears here with its transaction, or with the reason why it is waiting.</p>`,
        { path: '/docs/chain/reference#createMintRequests', text: 'Request a mint' },
      )
    : emptyState(`No ${status} mints`, html`<p>Change the status filter to see other mints.</p>`);

function toTable(mints: readonly MintLine[]): Markup {
  const columns = ['Requested', 'Asset', 'Collection', 'Token', 'Owner', 'Status'];
  const note = `Shows the newest ${MINTS_MAX} mints. The CSV file contains all mints of the last 90 days.`;
  return html`${table('Mint requests', columns, mints.map(toRow))}
${mints.length === MINTS_MAX ? html`<p class="hint">${note}</p>` : ''}`;
}

function toRow(mint: MintLine): Row {
  return {
    cells: [
      time(mint.requestedMs),
      shortened(mint.referenceId, 'the reference id'),
      shortened(mint.contractAddress, 'the collection’s address'),
      html`${mint.tokenId ?? '–'}${mint.amount === null ? '' : html` × ${mint.amount}`}`,
      shortened(mint.ownerAddress, 'the owner’s address'),
      toStatus(mint),
    ],
    detail: fields(COLUMNS, toCells(mint)),
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
