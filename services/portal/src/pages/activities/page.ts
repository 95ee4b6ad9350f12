/** The on-chain activities of the contracts that are linked to an environment. */
import { type CollectionRecord, collectionsOf } from '@playline/access-keys';
import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { ACTIVITY_TYPES } from '@playline/contracts';
import { choice, copyable, emptyState, field, number, table, time, withAllOption } from '../../frame/components.ts';
import { CSV_LINES_MAX, CSV_TYPE, toCsv, toIso } from '../../frame/csv.ts';
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
      const title = `Activities in ${environment.name}`;
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
      return { kind: 'page', title, content: toContent(visit, filter, page, { linked, tokens }) };
    },
  };
}

const toNoContracts = (visit: Visit): Markup =>
  emptyState(
    'No linked contracts yet',
    html`<p>Mints, transfers and sales of linked contracts appear here. <a href="${pathInEnvironment(visit, 'collections')}">Link a contract</a> to see its past and future activities.</p>`,
  );

function toFilter({ path }: Visit, { linked, collection, type, tokenId, since, until }: Filter): Markup {
  const collections = linked.map(({ id, name, contractAddress }) => ({
    value: id,
    text: `${name} (${contractAddress.slice(0, 8)}…)`,
  }));
  return html`<form class="form filter" method="get" action="${path}" aria-label="Filter">
${choice({ name: 'collection', label: 'Collection', value: collection, choices: [{ value: '', text: 'all' }, ...collections] })}
${choice({ name: 'kind', label: 'Type', value: type, choices: withAllOption(ACTIVITY_TYPES) })}
${field({ name: 'token', label: 'Token id', value: tokenId, maxLength: 78 })}
${field({ name: 'since', label: 'From (UTC)', value: since, maxLength: 19 })}
${field({ name: 'until', label: 'Until (UTC)', value: until, maxLength: 19 })}
<button class="outline">Filter</button> <a href="${path}">Show all</a>
<p class="hint">Enter times such as 2026-11-01 10:00. The range applies to the time at which an activity was first indexed. Activities are sorted by their latest change.</p></form>`;
}

function toContent(visit: Visit, filter: Filter, page: ActivityPage, names: ContractNames): Markup {
  const { activities, next } = page;
  const [older, file] = [toParams(filter), toParams(filter)];
  if (next !== null) older.set('after', `${next.updatedUs}.${next.id}`);
  file.set('as', 'csv');
  const columns = ['Changed', 'Type', 'Item', 'From', 'To', 'Price', 'Transaction and id'];
  const rows = activities.map((each) => toRow(each, names));
  const list =
    activities.length === 0
      ? toEmpty(visit, filter, page)
      : html`${table('Activities', columns, rows)}
<p><a href="${`${visit.path}?${file}`}">Export all as CSV</a> (at most ${number(CSV_LINES_MAX, 'rows')})</p>`;
  const more = next === null ? '' : html`<p><a href="${`${visit.path}?${older}`}">Older activities</a></p>`;
  return html`${toFilter(visit, filter)}${list}${more}`;
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
  const { project, environment } = scopeOf(visit);
  const text = (name: string) => (visit.query.get(name) ?? '').trim();
  const linked = collectionsOf(records, project.id).filter(
    ({ state, environmentId }) => state === 'linked' && environmentId === environment.id,
  );
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

function toRow(activity: ActivityLine, names: ContractNames): readonly HtmlValue[] {
  const { id, updatedMs, indexedMs, type, from, to, payment, transactionHash, blockNumber } = activity;
  const transaction = html`${copyable(transactionHash, 'the transaction hash')}<br><span class="quiet">block ${blockNumber || '–'}</span><br>`;
  return [
    html`${time(updatedMs)}<br><span class="quiet">indexed ${time(indexedMs)}</span>`,
    type,
    toItem(activity, names),
    from === '' ? '–' : copyable(from, 'the sender’s address'),
    to === '' ? '–' : copyable(to, 'the recipient’s address'),
    payment === null ? '–' : toPrice(activity.chain, payment, names),
    html`${transactionHash === '' ? '' : transaction}${copyable(id, 'the activity id')}`,
  ];
}

/** Maximum number of assets shown per activity. The CSV export contains all assets. */
const ASSETS_SHOWN_MAX = 5;

function toItem({ chain, contractAddress, assets }: ActivityLine, names: ContractNames): Markup {
  const contract = { chain, contractAddress };
  const token = findContract(names.tokens, contract);
  const shown = assets.slice(0, ASSETS_SHOWN_MAX).map((asset) => html`<br>${toAssetText(asset, token)}`);
  const hiddenCount = assets.length - shown.length;
  return html`${findContract(names.linked, contract)?.name ?? contractAddress}${shown}${hiddenCount > 0 ? html`<br>and ${number(hiddenCount)} more` : ''}<br>${copyable(contractAddress, 'the contract address')} <span class="quiet">${chain}</span>`;
}

function toAssetText({ tokenId, amount }: ActivityAsset, token: TokenLine | undefined): Markup {
  if (tokenId === '')
    return html`${toAmount(amount, token?.decimals ?? null)} ${token === undefined ? 'units' : toUnit(token)}`;
  return html`token ${copyable(tokenId, 'the token id')}${amount === '' || amount === '1' ? '' : ` × ${amount}`}`;
}

const toUnit = ({ symbol, name }: TokenLine): string => (name === '' ? symbol : `${symbol} (${name})`);

function toPrice(chain: string, { contractAddress, symbol, amount }: ActivityPayment, names: ContractNames): Markup {
  if (contractAddress === '') return html`${amount}<br><span class="quiet">smallest units of ${symbol}</span>`;
  const token = findContract(names.tokens, { chain, contractAddress });
  const unit = token === undefined ? 'smallest units of' : toUnit(token);
  return html`${toAmount(amount, token?.decimals ?? null)} ${unit}<br>${copyable(contractAddress, 'the payment token’s address')}`;
}

/** Converts an amount from smallest to whole units. Returns invalid amounts and amounts without decimals unchanged. */
export function toAmount(digits: string, decimals: number | null): string {
  if (decimals === null || decimals === 0 || !/^\d+$/.test(digits)) return digits;
  const padded = digits.padStart(decimals + 1, '0');
  const [whole, fraction] = [padded.slice(0, -decimals), padded.slice(-decimals).replace(/0+$/, '')];
  return fraction === '' ? whole : `${whole}.${fraction}`;
}
