import { randomUUID } from 'node:crypto';
import { createDeck } from '@playline/testkit/random';
import { type ApiCall, describeAnswer, describeQuota, type ShownEnvelope } from './api.ts';
import { makeMetadata, type RequestedAsset, THRESHOLD, toBody } from './assets.ts';
import { type MintStage, mintsOf, pathOf } from './stage.ts';

const toOrder = (assets: readonly RequestedAsset[]) => ({ assets: assets.map(toBody) });

/**
 * Requests assets of one collection that must be accepted. After a lost answer, 409 names those that the attempt has
 * stored; the others are requested again.
 * @param assets not empty, all of one collection
 */
export async function sendOrder(stage: MintStage, assets: readonly RequestedAsset[]): Promise<void> {
  const { api, book, differences, counts } = stage;
  counts.orders++;
  const path = mintsOf(stage, assets[0]!.collection);
  let rest = assets;
  while (rest.length > 0) {
    const answer = await api.call({ method: 'POST', path, body: toOrder(rest) });
    if (answer.status === 202) {
      const fault = describeQuota('mint', answer);
      if (fault !== null) differences.add('answer', `an order: ${fault}`);
      return book.accept(rest);
    }
    const taken = answer.status === 409 && answer.isDoubtful ? findTaken(rest, answer.json) : [];
    book.accept(taken);
    rest = rest.filter((asset) => !taken.includes(asset));
    if (taken.length > 0) continue;
    if (answer.status === null && answer.isDoubtful) return book.doubt(rest);
    return differences.add(
      'answer',
      `an order of ${rest[0]!.referenceId} and ${rest.length - 1} more ${describeAnswer(answer)}`,
    );
  }
}

function findTaken(assets: readonly RequestedAsset[], json: unknown): readonly RequestedAsset[] {
  const values = (json as ShownEnvelope | null)?.details?.values;
  const ids = new Set(Array.isArray(values) ? values : []);
  return assets.filter(({ referenceId }) => ids.has(referenceId));
}

export interface ConflictingOrder {
  readonly name: string;
  /** All of one collection. */
  readonly assets: readonly RequestedAsset[];
  /** Reference ids that the answer must name, in order. */
  readonly taken: readonly string[];
  /** Reference ids that must stay unknown. */
  readonly fresh: readonly string[];
}

/** Requests assets of which some are taken: none may be accepted, and the answer must name all taken ones. */
export async function sendConflict(stage: MintStage, order: ConflictingOrder): Promise<void> {
  const { api, differences, counts } = stage;
  const { name, assets, taken, fresh } = order;
  counts.conflicts++;
  const { collection } = assets[0]!;
  const answer = await api.call({ method: 'POST', path: mintsOf(stage, collection), body: toOrder(assets) });
  const { code, details } = (answer.json ?? {}) as ShownEnvelope;
  const values = JSON.stringify(details?.values);
  if (answer.status !== 409 || code !== 'CONFLICT_ERROR')
    differences.add('answer', `${name}: expected 409, ${describeAnswer(answer)}`);
  else if (values !== JSON.stringify(taken))
    differences.add('answer', `${name}: expected ${JSON.stringify(taken)} to be named as taken, was ${values}`);
  for (const referenceId of fresh) await expectAbsent(stage, collection, { referenceId, name });
}

export async function expectAbsent(
  stage: MintStage,
  collection: RequestedAsset['collection'],
  { referenceId, name }: { referenceId: string; name: string },
): Promise<void> {
  const answer = await stage.api.call({ path: `${mintsOf(stage, collection)}/${encodeURIComponent(referenceId)}` });
  if (answer.status === 404) return;
  const kind = answer.status === 200 ? 'uninvited' : 'answer';
  stage.differences.add(kind, `${name}: ${referenceId} must not be known, and ${describeAnswer(answer)}`);
}

export interface MintProbe {
  readonly name: string;
  readonly call: ApiCall;
  readonly status: number;
  readonly code: string;
  /** Expected names in `details.errors`, in order; absent for other errors. */
  readonly fields?: readonly string[];
  /** Reference id of a valid asset in the same call, which must not be accepted. */
  readonly fresh?: string;
}

