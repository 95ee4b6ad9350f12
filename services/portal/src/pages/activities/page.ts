/** The on-chain activities of the contracts that are linked to an environment. */
import { type CollectionRecord, linkedCollectionsOf } from '@playline/access-keys';
import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { ACTIVITY_TYPES } from '@playline/contracts';
import { emptyState, fields, type Row, shortened, table, time } from '../../frame/components.ts';
import { CSV_LINES_MAX, CSV_TYPE, toCsv, toIso } from '../../frame/csv.ts';
import { number } from '../../frame/format.ts';
import { choice, field, filterBar, withAllOption } from '../../frame/forms.ts';
import { pathInEnvironment } from '../../frame/layout.ts';
import type { PortalPage, Visit } from '../../frame/page.ts';
import { INVALID_RANGE, INVALID_TIME, parseTime } from '../../frame/parse-time.ts';
import { scopeOf } from '../../frame/scope.ts';
import {
  type ActivityAsset,
  type ActivityLine,
  type ActivityPage,
  type ActivityPayment,
  type ActivitySearch,
  type ContractName,
  readManyActivities,
  type TokenLine,
} from '../../reads/index.ts';
import type { PageParts } from '../index.ts';

type Parts = Pick<PageParts, 'collections' | 'reads' | 'frame' | 'writeAudit'>;

export function createActivitiesPage({ collections, reads, frame, writeAudit }: Parts): PortalPage {
  return {
    path: '/projects/:project/environments/:environment/activities',
    access: 'project.read',
    show: async (visit) => {
      const { environment } = scopeOf(visit);
      const { signal } = visit;
      const title = 'Activity';
      const filter = readFilter(visit, await collections.all());
      const { linked } = filter;
      if (linked.length === 0) return { kind: 'page', title, content: toNoContracts(visit) };
      const search = toSearch(filter, visit, frame.wallClockMs());
      if (typeof search === 'string')
        return { kind: 'page', title, content: html`${toFilter(visit, filter)}<p role="alert">${search}</p>` };
      if (visit.query.get('as') === 'csv') {
        await writeAudit(visit, { action: 'activities.save', object: environment.id });
        const lists = readManyActivities((each) => reads.activities(each, { signal }), search, CSV_LINES_MAX);
        const toCells = (activity: ActivityLine) => toCsvCells(activity, linked);
        const chunks = toCsv(lists, { columns: COLUMNS, toCells, toLastLine });
        return { kind: 'streamed file', name: `activities-${environment.id}.csv`, type: CSV_TYPE, chunks };
      }
      const [tokens, page] = await Promise.all([
        reads.tokens(linked, { signal }),
        reads.activities(search, { signal }),
      ]);
      const file = toParams(filter);
      file.set('as', 'csv');
      const actions = html`<a class="button outline" href="${`${visit.path}?${file}`}" title="At most ${number(CSV_LINES_MAX, 'rows')}">Export as CSV</a>`;
      return { kind: 'page', title, actions, content: toContent(visit, filter, page, { linked, tokens }) };
    },
  };
}

const toNoContracts = (visit: Visit): Markup =>
  emptyState(
    'No linked contracts yet',
    html`<p>Mints, transfers and sales of linked contracts appear here. <a href="${pathInEnvironment(visit, 'collections')}">Link a contract</a> to see its past and future activities.</p>`,
    DOCS,
  );

const DOCS = {
  path: '/docs/chain/reference#listActivityHistory',
  text: 'How the chain API reports activities',
} as const;

