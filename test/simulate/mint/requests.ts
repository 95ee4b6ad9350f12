import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { createDeck } from '@playline/testkit/random';
import { describeDifferences } from '../report.ts';
import { type CollectionKind, createMetadata, type RequestedAsset, THRESHOLD, toBody } from './assets.ts';
import {
  type ApiCall,
  type ApiResponse,
  describeQuota,
  describeResponse,
  type MintStage,
  mintsOf,
  pathOf,
  remainingRefreshesOf,
  type ShownEnvelope,
} from './stage.ts';

const toRequestBody = (assets: readonly RequestedAsset[]) => ({ assets: assets.map(toBody) });

/**
 * Requests assets that must be accepted. After a lost response, a 409 lists the assets that are already stored; the
 * remaining assets are requested again.
 * @param assets at least one asset; all must belong to one collection
 */
export async function requestAssets(stage: MintStage, assets: readonly RequestedAsset[]): Promise<void> {
  const { api, ledger, differences, counts } = stage;
  counts.orders++;
  const path = mintsOf(stage, assets[0]!.collection);
  let remaining = assets;
  let wasRepeated = false;
  while (remaining.length > 0) {
    const response = await api.call({ method: 'POST', path, body: toRequestBody(remaining) });
    wasRepeated ||= response.mayBeStored;
    if (response.status === 202) {
      const text = describeQuota('mint', response);
      if (text !== null) differences.add('answer', `a mint request: ${text}`);
      return ledger.accept(remaining, wasRepeated);
    }
    const taken = response.status === 409 && response.mayBeStored ? findTaken(remaining, response.json) : [];
    ledger.accept(taken);
    remaining = remaining.filter((asset) => !taken.includes(asset));
    if (taken.length > 0) continue;
    if (response.status === null && response.mayBeStored) return ledger.recordUnacknowledged(remaining);
    const name = `a mint request for ${remaining[0]!.referenceId} and ${remaining.length - 1} more`;
    return differences.add('answer', `${name} ${describeResponse(response)}`);
  }
}

function findTaken(assets: readonly RequestedAsset[], json: unknown): readonly RequestedAsset[] {
  const values = (json as ShownEnvelope | null)?.details?.values;
  const ids = new Set(Array.isArray(values) ? values : []);
  return assets.filter(({ referenceId }) => ids.has(referenceId));
}

interface ConflictingRequest {
  readonly name: string;
  readonly assets: readonly RequestedAsset[];
  /** Reference ids that are already in use. The response must list them in this order. */
  readonly taken: readonly string[];
  /** New reference ids, which must remain unknown. */
  readonly fresh: readonly string[];
}

/** Requests assets, some with taken reference ids. The response must list all taken ids; no asset may be accepted. */
export async function sendConflict(stage: MintStage, request: ConflictingRequest): Promise<void> {
  const { api, differences, counts } = stage;
  const { name, assets, taken, fresh } = request;
  counts.conflicts++;
  const { collection } = assets[0]!;
  const response = await api.call({ method: 'POST', path: mintsOf(stage, collection), body: toRequestBody(assets) });
  const { code, details } = (response.json ?? {}) as ShownEnvelope;
  const values = JSON.stringify(details?.values);
  if (response.status !== 409 || code !== 'CONFLICT_ERROR')
    differences.add('answer', `${name}: expected 409, ${describeResponse(response)}`);
  else if (values !== JSON.stringify(taken))
    differences.add('answer', `${name}: expected the taken ids ${JSON.stringify(taken)}, got ${values}`);
  for (const referenceId of fresh) await expectAbsent(stage, name, collection, referenceId);
}

async function expectAbsent(stage: MintStage, name: string, collection: CollectionKind, referenceId: string) {
  const response = await stage.api.call({ path: `${mintsOf(stage, collection)}/${encodeURIComponent(referenceId)}` });
  if (response.status === 404) return;
  const kind = response.status === 200 ? 'uninvited' : 'answer';
  stage.differences.add(kind, `${name}: ${referenceId} must be unknown, but ${describeResponse(response)}`);
}

interface MintProbe {
  readonly name: string;
  readonly call: ApiCall;
  readonly status: number;
  readonly code: string;
  /** Expected fields in `details.errors`, in order; absent for other errors. */
  readonly fields?: readonly string[];
  /** The reference id of a valid asset in the same call. The asset must not be accepted. */
  readonly fresh?: string;
}

