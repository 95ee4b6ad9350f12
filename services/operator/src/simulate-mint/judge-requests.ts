import { describeDifferences } from '../simulate-chain/compare.ts';
import { THRESHOLD } from './assets.ts';
import { type BookEntry, isAccepted } from './book.ts';
import { readMint, type ShownMint, STATUSES, walkList } from './lists.ts';
import type { FirstCursors, ShownMints } from './settle.ts';
import { COLLECTIONS, type MintStage } from './stage.ts';

/** Maximum number of requests that are also read one by one. */
const SINGLE_MAX = 100;
const PAGE_SIZE = 200;
/** Pages of a walk in small pages: enough to test, within the limit of calls. */
const PAGES_MAX = 25;

/** Compares the interface with the book: each reference id has one token or one clear failure. */
export function judgeOutcomes(stage: MintStage, shown: ShownMints): void {
  const { book, differences } = stage;
  for (const entry of book.entries()) {
    const { referenceId } = entry.asset;
    const request = shown.get(referenceId);
    if (request === undefined) {
      if (isAccepted(entry)) differences.add('missing', `${referenceId} was accepted and is not in the list`);
      continue;
    }
    for (const text of describeMembers(stage, entry, request)) differences.add('member', `${referenceId} ${text}`);
    const fault = describeOutcome(entry, request);
    if (fault !== null) differences.add(request.status === 'pending' ? 'open' : 'outcome', `${referenceId} ${fault}`);
  }
  for (const [referenceId] of shown)
    if (book.find(referenceId) === null) differences.add('uninvited', `${referenceId} is shown and was never accepted`);
  judgeRivals(stage, shown);
}

function describeMembers({ options }: MintStage, { asset }: BookEntry, request: ShownMint): readonly string[] {
  const { id, name } = options.chain;
  const { chain, collection_address, owner_address, amount, created_at, updated_at } = request;
  const expected = {
    chain: { id, name },
    collection_address: options.contracts[asset.collection],
    owner_address: asset.owner.toLowerCase(),
    amount: asset.amount,
  };
  const wrong = [...describeDifferences(expected, { chain, collection_address, owner_address, amount })];
  if (asset.tokenId !== null && request.token_id !== asset.tokenId)
    wrong.push(`token_id: ${request.token_id} instead of ${asset.tokenId}`);
  if (updated_at < created_at) wrong.push(`updated_at ${updated_at} is before created_at ${created_at}`);
  return wrong;
}

/** What is wrong with its result; null when nothing is. */
function describeOutcome({ asset }: BookEntry, request: ShownMint): string | null {
  const { status, error, token_id, activity_id, transaction_hash } = request;
  const { expected } = asset;
  if (status === 'pending') return 'is still pending';
  if (status === 'succeeded') {
    if (expected.kind === 'failure') return `was minted, and must fail: ${expected.words}`;
    if (token_id === null || activity_id === null || transaction_hash === null) return 'was minted without a token';
    if (error !== null) return `was minted and tells a failure: ${error.message}`;
    const isOfContract = asset.tokenId === null && BigInt(token_id) < THRESHOLD;
    return isOfContract ? `has the token id ${token_id}, which the contract does not choose` : null;
  }
  if (expected.kind === 'token') return `failed, and must not: ${error?.message}`;
  if (activity_id !== null) return 'failed and has an activity';
  const isSaid = error?.message.toLowerCase() === expected.words.toLowerCase();
  return isSaid ? null : `failed as "${error?.message}" and not as "${expected.words}"`;
}

/** Of requests for the same token id exactly one must have it. */
function judgeRivals({ book, differences }: MintStage, shown: ShownMints): void {
  const rivals = book.entries().filter(({ asset }) => asset.expected.kind === 'rival');
  for (const [tokenId, entries] of Map.groupBy(rivals, ({ asset }) => asset.tokenId)) {
    const requests = entries.flatMap(({ asset }) => shown.get(asset.referenceId) ?? []);
    // Open and missing ones are reported elsewhere.
    if (requests.length < entries.length || requests.some(({ status }) => status === 'pending')) continue;
    const winners = requests.filter(({ status }) => status === 'succeeded').length;
    const ids = requests.map(({ reference_id }) => reference_id).join(', ');
    if (winners !== 1) differences.add('outcome', `${ids} wanted the token ${tokenId}, and ${winners} of them have it`);
  }
}

/** Reads by status, backwards and one by one: each must return the same as the list. */
export async function judgeReadings(stage: MintStage, shown: ShownMints, from: FirstCursors): Promise<void> {
  for (const collection of COLLECTIONS) {
    const own = [...shown.values()].filter(
      ({ collection_address }) => collection_address === stage.options.contracts[collection],
    );
    for (const status of STATUSES) {
      const found = await walkList(stage, { collection, status, pageSize: PAGE_SIZE, from: null });
      const expected = own.filter((request) => request.status === status);
      compareWalks(stage, `${collection} ${status}`, { expected, found: found.own });
    }
    const pageSize = Math.min(PAGE_SIZE, Math.max(1, Math.ceil(own.length / PAGES_MAX)));
    const forwards = await walkList(stage, { collection, pageSize, from: from[collection] });
    compareWalks(stage, `${collection} in small pages`, { expected: own, found: forwards.own });
    if (from[collection] === null) continue;
    const back = await walkList(stage, { collection, pageSize: PAGE_SIZE, from: forwards.end, isBackwards: true });
    compareWalks(stage, `${collection} backwards`, { expected: own, found: back.own });
  }
  await judgeSingles(stage, shown);
}

function compareWalks(
  { differences }: MintStage,
  name: string,
  { expected, found }: { expected: readonly ShownMint[]; found: readonly ShownMint[] },
): void {
  const byId = new Map(found.map((request) => [request.reference_id, request]));
  for (const request of expected) {
    const other = byId.get(request.reference_id);
    if (other === undefined) differences.add('list', `${name}: ${request.reference_id} is missing`);
    else
      for (const text of describeDifferences(request, other))
        differences.add('list', `${name}: ${request.reference_id} ${text}`);
    byId.delete(request.reference_id);
  }
  for (const [referenceId] of byId) differences.add('list', `${name}: ${referenceId} does not belong there`);
}

async function judgeSingles(stage: MintStage, shown: ShownMints): Promise<void> {
  const { random, book, differences } = stage;
  for (const request of random.shuffle([...shown.values()]).slice(0, SINGLE_MAX)) {
    const entry = book.find(request.reference_id);
    if (entry === null) continue;
    const found = (await readMint(stage, entry.asset.collection, request.reference_id))?.result ?? [];
    if (found.length !== 1) continue;
    for (const text of describeDifferences(request, found[0]))
      differences.add('list', `GET of ${request.reference_id}: ${text}`);
  }
}