function toFilter(visit: Visit, { linked, collection, type, tokenId, since, until }: Filter): Markup {
  const collections = linked.map(({ id, name, contractAddress }) => ({
    value: id,
    text: `${name} (${contractAddress.slice(0, 8)}…)`,
  }));
  return filterBar(
    visit,
    html`${choice({ name: 'collection', label: 'Collection', value: collection, choices: [{ value: '', text: 'all' }, ...collections] })}
${choice({ name: 'kind', label: 'Type', value: type, choices: withAllOption(ACTIVITY_TYPES) })}
${field({ name: 'token', label: 'Token id', value: tokenId, maxLength: 78 })}
${field({ name: 'since', label: 'Indexed from (UTC)', value: since, maxLength: 19 })}
${field({ name: 'until', label: 'Indexed until (UTC)', value: until, maxLength: 19 })}`,
  );
}

function toContent(visit: Visit, filter: Filter, page: ActivityPage, names: ContractNames): Markup {
  const { activities, next } = page;
  const older = toParams(filter);
  if (next !== null) older.set('after', `${next.updatedUs}.${next.id}`);
  const columns = ['Changed', 'Type', 'Item', 'From', 'To', 'Price'];
  const rows = activities.map((each) => toRow(each, names));
  const list = activities.length === 0 ? toEmpty(visit, filter, page) : table('Activities', columns, rows);
  const link = html`<p><a class="button outline" href="${`${visit.path}?${older}`}">Older activities</a></p>`;
  return html`${toFilter(visit, filter)}${list}${next === null ? '' : link}`;
}

function toEmpty({ query }: Visit, filter: Filter, { next, searchedSinceMs }: ActivityPage): HtmlValue {
  if (next !== null) return html`<p>No activities since ${time(searchedSinceMs)}. Older activities may exist.</p>`;
  if (query.has('after')) return html`<p>There are no older activities.</p>`;
  if (toParams(filter).size > 0)
    return emptyState('No matching activities', html`<p>Select “Show all” to clear the filter.</p>`);
  const chains = [...new Set(filter.linked.map(({ chain }) => chain))].join(', ');
  return emptyState(
    'No activities yet',
    html`<p>Mints, sales and transfers of the linked contracts on ${chains} appear here within seconds after their block is final. If no activities appear, check the contract address. An operator can run <code>npm run status</code> to check that the chain is being indexed.</p>`,
    DOCS,
  );
}

const COLUMNS =
  'changed|indexed|kind|chain|contract|collection|token ids|amounts|from|to|paid, smallest unit|paid with|transaction|block|activity id'.split(
    '|',
  );

function toCsvCells(activity: ActivityLine, linked: ContractNames['linked']): readonly string[] {
  const { assets, payment } = activity;
  return [
    toIso(activity.updatedMs),
    toIso(activity.indexedMs),
    activity.type,
    activity.chain,
    activity.contractAddress,
    findContract(linked, activity)?.name ?? '',
    assets.map(({ tokenId }) => tokenId).join(' '),
    assets.map(({ amount }) => amount).join(' '),
    activity.from,
    activity.to,
    payment?.amount ?? '',
    payment === null ? '' : payment.contractAddress || payment.symbol,
    activity.transactionHash,
    activity.blockNumber,
    activity.id,
  ];
}

const toLastLine = () =>
  `This export is limited to ${number(CSV_LINES_MAX, 'activities')}. Choose a shorter time range or one collection, or export the whole chain with npm run replicate.`;

type Filter = ReturnType<typeof readFilter>;