const INVALID = { status: 400, code: 'VALIDATION_ERROR' } as const;
const ABSENT = { status: 404, code: 'RESOURCE_NOT_FOUND' } as const;
const ASSETS_MAX = 100;
const STACKS_MAX = 10;
const METADATA_BYTES_MAX = 16 * 1024;

export function createProbe(stage: MintStage): () => Promise<void> {
  const draw = createDeck(stage.random, [...listBodies(stage), ...listAccess(stage), ...listQueries(stage)]);
  return async () => {
    const probe = draw()();
    stage.counts.probes++;
    const response = await stage.api.call(probe.call);
    const { code, details } = (response.json ?? {}) as ShownEnvelope;
    const fields = details?.errors?.map(({ field }) => field);
    const isExpected = response.status === probe.status && code === probe.code;
    const report = (text: string) => stage.differences.add('answer', `${probe.name}: ${text}`);
    if (!isExpected) report(`expected ${probe.status} ${probe.code}, ${describeResponse(response)}`);
    else if (probe.fields !== undefined && JSON.stringify(fields) !== JSON.stringify(probe.fields))
      report(`expected errors for ${probe.fields}, got ${fields}`);
    if (probe.fresh !== undefined) await expectAbsent(stage, probe.name, 'erc721', probe.fresh);
  };
}

type CreateProbe = () => MintProbe;

function listBodies(stage: MintStage): readonly CreateProbe[] {
  const post = (body: unknown): ApiCall => ({ method: 'POST', path: mintsOf(stage, 'erc721'), body });
  const refused = (name: string, body: unknown, ...fields: string[]): CreateProbe => {
    return () => ({ ...INVALID, name, call: post(body), ...(fields.length === 0 ? {} : { fields }) });
  };
  const wrong = (name: string, member: Readonly<Record<string, unknown>>, field: string): CreateProbe => {
    return () => {
      const mintable = stage.assets.mintable('erc721');
      const other = { ...toBody(stage.assets.mintable('erc721')), ...member };
      const call = post({ assets: [toBody(mintable), other] });
      return { ...INVALID, name, call, fields: [`assets[1].${field}`], fresh: mintable.referenceId };
    };
  };
  return [
    refused('a truncated body', '{"assets":[{"reference_id":'),
    refused('a request without assets', { assets: [] }, 'assets'),
    () => {
      const assets = Array.from({ length: ASSETS_MAX + 1 }, () => stage.assets.mintable('erc721'));
      const fresh = assets[0]!.referenceId;
      return { ...INVALID, name: '101 assets', call: post({ assets: assets.map(toBody) }), fields: ['assets'], fresh };
    },
    wrong('a blank reference id', { reference_id: ' ' }, 'reference_id'),
    wrong('an owner that is not an address', { owner_address: 'ada.example' }, 'owner_address'),
    wrong('a token id that is a number', { token_id: 7 }, 'token_id'),
    wrong('a token id with 257 bits', { token_id: String(THRESHOLD * THRESHOLD) }, 'token_id'),
    wrong('metadata that is too long', { metadata: { name: 'x'.repeat(METADATA_BYTES_MAX) } }, 'metadata'),
    wrong('a trait without a type', { metadata: { attributes: [{ value: 1 }] } }, 'metadata.attributes[0].trait_type'),
    refused(
      'a request with three errors',
      { assets: [{ reference_id: '', owner_address: null }, 5] },
      ...['assets[0].reference_id', 'assets[0].owner_address', 'assets[1]'],
    ),
  ];
}

