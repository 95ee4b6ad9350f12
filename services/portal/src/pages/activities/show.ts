import type { CollectionRecord } from '@playline/access-keys';
import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { copyable, number, table, time } from '../../frame/parts.ts';
import type { ActivityAsset, ActivityLine, ActivityPayment, ContractName, TokenLine } from '../../reads/index.ts';

/** What contracts are called: by the team that linked them, and by those who made them. */
export interface ContractWords {
  readonly linked: readonly CollectionRecord[];
  readonly tokens: readonly TokenLine[];
}

/** A sale may be of many; who wants all of them saves the file. */
const ASSETS_SHOWN_MAX = 5;
const DIGITS = /^\d+$/;

/** Activities, one a row. */
export function toTable(activities: readonly ActivityLine[], words: ContractWords): Markup {
  const heads = ['Changed', 'Kind', 'What', 'From', 'To', 'Paid', 'Transaction, id'];
  return table(
    'Activities',
    heads,
    activities.map((each) => toRow(each, words)),
  );
}

/** The record of a contract's link. */
export const recordOf = (linked: ContractWords['linked'], { chain, contractAddress }: ContractName) =>
  linked.find((each) => each.chain === chain && isSame(each.contractAddress, contractAddress));

export const isSame = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();

function toRow(activity: ActivityLine, words: ContractWords): readonly HtmlValue[] {
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

function toWhat({ chain, contractAddress, assets }: ActivityLine, words: ContractWords): Markup {
  const token = words.tokens.find((each) => each.chain === chain && isSame(each.contractAddress, contractAddress));
  const shown = assets.slice(0, ASSETS_SHOWN_MAX).map((asset) => html`<br>${toAssetWords(asset, token)}`);
  const left = assets.length - shown.length;
  return html`${recordOf(words.linked, { chain, contractAddress })?.name ?? contractAddress}${shown}${left > 0 ? html`<br>and ${number(left)} more` : ''}<br>${copyable(contractAddress, 'the address of the contract')} <span class="quiet">${chain}</span>`;
}

function toAssetWords({ tokenId, amount }: ActivityAsset, token: TokenLine | undefined): Markup {
  if (tokenId === '')
    return html`${toAmount(amount, token?.decimals ?? null)} ${token === undefined ? 'units' : unitOf(token)}`;
  return html`token ${copyable(tokenId, 'the id of the token')}${amount === '' || amount === '1' ? '' : ` × ${amount}`}`;
}

/** Its makers chose both words. */
const unitOf = ({ symbol, name }: TokenLine): string => (name === '' ? symbol : `${symbol} (${name})`);

/** A token that is not linked stands with its address alone. */
function toPaid(chain: string, { contractAddress, symbol, amount }: ActivityPayment, words: ContractWords): Markup {
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