const INVALID = { status: 400, code: 'VALIDATION_ERROR' } as const;
const ABSENT = { status: 404, code: 'RESOURCE_NOT_FOUND' } as const;
const ASSETS_MAX = 100;
const STACKS_MAX = 10;
const METADATA_BYTES_MAX = 16 * 1024;
const REFERENCE_CHARACTERS_MAX = 256;

export function createProbe(stage: MintStage): () => Promise<void> {
  const draw = createDeck(stage.random, [...listBodies(stage), ...listAccess(stage), ...listQueries(stage)]);
  return async () => {
    const probe = draw()();
    stage.counts.probes++;
    const answer = await stage.api.call(probe.call);
    const { code, details } = (answer.json ?? {}) as ShownEnvelope;
    const fields = details?.errors?.map(({ field }) => field);
    const isExpected = answer.status === probe.status && code === probe.code;
    if (!isExpected)
      stage.differences.add(
        'answer',
        `${probe.name}: expected ${probe.status} ${probe.code}, ${describeAnswer(answer)}`,
      );
    else if (probe.fields !== undefined && JSON.stringify(fields) !== JSON.stringify(probe.fields))
      stage.differences.add('answer', `${probe.name}: expected errors of ${probe.fields}, got ${fields}`);
    if (probe.fresh !== undefined) await expectAbsent(stage, 'erc721', { referenceId: probe.fresh, name: probe.name });
  };
}

type MakeProbe = () => MintProbe;

function listBodies(stage: MintStage): readonly MakeProbe[] {
  const post = (body: unknown): ApiCall => ({ method: 'POST', path: mintsOf(stage, 'erc721'), body });
  const refused = (name: string, body: unknown, ...fields: string[]): MakeProbe => {
    return () => ({ ...INVALID, name, call: post(body), ...(fields.length === 0 ? {} : { fields }) });
  };
  const wrong = (name: string, member: Readonly<Record<string, unknown>>, field: string): MakeProbe => {
    return () => {
      const good = stage.assets.good('erc721');
      const other = { ...toBody(stage.assets.good('erc721')), ...member };
      const call = post({ assets: [toBody(good), other] });
      return { ...INVALID, name, call, fields: [`assets[1].${field}`], fresh: good.referenceId };
    };
  };
  return [
    refused('a body that is cut short', '{"assets":[{"reference_id":'),
    refused('a list as the body', []),
    refused('an order without assets', {}, 'assets'),
    refused('an order of no asset', { assets: [] }, 'assets'),
    () => {
      const assets = Array.from({ length: ASSETS_MAX + 1 }, () => stage.assets.good('erc721'));
      const fresh = assets[0]!.referenceId;
      return { ...INVALID, name: '101 assets', call: post({ assets: assets.map(toBody) }), fields: ['assets'], fresh };
    },
    wrong('a blank reference id', { reference_id: ' ' }, 'reference_id'),
    wrong('a reference id that is a number', { reference_id: 7 }, 'reference_id'),
    wrong(
      'a reference id that is too long',
      { reference_id: 'x'.repeat(REFERENCE_CHARACTERS_MAX + 1) },
      'reference_id',
    ),
    wrong('an owner that is a name', { owner_address: 'ada.example' }, 'owner_address'),
    wrong('an owner that is cut short', { owner_address: `0x${'a'.repeat(39)}` }, 'owner_address'),
    wrong('a token id that is a number', { token_id: 7 }, 'token_id'),
    wrong('a token id in hexadecimal', { token_id: '0x7' }, 'token_id'),
    wrong('a token id with a zero in front', { token_id: '07' }, 'token_id'),
    wrong('a token id of 257 bits', { token_id: String(THRESHOLD * THRESHOLD) }, 'token_id'),
    wrong('an amount of nothing', { amount: '0' }, 'amount'),
    wrong('metadata that is a text', { metadata: 'a sword' }, 'metadata'),
    wrong('metadata that is too long', { metadata: { name: 'x'.repeat(METADATA_BYTES_MAX) } }, 'metadata'),
    wrong('a trait without a type', { metadata: { attributes: [{ value: 1 }] } }, 'metadata.attributes[0].trait_type'),
    refused(
      'an order with three errors',
      { assets: [{ reference_id: '', owner_address: null }, 5] },
      ...['assets[0].reference_id', 'assets[0].owner_address', 'assets[1]'],
    ),
  ];
}