function listAccess(stage: MintStage): readonly CreateProbe[] {
  const { options, run, random, assets } = stage;
  const { keyHeader, publishableKey, chain } = options;
  const probe = (
    name: string,
    changes: Partial<ApiCall>,
    expected: Pick<MintProbe, 'status' | 'code'>,
  ): CreateProbe => {
    return () => {
      const mintable = assets.mintable('erc721');
      const call: ApiCall = {
        method: 'POST',
        path: mintsOf(stage, 'erc721'),
        body: { assets: [toBody(mintable)] },
        ...changes,
      };
      return { ...expected, name, call, fresh: mintable.referenceId };
    };
  };
  const refused = { status: 401, code: 'UNAUTHORISED_REQUEST' } as const;
  const collectionOn = (name: string, contract: string) => ({
    path: `/v1/chains/${name}/collections/${contract}/nfts/mint-requests`,
  });
  const unlinked = `0x${run.tag}${random.hex(40 - run.tag.length)}`;
  return [
    probe('a request without a key', { headers: { [keyHeader]: null } }, INVALID),
    probe('a request with an invalid key', { headers: { [keyHeader]: 'hello' } }, refused),
    probe('a request with a publishable key', { headers: { [keyHeader]: publishableKey } }, refused),
    probe('a request for an unknown chain', collectionOn('no-such-chain', options.contracts.erc721), ABSENT),
    probe('a request for an unlinked collection', collectionOn(chain.name, unlinked), ABSENT),
  ];
}

function listQueries(stage: MintStage): readonly CreateProbe[] {
  const get = (name: string, query: string, field: string): CreateProbe => {
    return () => ({ ...INVALID, name, call: { path: `${mintsOf(stage, 'erc1155')}?${query}` }, fields: [field] });
  };
  const refresh = (name: string, path: string, body: unknown, field: string): CreateProbe => {
    const call: ApiCall = { method: 'POST', path: `${pathOf(stage, 'erc721')}${path}`, body };
    return () => ({ ...INVALID, name, call, fields: [field] });
  };
  const { name: _, ...nameless } = createMetadata(stage.random);
  const unnamed = { token_id: '1', ...nameless };
  const stack = () => ({ metadata_id: randomUUID(), ...createMetadata(stage.random) });
  const withoutId = { ...stack(), metadata_id: '7' };
  const [stacks, tokens] = ['/metadata/refresh-metadata', '/nfts/refresh-metadata'];
  return [
    get('a list with an unknown status', 'status=done', 'status'),
    get('a page size above the limit', 'page_size=201', 'page_size'),
    get('an invalid cursor', 'page_cursor=abc', 'page_cursor'),
    () => {
      const path = `${mintsOf(stage, 'erc721')}/${encodeURIComponent(stage.assets.newReference())}`;
      return { ...ABSENT, name: 'an unknown reference id', call: { path } };
    },
    refresh('an empty collection refresh', '/refresh-metadata', {}, 'collection_metadata'),
    refresh('token metadata without a name', tokens, { nft_metadata: [unnamed] }, 'nft_metadata[0].name'),
    refresh(
      'metadata for eleven stacks',
      stacks,
      { metadata: Array.from({ length: STACKS_MAX + 1 }, stack) },
      'metadata',
    ),
    refresh('stack metadata with an invalid id', stacks, { metadata: [withoutId] }, 'metadata[0].metadata_id'),
  ];
}

type Refreshes = ReturnType<typeof createRefreshes>;

/** Maximum fraction of the remaining quota per call. */
const QUOTA_FRACTION_MAX = 0.1;
const UNITS_MAX = 500;
const TOKENS_MAX = 12;

const keyOfMetadata = (contract: string, kind: string, subject: string): string => `${contract} ${kind} ${subject}`;

