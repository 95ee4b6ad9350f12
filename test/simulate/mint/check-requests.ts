import { type ClickHouseAccount, createQueryRows, readRows } from '@playline/stores';
import { describeDifferences } from '../report.ts';
import { isAccepted, type LedgerEntry, THRESHOLD } from './assets.ts';
import { type FirstCursors, readMint, type ShownMint, type ShownMints, STATUSES, walkList } from './lists.ts';
import { COLLECTIONS, type MintStage } from './stage.ts';

export interface MintAttemptRow {
  readonly referenceId: string;
  /** The contract and the owner are in lower case. */
  readonly contract: string;
  readonly status: string;
  readonly tokenId: string | null;
  readonly amount: string | null;
  readonly owner: string;
  readonly transactionHash: string | null;
  readonly activityId: string | null;
  readonly error: string | null;
}

export interface StoredMetadata {
  readonly kind: 'collection' | 'token' | 'stack';
  readonly contract: string;
  readonly subject: string;
  readonly metadata: string;
}

export type MintRows = ReturnType<typeof createMintRows>;

const QUERY_MAX_MS = 60_000;
const toHex = (column: string) => `concat('0x', lower(hex(${column})))`;
/** Selects the values of the highest revision as one tuple, because `argMax` skips NULL values. */
const LAST = `argMax(tuple(status, token_id, amount, ${toHex('owner')}, if(isNull(transaction_hash), NULL, ${toHex('transaction_hash')}), toString(activity_id), error), revision)`;

/**
 * Reads the tables with queries that are independent of the API.
 * @param prefix the prefix of the run's reference ids: letters, digits and hyphens
 */
export function createMintRows(account: ClickHouseAccount, prefix: string) {
  const query = createQueryRows(account, { deadlineMs: QUERY_MAX_MS });
  const ofRun = `startsWith(reference_id, '${prefix}')`;
  return {
    /** @returns the run's attempts, ordered by request time */
    attempts: async (): Promise<readonly MintAttemptRow[]> => {
      const rows = await readRows(
        query(
          `SELECT reference_id, ${toHex('contract')}, ${LAST} FROM mint_requests WHERE ${ofRun} ` +
            'GROUP BY chain, contract, reference_id, attempt_id, requested_at ORDER BY requested_at',
        ),
      );
      return rows.map(([referenceId, contract, last]) => {
        const [status, tokenId, amount, owner, transactionHash, activityId, error] = last as [string, ...never[]];
        return { referenceId, contract, status, tokenId, amount, owner, transactionHash, activityId, error };
      }) as unknown as MintAttemptRow[];
    },
    waitingForRole: async (): Promise<number> => {
      const [row] = await readRows(
        query(
          `SELECT count() FROM mint_requests FINAL WHERE ${ofRun} AND status = 'pending' AND reason LIKE '%MINTER_ROLE%'`,
        ),
      );
      return Number(row?.[0] ?? 0);
    },
    metadata: async (contracts: readonly string[]): Promise<readonly StoredMetadata[]> => {
      const selectFrom = (kind: string, table: string, subject: string) =>
        `SELECT '${kind}' AS kind, ${toHex('contract')} AS address, ${subject} AS subject, metadata FROM ${table} FINAL ` +
        `WHERE address IN (${contracts.map((contract) => `'${contract}'`).join(', ')})`;
      const all = [
        selectFrom('collection', 'collections', "''"),
        selectFrom('token', 'nft_metadata', 'token_id'),
        selectFrom('stack', 'metadata_stacks', 'metadata_id'),
      ].join(' UNION ALL ');
      const rows = await readRows(query(all));
      return rows.map(([kind, contract, subject, metadata]) => {
        return { kind, contract, subject, metadata };
      }) as StoredMetadata[];
    },
  };
}

const SINGLE_MAX = 100;
const PAGE_SIZE = 200;
const PAGES_MAX = 25;

/** Compares the API with the recorded requests: each reference id must have one token or one clear failure. */
export function checkOutcomes(stage: MintStage, shown: ShownMints): void {
  const { ledger, differences } = stage;
  for (const entry of ledger.entries()) {
    const { referenceId } = entry.asset;
    const request = shown.get(referenceId);
    if (request === undefined) {
      if (isAccepted(entry)) differences.add('missing', `${referenceId} was accepted, but is not in the list`);
      continue;
    }
    for (const text of describeMembers(stage, entry, request)) differences.add('member', `${referenceId} ${text}`);
    const text = describeOutcome(entry, request);
    if (text !== null) differences.add(request.status === 'pending' ? 'open' : 'outcome', `${referenceId} ${text}`);
  }
  for (const [referenceId] of shown)
    if (ledger.find(referenceId) === null)
      differences.add('uninvited', `${referenceId} is in the list, but was never accepted`);
  checkRivals(stage, shown);
}

