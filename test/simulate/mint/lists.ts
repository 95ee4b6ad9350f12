import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { type CollectionKind, isAccepted, referencePrefix } from './assets.ts';
import { COLLECTIONS, describeResponse, type MintStage, mintsOf, type ShownEnvelope } from './stage.ts';

const requestSchema = z.strictObject({
  chain: z.strictObject({ id: z.string(), name: z.string() }),
  collection_address: z.string(),
  reference_id: z.string(),
  owner_address: z.string(),
  status: z.enum(['pending', 'succeeded', 'failed']),
  token_id: z.string().nullable(),
  amount: z.string().nullable(),
  activity_id: z.string().nullable(),
  transaction_hash: z.string().nullable(),
  error: z.strictObject({ message: z.string() }).nullable(),
  created_at: z.string(),
  updated_at: z.string(),
});
const pageSchema = z.strictObject({
  result: z.array(requestSchema),
  page: z.strictObject({ previous_cursor: z.string().min(1), next_cursor: z.string().min(1) }),
});

export type ShownMint = z.infer<typeof requestSchema>;
export type MintListPage = z.infer<typeof pageSchema>;
export type MintStatusName = ShownMint['status'];
export const STATUSES: readonly MintStatusName[] = ['pending', 'succeeded', 'failed'];

export interface ListWalk {
  readonly collection: CollectionKind;
  readonly status?: MintStatusName;
  readonly pageSize: number;
  readonly from: string | null;
  readonly isBackwards?: boolean;
  readonly mayRepeat?: boolean;
}

export async function readMintPage(
  stage: MintStage,
  collection: CollectionKind,
  query: Readonly<Record<string, string>>,
): Promise<MintListPage | null> {
  const path = `${mintsOf(stage, collection)}?${new URLSearchParams(query)}`;
  const response = await stage.api.call({ path });
  const parsed = response.status === 200 ? pageSchema.safeParse(response.json) : null;
  if (parsed?.success === true) return parsed.data;
  const why = parsed === null ? describeResponse(response) : `is not a page: ${z.prettifyError(parsed.error)}`;
  stage.differences.add('answer', `the ${collection} page ${JSON.stringify(query)} ${why}`);
  return null;
}

export async function readMint(
  stage: MintStage,
  collection: CollectionKind,
  referenceId: string,
): Promise<MintListPage | null> {
  const response = await stage.api.call({ path: `${mintsOf(stage, collection)}/${encodeURIComponent(referenceId)}` });
  const parsed = response.status === 200 ? pageSchema.safeParse(response.json) : null;
  if (parsed?.success === true && parsed.data.result[0]?.reference_id === referenceId) return parsed.data;
  stage.differences.add('answer', `GET ${referenceId} ${describeResponse(response)}`);
  return null;
}

/**
 * Reads all pages and checks that each reference id is listed once and that requests are in order of acceptance.
 * @returns the run's requests in list order
 */
export async function walkList(stage: MintStage, walk: ListWalk) {
  const { collection, status, pageSize, from, isBackwards = false } = walk;
  const prefix = referencePrefix(stage.run);
  const requests: ShownMint[] = [];
  const check = createOrderCheck(stage, walk);
  let cursor = from;
  stage.counts.lists++;
  for (let emptyPages = 0; ; ) {
    const query = {
      page_size: String(pageSize),
      ...(status === undefined ? {} : { status }),
      ...(cursor === null ? {} : { page_cursor: cursor }),
    };
    const page = await readMintPage(stage, collection, query);
    if (page === null) return { requests, end: cursor ?? '' };
    const { result } = page;
    for (const request of isBackwards ? result.toReversed() : result) {
      check(request);
      if (request.reference_id.startsWith(prefix)) requests.push(request);
    }
    stage.counts.listed += result.length;
    const next = isBackwards ? page.page.previous_cursor : page.page.next_cursor;
    // A page in the middle of the list may be empty, because replaced attempts are skipped.
    emptyPages = result.length === 0 ? emptyPages + 1 : 0;
    if (result.length === 0 && (next === cursor || emptyPages > 1)) return { requests, end: page.page.previous_cursor };
    cursor = next;
  }
}

function createOrderCheck({ differences }: MintStage, walk: ListWalk): (request: ShownMint) => void {
  const name = `${walk.collection}${walk.status === undefined ? '' : ` ${walk.status}`}${walk.isBackwards ? ' backwards' : ''}`;
  const seen = new Map<string, MintStatusName>();
  let before: string | null = null;
  return ({ reference_id, status, created_at }) => {
    const isRetry = walk.mayRepeat === true && seen.get(reference_id) === 'failed';
    if (seen.has(reference_id) && !isRetry) differences.add('list', `${name}: ${reference_id} is listed twice`);
    seen.set(reference_id, status);
    if (walk.status !== undefined && status !== walk.status)
      differences.add('list', `${name}: ${reference_id} is ${status}`);
    const isInOrder = before === null || (walk.isBackwards ? created_at <= before : created_at >= before);
    if (!isInOrder)
      differences.add('list', `${name}: ${reference_id}, created at ${created_at}, is listed after ${before}`);
    before = created_at;
  };
}

