import { type CollectionRecord, collectionsOf } from '@playline/access-keys';
import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { ACTIVITY_TYPES } from '@playline/contracts';
import { choice, copyable, emptyState, field, number, table, time } from '../../frame/components.ts';
import { CSV_LINES_MAX, CSV_TYPE, toIso, toLimitedCsv } from '../../frame/csv.ts';
import { environmentPath } from '../../frame/layout.ts';
import type { Answer, PortalPage, Visit } from '../../frame/page.ts';
import { INVALID_TIME, parseTime } from '../../frame/parse-time.ts';
import { scopeOf } from '../../frame/scope.ts';
import {
  type ActivityAsset,
  type ActivityLine,
  type ActivityPage,
  type ActivityPayment,
  type ActivitySearch,
  type ContractName,
  type PortalReads,
  readManyActivities,
  type TokenLine,
} from '../../reads/index.ts';
import type { PagesParts } from '../index.ts';

/** What happened on chains to the contracts that are linked to an environment. */
export function createActivitiesPage(
  parts: Pick<PagesParts, 'collections' | 'reads' | 'frame' | 'writeAudit'>,
): PortalPage {
  const { collections, reads, frame, writeAudit: note } = parts;
  return {
    path: '/projects/:project/environments/:environment/activities',
    access: 'project.read',
    show: async (visit) => {
      const { environment } = scopeOf(visit);
      const { query, signal } = visit;
      const title = `Activities of ${environment.name}`;
      const asked = readFilter(visit, await collections.all());
      if (asked.linked.length === 0) return { kind: 'page', title, content: toUnlinked(visit) };
      const question = toSearch(asked, visit, frame.wallClockMs());
      if (typeof question === 'string')
        return { kind: 'page', title, content: html`${toFilter(visit, asked)}<p role="alert">${question}</p>` };
      const { linked } = asked;
      if (query.get('as') === 'csv') {
        await note(visit, { action: 'activities.save', object: environment.id });
        return toActivitiesFile(reads, { environmentId: environment.id, search: question, linked, signal });
      }
      const [tokens, page] = await Promise.all([
        reads.tokens(linked, { signal }),
        reads.activities(question, { signal }),
      ]);
      return { kind: 'page', title, content: toContent(visit, { filter: asked, page, names: { linked, tokens } }) };
    },
  };
}

function toUnlinked({ project, environment }: Visit): Markup {
  const path = `${environmentPath(project?.id ?? '', environment?.name ?? '')}/collections`;
  return emptyState(
    'No contract is linked yet',
    html`<p>Here stands what happens on chains to the contracts of this environment: mints, transfers, sales. <a href="${path}">Link a contract</a>, and all that is known of it is here at once, what was before as well.</p>`,
  );
}

function toFilter({ path }: Visit, { linked, collection, type, tokenId, since, until }: Filter): Markup {
  const named = linked.map(({ id, name, contractAddress }) => ({
    value: id,
    text: `${name} (${contractAddress.slice(0, 8)}…)`,
  }));
  const kinds = ACTIVITY_TYPES.map((value) => ({ value, text: value }));
  const all = { value: '', text: 'all' };
  return html`<form class="form filter" method="get" action="${path}" aria-label="Filter">
${choice({ name: 'collection', label: 'Collection', value: collection, choices: [all, ...named] })}
${choice({ name: 'kind', label: 'Kind', value: type, choices: [all, ...kinds] })}
${field({ name: 'token', label: 'Token id', value: tokenId, charactersMax: 78 })}
${field({ name: 'since', label: 'From (UTC)', value: since, charactersMax: 19 })}
${field({ name: 'until', label: 'Until (UTC)', value: until, charactersMax: 19 })}
<button class="outline">Show</button> <a href="${path}">Show all</a>
<p class="hint">Times as 2026-11-01 10:00, of when an activity was first indexed. What came or changed last stands on top.</p></form>`;
}

interface Shown {
  readonly filter: Filter;
  readonly page: ActivityPage;
  readonly names: ContractNames;
}

function toContent(visit: Visit, { filter: asked, page, names: words }: Shown): Markup {
  const { activities, next } = page;
  const [older, file] = [toParams(asked), toParams(asked)];
  if (next !== null) older.set('after', `${next.updatedUs}.${next.id}`);
  file.set('as', 'csv');
  const list =
    activities.length === 0
      ? toNothing(visit, asked, page)
      : html`${toTable(activities, words)}
<p><a href="${`${visit.path}?${file}`}">Save all of them as CSV</a>, ${number(CSV_LINES_MAX)} at most.</p>`;
  const more = next === null ? '' : html`<p><a href="${`${visit.path}?${older}`}">Older activities</a></p>`;
  return html`${toFilter(visit, asked)}${list}${more}`;
}