function describeMembers({ options }: MintStage, { asset }: LedgerEntry, request: ShownMint): readonly string[] {
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

function describeOutcome({ asset }: LedgerEntry, request: ShownMint): string | null {
  const { status, error, token_id, activity_id, transaction_hash } = request;
  const { expected } = asset;
  if (status === 'pending') return 'is still pending';
  if (status === 'succeeded') {
    if (expected.kind === 'failure') return `was minted, but must fail: ${expected.message}`;
    if (token_id === null || activity_id === null || transaction_hash === null) return 'was minted, but has no token';
    if (error !== null) return `was minted, but has an error: ${error.message}`;
    const isBelowThreshold = asset.tokenId === null && BigInt(token_id) < THRESHOLD;
    return isBelowThreshold ? `has the token id ${token_id}, which the contract does not assign` : null;
  }
  if (expected.kind === 'token') return `failed, but must be minted: ${error?.message}`;
  if (activity_id !== null) return 'failed, but has an activity';
  const isExpected = error?.message.toLowerCase() === expected.message.toLowerCase();
  return isExpected ? null : `failed with "${error?.message}" instead of "${expected.message}"`;
}

function checkRivals({ ledger, differences }: MintStage, shown: ShownMints): void {
  const rivals = ledger.entries().filter(({ asset }) => asset.expected.kind === 'rival');
  for (const [tokenId, entries] of Map.groupBy(rivals, ({ asset }) => asset.tokenId)) {
    const requests = entries.flatMap(({ asset }) => shown.get(asset.referenceId) ?? []);
    // `checkOutcomes` reports pending and missing requests.
    if (requests.length < entries.length || requests.some(({ status }) => status === 'pending')) continue;
    const winners = requests.filter(({ status }) => status === 'succeeded').length;
    const ids = requests.map(({ reference_id }) => reference_id).join(', ');
    if (winners !== 1) differences.add('outcome', `${winners} of the requests ${ids} received token ${tokenId}`);
  }
}

/** Reads requests by status, in small pages, backwards and individually, and compares the results with the list. */
export async function checkReads(stage: MintStage, shown: ShownMints, from: FirstCursors): Promise<void> {
  for (const collection of COLLECTIONS) {
    const inCollection = [...shown.values()].filter(
      ({ collection_address }) => collection_address === stage.options.contracts[collection],
    );
    for (const status of STATUSES) {
      const found = await walkList(stage, { collection, status, pageSize: PAGE_SIZE, from: null });
      const expected = inCollection.filter((request) => request.status === status);
      compareWalks(stage, `${collection} ${status}`, { expected, found: found.requests });
    }
    const pageSize = Math.min(PAGE_SIZE, Math.max(1, Math.ceil(inCollection.length / PAGES_MAX)));
    const forwards = await walkList(stage, { collection, pageSize, from: from[collection] });
    compareWalks(stage, `${collection} in small pages`, { expected: inCollection, found: forwards.requests });
    if (from[collection] === null) continue;
    const backwards = await walkList(stage, { collection, pageSize: PAGE_SIZE, from: forwards.end, isBackwards: true });
    compareWalks(stage, `${collection} backwards`, { expected: inCollection, found: backwards.requests });
  }
  await checkSingles(stage, shown);
}

function compareWalks(
  { differences }: MintStage,
  name: string,
  { expected, found }: { expected: readonly ShownMint[]; found: readonly ShownMint[] },
): void {
  const byId = new Map(found.map((request) => [request.reference_id, request]));
  for (const request of expected) {
    const actual = byId.get(request.reference_id);
    if (actual === undefined) differences.add('list', `${name}: ${request.reference_id} is missing`);
    else
      for (const text of describeDifferences(request, actual))
        differences.add('list', `${name}: ${request.reference_id} ${text}`);
    byId.delete(request.reference_id);
  }
  for (const [referenceId] of byId) differences.add('list', `${name}: ${referenceId} is unexpected`);
}

async function checkSingles(stage: MintStage, shown: ShownMints): Promise<void> {
  const { random, ledger, differences } = stage;
  for (const request of random.shuffle([...shown.values()]).slice(0, SINGLE_MAX)) {
    const entry = ledger.find(request.reference_id);
    if (entry === null) continue;
    const found = (await readMint(stage, entry.asset.collection, request.reference_id))?.result ?? [];
    if (found.length !== 1) continue;
    for (const text of describeDifferences(request, found[0]))
      differences.add('list', `GET ${request.reference_id}: ${text}`);
  }
}

/** Compares `mint_requests` with the API. @returns the number of attempts */
export async function checkRows(stage: MintStage, shown: ShownMints): Promise<number> {
  const { ledger, rows, differences } = stage;
  const attempts = await rows.attempts();
  const byReference = Map.groupBy(attempts, ({ referenceId }) => referenceId);
  for (const entry of ledger.entries()) {
    const { referenceId } = entry.asset;
    const ofReference = byReference.get(referenceId) ?? [];
    byReference.delete(referenceId);
    if (ofReference.length < entry.attemptsMin || ofReference.length > entry.attemptsMax)
      differences.add(
        'row',
        `${referenceId} has ${ofReference.length} attempts, but was accepted ${entry.attemptsMin} times`,
      );
    const tokens = ofReference.filter(({ status }) => status === 'succeeded').length;
    if (tokens > 1) differences.add('row', `${referenceId} has succeeded ${tokens} times`);
    if (ofReference.slice(0, -1).some(({ status }) => status !== 'failed'))
      differences.add('row', `${referenceId} was accepted again before the previous attempt had failed`);
    const [last, request] = [ofReference.at(-1), shown.get(referenceId)];
    if (last === undefined) {
      if (isAccepted(entry)) differences.add('row', `${referenceId} has no row`);
    } else if (request === undefined) differences.add('missing', `${referenceId} has a row, but is not in the list`);
    else for (const text of describeDifferences(toRow(request), last)) differences.add('row', `${referenceId} ${text}`);
  }
  for (const [referenceId] of byReference)
    differences.add('uninvited', `${referenceId} has a row, but was never accepted`);
  return attempts.length;
}

export const toRow = (request: ShownMint): MintAttemptRow => ({
  referenceId: request.reference_id,
  contract: request.collection_address,
  status: request.status,
  tokenId: request.token_id,
  amount: request.amount,
  owner: request.owner_address,
  transactionHash: request.transaction_hash,
  activityId: request.activity_id,
  error: request.error?.message ?? null,
});