export type ShownMints = ReadonlyMap<string, ShownMint>;

/** For each collection, the cursor before the run's first request; null for the beginning of the list. */
export type FirstCursors = Readonly<Record<(typeof COLLECTIONS)[number], string | null>>;

const PAGE_SIZE = 200;
const POLL_MS = 1_500;

export async function readShown(stage: MintStage, from: FirstCursors): Promise<ShownMints> {
  const shown = new Map<string, ShownMint>();
  for (const collection of COLLECTIONS) {
    const walk = { collection, pageSize: PAGE_SIZE, from: from[collection], mayRepeat: true };
    const { requests } = await walkList(stage, walk);
    for (const request of requests) shown.set(request.reference_id, request);
  }
  return shown;
}

// Waits until all accepted requests have a result, or until nothing has changed for `settleIdleMaxMs`. A retried
// request is open until the list contains the new attempt.
export async function awaitEnd(stage: MintStage, from: FirstCursors, again: ReadonlySet<string>): Promise<ShownMints> {
  const { ledger, options } = stage;
  let [before, changedAt] = ['', performance.now()];
  for (;;) {
    const shown = await readShown(stage, from);
    const open = ledger.entries().filter((entry) => {
      const request = shown.get(entry.asset.referenceId);
      if (request === undefined) return isAccepted(entry);
      // The list lags by a few seconds, so the result may belong to the earlier attempt.
      return request.status === 'pending' || (request.status === 'failed' && again.has(request.reference_id));
    });
    options.onProgress(toProgress(shown, open.length));
    if (open.length === 0) return shown;
    const states = [...shown.values()].map(({ reference_id, status }) => `${reference_id}${status}`).join();
    if (states !== before) [before, changedAt] = [states, performance.now()];
    if (performance.now() - changedAt > options.settleIdleMaxMs) return shown;
    await delay(POLL_MS);
  }
}

function toProgress(shown: ShownMints, open: number): string {
  const counts = Map.groupBy(shown.values(), ({ status }) => status);
  const countOf = (status: ShownMint['status']) => counts.get(status)?.length ?? 0;
  return `${countOf('succeeded')} minted, ${countOf('failed')} failed, ${open} open`;
}

/** Small, so that a run's requests span many pages. */
const PAGE_SIZES = [3, 7, 50];
const LARGE_PAGE_SIZE = 200;
const PAGES_MAX = 25;

export async function findFirstCursor(stage: MintStage, collection: CollectionKind): Promise<string | null> {
  const first = stage.ledger.entries().find(({ asset }) => asset.collection === collection);
  if (first === undefined) return null;
  const found = await readMint(stage, collection, first.asset.referenceId);
  return found?.page.previous_cursor ?? null;
}

/** Reads lists while they are growing: the run's requests in small pages, and all requests with one status. */
export async function playLists(stage: MintStage, collection: CollectionKind, from: string | null): Promise<void> {
  const { random, ledger, differences } = stage;
  if (from === null) return;
  const pageSize = Math.min(LARGE_PAGE_SIZE, Math.max(random.pick(PAGE_SIZES), Math.ceil(ledger.accepted / PAGES_MAX)));
  const { requests } = await walkList(stage, { collection, pageSize, from });
  for (const { reference_id } of requests)
    if (ledger.find(reference_id) === null)
      differences.add('uninvited', `${reference_id} is in the ${collection} list, but was never requested`);
  const status = random.pick(STATUSES);
  await walkList(stage, { collection, status, pageSize: LARGE_PAGE_SIZE, from: null });
}

/** Sends cursors from another collection or status, which the API must refuse. */
export async function playForeignCursors(stage: MintStage): Promise<void> {
  const page = await readMintPage(stage, 'erc721', { status: 'pending', page_size: '1' });
  if (page === null) return;
  const { next_cursor: page_cursor } = page.page;
  for (const [collection, query] of [
    ['erc721', { status: 'failed', page_cursor }],
    ['erc721', { page_cursor }],
    ['erc1155', { status: 'pending', page_cursor }],
  ] as const) {
    stage.counts.probes++;
    const response = await stage.api.call({ path: `${mintsOf(stage, collection)}?${new URLSearchParams(query)}` });
    const fields = ((response.json ?? {}) as ShownEnvelope).details?.errors?.map(({ field }) => field);
    if (response.status !== 400 || fields?.join() !== 'page_cursor')
      stage.differences.add(
        'answer',
        `a cursor from another list: expected 400 for page_cursor, ${describeResponse(response)}`,
      );
  }
}