/** Where the search gave up, was behind a page, or a filter is set, there may be others. */
function toNothing({ query }: Visit, asked: Filter, { next, searchedSinceMs }: ActivityPage): HtmlValue {
  if (next !== null)
    return html`<p>Nothing is found back to ${time(searchedSinceMs)}; look further for what is older.</p>`;
  if (query.has('after')) return html`<p>There is nothing older.</p>`;
  if (isNarrowed(asked)) return emptyState('No activity is so', html`<p>Show all to see what there is.</p>`);
  const chains = [...new Set(asked.linked.map(({ chain }) => chain))].join(', ');
  return emptyState(
    'Nothing has happened yet',
    html`<p>Of the linked contracts nothing is known on ${chains}. Whatever is minted, sold or sent there stands here within seconds of the block that is final. Nothing comes? Compare the address with that of the contract; an operator sees by <code>npm run status</code> whether the chain is followed.</p>`,
  );
}

const COLUMNS = [
  ...['changed', 'indexed', 'kind', 'chain', 'contract', 'collection', 'token ids', 'amounts', 'from', 'to'],
  ...['paid, smallest unit', 'paid with', 'transaction', 'block', 'activity id'],
];

function toCells(activity: ActivityLine, linked: ContractNames['linked']): readonly string[] {
  const { assets, payment, chain, contractAddress } = activity;
  return [
    ...[toIso(activity.updatedMs), toIso(activity.indexedMs), activity.type, chain, contractAddress],
    ...[recordOf(linked, activity)?.name ?? '', assets.map(({ tokenId }) => tokenId).join(' ')],
    ...[assets.map(({ amount }) => amount).join(' '), activity.from, activity.to, payment?.amount ?? ''],
    ...[payment === null ? '' : payment.contractAddress || payment.symbol, activity.transactionHash],
    ...[activity.blockNumber, activity.id],
  ];
}

interface ActivitiesFileOptions {
  readonly environmentId: string;
  readonly search: ActivitySearch;
  readonly linked: ContractNames['linked'];
  readonly signal: AbortSignal;
}

/** All that a page of activities would show, however many; amounts in the smallest unit, as the chain has them. */
function toActivitiesFile(reads: Pick<PortalReads, 'activities'>, options: ActivitiesFileOptions): Answer {
  const { environmentId, search: question, linked, signal } = options;
  const lists = readManyActivities((each) => reads.activities(each, { signal }), question, CSV_LINES_MAX);
  const toEnd = () =>
    `This file ends here, at ${number(CSV_LINES_MAX, 'activities')}: choose a shorter span, or one collection. npm run replicate has all of a chain.`;
  const pieces = toLimitedCsv(lists, { columns: COLUMNS, toCells: (each) => toCells(each, linked), toLastLine: toEnd });
  return { kind: 'long file', name: `activities-${environmentId}.csv`, type: CSV_TYPE, pieces };
}

/** What somebody asks of a page of activities; '' says nothing. */
interface Filter {
  /** Collections that are linked to the environment. */
  readonly linked: readonly CollectionRecord[];
  /** Id of one of them. */
  readonly collection: string;
  readonly type: string;
  readonly tokenId: string;
  /** In UTC: `2026-11-01 10:00`. */
  readonly since: string;
  readonly until: string;
}

