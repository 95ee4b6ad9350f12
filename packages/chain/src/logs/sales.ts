import type { ChainLog } from '../node.ts';
import { type LogReading, NOTHING, read, unread } from './log-reading.ts';
import { AbiFault, eventTopicOf, toAddress, Words, ZERO_ADDRESS } from './words.ts';

const SPENT = '(uint8,address,uint256,uint256)';
const RECEIVED = '(uint8,address,uint256,uint256,address)';
/** Event of Seaport: an order was fulfilled. */
export const ORDER_FULFILLED = eventTopicOf(`OrderFulfilled(bytes32,address,address,address,${SPENT}[],${RECEIVED}[])`);

const WORD = 32;
const KINDS = ['NATIVE', 'ERC20', 'ERC721', 'ERC1155'] as const;

interface Item {
  readonly kind: (typeof KINDS)[number];
  readonly token: string;
  readonly id: bigint;
  readonly amount: bigint;
  /** Who gets the item. For items that the offerer spends, this is the fulfiller. */
  readonly recipient: string;
}

/** A sale: the seller gives NFTs, the buyer gives currency. */
interface Deal {
  readonly buyer: string;
  readonly seller: string;
  readonly things: readonly Item[];
  /** All that the buyer pays. */
  readonly paid: readonly Item[];
  /** The part of `paid` that goes to neither of them. */
  readonly fees: readonly Item[];
}

const isCurrency = ({ kind }: Item) => kind === 'NATIVE' || kind === 'ERC20';

function itemsOf(words: Words, at: number, recipient: string | null): Item[] {
  const size = recipient === null ? 5 : 4;
  return words.elements(at, size).map((start) => {
    const kind = KINDS[words.count(start)];
    if (kind === undefined) throw new AbiFault('is of a kind that no item has');
    const [token, id, amount] = [
      words.address(start + WORD),
      words.uint(start + 2 * WORD),
      words.uint(start + 3 * WORD),
    ];
    return { kind, token, id, amount, recipient: recipient ?? words.address(start + 4 * WORD) };
  });
}

/** Null when neither side consists of NFTs only. */
function toDeal(offerer: string, fulfiller: string, sides: readonly [Item[], Item[]]): Deal | null {
  const [offer, consideration] = sides;
  if (offer.length === 0) return null;
  if (offer.every((item) => !isCurrency(item)) && consideration.every(isCurrency)) {
    const fees = consideration.filter(({ recipient }) => recipient !== offerer);
    return { buyer: fulfiller, seller: offerer, things: offer, paid: consideration, fees };
  }
  const things = consideration.filter((item) => !isCurrency(item));
  if (!offer.every(isCurrency) || things.length === 0) return null;
  // An offer of currency for NFTs: what goes to others than the seller comes out of the offer.
  const fees = consideration.filter((item) => isCurrency(item) && item.recipient !== fulfiller);
  return { buyer: offerer, seller: fulfiller, things, paid: offer, fees };
}

const sumOf = (items: readonly Item[]): bigint => items.reduce((sum, { amount }) => sum + amount, 0n);

function toSale(orderId: string, deal: Deal, nativeSymbol: string): LogReading {
  const { buyer, seller, things, paid, fees } = deal;
  const [first] = paid;
  const isOneCurrency = [...paid, ...fees].every(({ kind, token }) => kind === first?.kind && token === first.token);
  if (first === undefined || !isOneCurrency) return unread('several-currencies');
  const contractAddress = things[0]!.token;
  if (things.some(({ token }) => token !== contractAddress)) return unread('several-contracts');
  const [including, feesTotal] = [sumOf(paid), sumOf(fees)];
  if (feesTotal > including) return unread('malformed');
  const token =
    first.kind === 'NATIVE'
      ? { contract_type: 'NATIVE', symbol: nativeSymbol }
      : { contract_type: 'ERC20', contract_address: first.token };
  const details = {
    order_id: orderId,
    to: buyer,
    from: seller,
    asset: things.map(({ kind, id, amount }) => ({
      contract_type: kind,
      contract_address: contractAddress,
      token_id: String(id),
      amount: String(amount),
    })),
    payment: {
      token,
      price_excluding_fees: String(including - feesTotal),
      price_including_fees: String(including),
      fees: fees.map(({ amount, recipient }) => ({ amount: String(amount), type: 'ROYALTY', recipient })),
    },
  };
  return read([{ type: 'sale', details, contractAddress }]);
}

/**
 * Decodes a log of a marketplace. When a third party matches orders, the event does not name the fulfiller; such a log
 * is not taken as a sale.
 */
export function readSale({ topics, data }: ChainLog, nativeSymbol: string): LogReading {
  if (topics[0] !== ORDER_FULFILLED) return NOTHING;
  try {
    if (topics.length !== 3) return unread('malformed');
    const offerer = toAddress(topics[1]!);
    const words = new Words(data);
    const fulfiller = words.address(WORD);
    if (fulfiller === ZERO_ADDRESS || offerer === ZERO_ADDRESS) return unread('nobody');
    const sides: [Item[], Item[]] = [itemsOf(words, 2 * WORD, fulfiller), itemsOf(words, 3 * WORD, null)];
    const deal = toDeal(offerer, fulfiller, sides);
    return deal === null ? NOTHING : toSale(words.text(0), deal, nativeSymbol);
  } catch (fault) {
    if (fault instanceof AbiFault) return unread('malformed');
    throw fault;
  }
}