interface SentMetadata {
  readonly kind: 'collection' | 'token' | 'stack';
  readonly subject: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export function createRefreshes(stage: MintStage) {
  const { random, counts, differences, options, ledger } = stage;
  const sent = new Map<string, Readonly<Record<string, unknown>> | null>();
  const stacks = Array.from({ length: STACKS_MAX }, () => randomUUID());
  let remaining = Number.POSITIVE_INFINITY;
  const send = async (collection: CollectionKind, subjects: readonly SentMetadata[]) => {
    if (counts.refreshed + subjects.length > UNITS_MAX || subjects.length > remaining * QUOTA_FRACTION_MAX) return;
    counts.refreshes++;
    counts.refreshed += subjects.length;
    const response = await stage.api.call(toCall(stage, collection, subjects));
    const error = describeError(stage, { collection, subjects, response });
    if (error !== null) differences.add('answer', `metadata for ${subjects.length} ${subjects[0]?.kind}: ${error}`);
    remaining = remainingRefreshesOf(response) ?? remaining;
    for (const { kind, subject, metadata } of subjects) {
      const key = keyOfMetadata(options.contracts[collection], kind, subject);
      if (error === null) sent.set(key, metadata);
      else if (response.status === null) sent.set(key, null);
    }
  };
  return {
    /** Sent metadata by `contract kind subject`; null if no response arrived, so that the stored value is unknown. */
    sent,
    play: async (): Promise<void> => {
      const collection = random.chance(0.5) ? 'erc721' : 'erc1155';
      const kind = random.pick(['collection', 'token', 'token', 'stack'] as const);
      const count = random.integer(1, kind === 'token' ? TOKENS_MAX : STACKS_MAX);
      if (kind === 'collection')
        return send(collection, [{ kind, subject: '', metadata: createCollectionMetadata(stage) }]);
      const known = ledger.entries().filter(({ asset }) => asset.collection === collection && asset.tokenId !== null);
      const subjects = kind === 'stack' ? stacks : [...new Set(known.map(({ asset }) => asset.tokenId!))];
      const drawn = random.shuffle(subjects).slice(0, count);
      if (drawn.length === 0) return;
      return send(
        collection,
        drawn.map((subject) => ({ kind, subject, metadata: createMetadata(random) })),
      );
    },
  };
}

function createCollectionMetadata({ random, run }: MintStage): Record<string, string | null> {
  return {
    name: `Demo of ${run.tag}`,
    symbol: 'DEMO',
    description: random.chance(0.5) ? null : `Version ${random.hex(6)} “Ü”`,
    image: `https://images.example/${random.hex(8)}.png`,
    external_link: null,
    contract_uri: null,
    base_uri: null,
  };
}

function toCall(stage: MintStage, collection: CollectionKind, subjects: readonly SentMetadata[]): ApiCall {
  const path = pathOf(stage, collection);
  const [{ kind, metadata }] = subjects as [SentMetadata, ...SentMetadata[]];
  if (kind === 'collection')
    return { method: 'POST', path: `${path}/refresh-metadata`, body: { collection_metadata: metadata } };
  const list = subjects.map((each) => ({
    ...each.metadata,
    [kind === 'token' ? 'token_id' : 'metadata_id']: each.subject,
  }));
  if (kind === 'token') return { method: 'POST', path: `${path}/nfts/refresh-metadata`, body: { nft_metadata: list } };
  return { method: 'POST', path: `${path}/metadata/refresh-metadata`, body: { metadata: list } };
}

function describeError(
  { options }: MintStage,
  sent: { collection: CollectionKind; subjects: readonly SentMetadata[]; response: ApiResponse },
): string | null {
  const { collection, subjects, response } = sent;
  const isCollection = subjects[0]?.kind === 'collection';
  if (response.status !== (isCollection ? 200 : 202)) return describeResponse(response);
  if (isCollection) {
    const { id, name } = options.chain;
    const contract_address = options.contracts[collection];
    const expected = { contract_address, chain: { id, name }, collection_metadata: subjects[0]?.metadata };
    const wrong = describeDifferences(expected, response.json);
    if (wrong.length > 0) return wrong.join('; ');
  }
  return describeQuota('refresh', response);
}

const POLL_MS = 1_000;

export async function checkMetadata(stage: MintStage, { sent }: Refreshes): Promise<number> {
  const { options, differences } = stage;
  const known = [...sent].filter(([, metadata]) => metadata !== null);
  if (known.length === 0) return 0;
  const endAt = performance.now() + options.settleIdleMaxMs;
  for (;;) {
    const wrong = await findWrong(stage, known);
    if (wrong.length === 0 || performance.now() > endAt) {
      for (const text of wrong) differences.add('metadata', text);
      return known.length;
    }
    await delay(POLL_MS);
  }
}

async function findWrong({ rows, options }: MintStage, known: [string, unknown][]): Promise<readonly string[]> {
  const stored = await rows.metadata([options.contracts.erc721, options.contracts.erc1155]);
  const byKey = new Map(
    stored.map(({ contract, kind, subject, metadata }) => [keyOfMetadata(contract, kind, subject), metadata]),
  );
  return known.flatMap(([key, metadata]) => {
    const text = byKey.get(key);
    if (text === undefined) return [`${key} is not stored`];
    return describeDifferences(metadata, JSON.parse(text)).map((difference) => `${key} ${difference}`);
  });
}