const UNTIL_MAX_MS = Date.UTC(2256, 0);
const TOKEN_ID = /^\d{1,78}$/;
/** The id is empty if the search timed out between two activities. */
const POSITION = /^(\d{1,16})\.((?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?)$/;

function readFilter(visit: Visit, records: readonly CollectionRecord[]) {
  const text = (name: string) => (visit.query.get(name) ?? '').trim();
  const linked = linkedCollectionsOf(records, scopeOf(visit).environment.id);
  return {
    linked,
    collection: linked.find(({ id }) => id === text('collection'))?.id ?? '',
    type: ACTIVITY_TYPES.find((each) => each === text('kind')) ?? '',
    tokenId: text('token'),
    since: text('since'),
    until: text('until'),
  };
}

function toParams({ collection, type, tokenId, since, until }: Filter): URLSearchParams {
  const fields = Object.entries({ collection, kind: type, token: tokenId, since, until });
  return new URLSearchParams(fields.filter(([, value]) => value !== ''));
}

function toSearch(filter: Filter, { query }: Visit, nowMs: number): ActivitySearch | string {
  const { linked, collection, type, tokenId } = filter;
  const [since, until] = [parseTime(filter.since), parseTime(filter.until)];
  if (since === undefined || until === undefined) return INVALID_TIME;
  if (tokenId !== '' && !TOKEN_ID.test(tokenId)) return 'Enter a decimal token id such as 4711.';
  const [sinceMs, untilMs] = [since ?? 0, Math.min(until ?? UNTIL_MAX_MS, UNTIL_MAX_MS)];
  if (sinceMs >= untilMs) return INVALID_RANGE;
  const contracts = linked.filter(({ id }) => collection === '' || id === collection);
  const [, updatedUs, id] = POSITION.exec(query.get('after') ?? '') ?? [];
  const before = id === undefined ? undefined : { updatedUs: Number(updatedUs), id };
  return { nowMs, contracts, type, tokenId, sinceMs, untilMs, before };
}

interface ContractNames {
  readonly linked: readonly CollectionRecord[];
  readonly tokens: readonly TokenLine[];
}

const findContract = <T extends ContractName>(contracts: readonly T[], { chain, contractAddress }: ContractName) =>
  contracts.find(
    (each) => each.chain === chain && each.contractAddress.toLowerCase() === contractAddress.toLowerCase(),
  );

function toRow(activity: ActivityLine, names: ContractNames): Row {
  const { chain, contractAddress, updatedMs, type, assets, from, to, payment } = activity;
  const [asset] = assets;
  const token = findContract(names.tokens, activity);
  const others = assets.length > 1 ? ` and ${number(assets.length - 1)} more` : '';
  return {
    cells: [
      time(updatedMs),
      type,
      html`${findContract(names.linked, activity)?.name ?? contractAddress} ${asset === undefined ? '' : toAssetText(asset, token)}${others}`,
      from === '' ? '–' : shortened(from, 'the sender’s address'),
      to === '' ? '–' : shortened(to, 'the recipient’s address'),
      payment === null ? '–' : toPrice(chain, payment, names),
    ],
    detail: fields(COLUMNS, toCsvCells(activity, names.linked)),
  };
}

function toAssetText({ tokenId, amount }: ActivityAsset, token: TokenLine | undefined): Markup {
  if (tokenId === '')
    return html`${toAmount(amount, token?.decimals ?? null)} ${token === undefined ? 'units' : toUnit(token)}`;
  return html`${shortened(tokenId, 'the token id')}${amount === '' || amount === '1' ? '' : ` × ${amount}`}`;
}

const toUnit = ({ symbol, name }: TokenLine): string => (name === '' ? symbol : `${symbol} (${name})`);

function toPrice(chain: string, { contractAddress, symbol, amount }: ActivityPayment, names: ContractNames): string {
  if (contractAddress === '') return `${amount} smallest units of ${symbol}`;
  const token = findContract(names.tokens, { chain, contractAddress });
  return `${toAmount(amount, token?.decimals ?? null)} ${token === undefined ? 'smallest units' : toUnit(token)}`;
}

/** Converts an amount from smallest to whole units. Returns invalid amounts and amounts without decimals unchanged. */
export function toAmount(digits: string, decimals: number | null): string {
  if (decimals === null || decimals === 0 || !/^\d+$/.test(digits)) return digits;
  const padded = digits.padStart(decimals + 1, '0');
  const [whole, fraction] = [padded.slice(0, -decimals), padded.slice(-decimals).replace(/0+$/, '')];
  return fraction === '' ? whole : `${whole}.${fraction}`;
}