function listAccess(stage: MintStage): readonly MakeProbe[] {
  const { options, run, random, assets } = stage;
  const { keyHeader, publishableKey, chain } = options;
  const order = (name: string, over: Partial<ApiCall>, expected: Pick<MintProbe, 'status' | 'code'>): MakeProbe => {
    return () => {
      const good = assets.good('erc721');
      const call: ApiCall = {
        method: 'POST',
        path: mintsOf(stage, 'erc721'),
        body: { assets: [toBody(good)] },
        ...over,
      };
      return { ...expected, name, call, fresh: good.referenceId };
    };
  };
  const refused = { status: 401, code: 'UNAUTHORISED_REQUEST' } as const;
  const unlinked = `0x${run.tag}${random.hex(40 - run.tag.length)}`;
  return [
    order('an order without a key', { headers: { [keyHeader]: null } }, INVALID),
    order('an order with a key that is none', { headers: { [keyHeader]: 'hello' } }, refused),
    order('an order with a publishable key', { headers: { [keyHeader]: publishableKey } }, refused),
    order(
      'an order on another chain',
      { path: `/v1/chains/no-such-chain/collections/${options.contracts.erc721}/nfts/mint-requests` },
      ABSENT,
    ),
    order(
      'an order of a collection that no project has linked',
      { path: `/v1/chains/${chain.name}/collections/${unlinked}/nfts/mint-requests` },
      ABSENT,
    ),
    order(
      'an order of an address that is none',
      { path: `/v1/chains/${chain.name}/collections/0x12/nfts/mint-requests` },
      INVALID,
    ),
  ];
}

function listQueries(stage: MintStage): readonly MakeProbe[] {
  const get = (name: string, query: string, field: string): MakeProbe => {
    return () => ({ ...INVALID, name, call: { path: `${mintsOf(stage, 'erc1155')}?${query}` }, fields: [field] });
  };
  const refresh = (name: string, given: { path: string; body: unknown }, field: string): MakeProbe => {
    const path = `${pathOf(stage, 'erc721')}${given.path}`;
    return () => ({ ...INVALID, name, call: { method: 'POST', path, body: given.body }, fields: [field] });
  };
  const { name: _, ...nameless } = makeMetadata(stage.random);
  const stack = () => ({ metadata_id: randomUUID(), ...makeMetadata(stage.random) });
  const [stacks, tokens] = ['/metadata/refresh-metadata', '/nfts/refresh-metadata'];
  return [
    get('a list of a status that is none', 'status=done', 'status'),
    get('a page of no request', 'page_size=0', 'page_size'),
    get('a page that is too long', 'page_size=201', 'page_size'),
    get('a cursor that is none', 'page_cursor=abc', 'page_cursor'),
    () => {
      const path = `${mintsOf(stage, 'erc721')}/${encodeURIComponent(stage.assets.newReference())}`;
      return { ...ABSENT, name: 'a reference id that no request has used', call: { path } };
    },
    refresh('metadata of nothing', { path: '/refresh-metadata', body: {} }, 'collection_metadata'),
    refresh(
      'metadata of a token without its name',
      { path: tokens, body: { nft_metadata: [{ token_id: '1', ...nameless }] } },
      'nft_metadata[0].name',
    ),
    refresh(
      'metadata of no token',
      { path: tokens, body: { nft_metadata: [makeMetadata(stage.random)] } },
      'nft_metadata[0].token_id',
    ),
    refresh(
      'metadata of eleven stacks',
      { path: stacks, body: { metadata: Array.from({ length: STACKS_MAX + 1 }, stack) } },
      'metadata',
    ),
    refresh(
      'metadata of a stack without an id',
      { path: stacks, body: { metadata: [{ ...stack(), metadata_id: '7' }] } },
      'metadata[0].metadata_id',
    ),
  ];
}