/** Behind all times that an activity may have been indexed at. */
const END_OF_TIME_MS = Date.UTC(2256, 0);
/** As the log takes them. */
const TOKEN_ID = /^\d{1,78}$/;
/** Without an id where a search ran out of time between two activities: all that is older. */
const POSITION = /^(\d{1,16})\.((?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?)$/;

/** What the address of a page says, of the contracts that are linked to its environment now. */
function readFilter(visit: Visit, records: readonly CollectionRecord[]): Filter {
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

/** The same as it stands in addresses; of what was typed only what can be asked for. */
function toParams({ collection, type, tokenId, since, until }: Filter): URLSearchParams {
  const given = Object.entries({ collection, kind: type, token: tokenId, since, until });
  return new URLSearchParams(given.filter(([, value]) => value !== ''));
}

/** Whether anything narrows what is shown. */
const isNarrowed = (asked: Filter): boolean => toParams(asked).size > 0;

/**
 * The question of a page, which is about nothing but linked contracts.
 * @param nowMs epoch milliseconds
 * @returns words about what cannot be looked for
 */
function toSearch(asked: Filter, { query }: Visit, nowMs: number): ActivitySearch | string {
  const { linked, collection, type, tokenId } = asked;
  const [since, until] = [parseTime(asked.since), parseTime(asked.until)];
  if (since === undefined || until === undefined) return INVALID_TIME;
  if (tokenId !== '' && !TOKEN_ID.test(tokenId)) return 'Give the id of a token in decimal digits, such as 4711.';
  const [sinceMs, untilMs] = [since ?? 0, Math.min(until ?? END_OF_TIME_MS, END_OF_TIME_MS)];
  if (sinceMs >= untilMs) return 'The span ends in front of its beginning.';
  const contracts = linked.filter(({ id }) => collection === '' || id === collection);
  const [, updatedUs, id] = POSITION.exec(query.get('after') ?? '') ?? [];
  const before = id === undefined ? {} : { before: { updatedUs: Number(updatedUs), id } };
  return { nowMs, contracts, type, tokenId, sinceMs, untilMs, ...before };
}

/** What contracts are called: by the team that linked them, and by those who made them. */
interface ContractNames {
  readonly linked: readonly CollectionRecord[];
  readonly tokens: readonly TokenLine[];
}

/** A sale may be of many; who wants all of them saves the file. */
const ASSETS_SHOWN_MAX = 5;
const DIGITS = /^\d+$/;

/** Activities, one a row. */
function toTable(activities: readonly ActivityLine[], words: ContractNames): Markup {
  const heads = ['Changed', 'Kind', 'What', 'From', 'To', 'Paid', 'Transaction, id'];
  return table(
    'Activities',
    heads,
    activities.map((each) => toRow(each, words)),
  );
}

/** The record of a contract's link. */
const recordOf = (linked: ContractNames['linked'], { chain, contractAddress }: ContractName) =>
  linked.find((each) => each.chain === chain && isSame(each.contractAddress, contractAddress));

const isSame = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();

function toRow(activity: ActivityLine, words: ContractNames): readonly HtmlValue[] {
  const { id, updatedMs, indexedMs, type, from, to, payment, transactionHash } = activity;
  return [
    html`${time(updatedMs)}<br><span class="quiet">indexed ${time(indexedMs)}</span>`,
    type,
    toWhat(activity, words),
    addressOr(from, 'the address that it left'),
    addressOr(to, 'the address that got it'),
    payment === null ? '–' : toPaid(activity.chain, payment, words),
    html`${transactionHash === '' ? '' : toTransaction(activity)}${copyable(id, 'the id of the activity')}`,
  ];
}

const toTransaction = ({ transactionHash, blockNumber }: ActivityLine): Markup =>
  html`${copyable(transactionHash, 'the hash of the transaction')}<br><span class="quiet">block ${blockNumber === '' ? '–' : blockNumber}</span><br>`;

const addressOr = (address: string, label: string): HtmlValue => (address === '' ? '–' : copyable(address, label));

function toWhat({ chain, contractAddress, assets }: ActivityLine, words: ContractNames): Markup {
  const token = words.tokens.find((each) => each.chain === chain && isSame(each.contractAddress, contractAddress));
  const shown = assets.slice(0, ASSETS_SHOWN_MAX).map((asset) => html`<br>${toAssetText(asset, token)}`);
  const left = assets.length - shown.length;
  return html`${recordOf(words.linked, { chain, contractAddress })?.name ?? contractAddress}${shown}${left > 0 ? html`<br>and ${number(left)} more` : ''}<br>${copyable(contractAddress, 'the address of the contract')} <span class="quiet">${chain}</span>`;
}

function toAssetText({ tokenId, amount }: ActivityAsset, token: TokenLine | undefined): Markup {
  if (tokenId === '')
    return html`${toAmount(amount, token?.decimals ?? null)} ${token === undefined ? 'units' : unitOf(token)}`;
  return html`token ${copyable(tokenId, 'the id of the token')}${amount === '' || amount === '1' ? '' : ` × ${amount}`}`;
}

/** Its makers chose both words. */
const unitOf = ({ symbol, name }: TokenLine): string => (name === '' ? symbol : `${symbol} (${name})`);

/** A token that is not linked stands with its address alone. */
function toPaid(chain: string, { contractAddress, symbol, amount }: ActivityPayment, words: ContractNames): Markup {
  if (contractAddress === '') return html`${amount}<br><span class="quiet">smallest units of ${symbol}</span>`;
  const token = words.tokens.find((each) => each.chain === chain && isSame(each.contractAddress, contractAddress));
  const unit = token === undefined ? 'smallest units of' : unitOf(token);
  return html`${toAmount(amount, token?.decimals ?? null)} ${unit}<br>${copyable(contractAddress, 'the address of the token that was paid with')}`;
}

/**
 * An amount of a token in its whole units.
 * @param digits decimal digits of the smallest unit; anything else stays as it is
 * @param decimals null where it is not known: then it is in the smallest unit
 */
export function toAmount(digits: string, decimals: number | null): string {
  if (decimals === null || decimals === 0 || !DIGITS.test(digits)) return digits;
  const padded = digits.padStart(decimals + 1, '0');
  const [whole, part] = [padded.slice(0, -decimals), padded.slice(-decimals).replace(/0+$/, '')];
  return part === '' ? whole : `${whole}.${part}`;
}
