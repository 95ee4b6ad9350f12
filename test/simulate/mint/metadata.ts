import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { describeDifferences } from '../report.ts';
import { type ApiAnswer, type ApiCall, describeAnswer, describeQuota, remainingRefreshesOf } from './api.ts';
import { type CollectionKind, makeMetadata } from './assets.ts';
import { type MintStage, pathOf } from './stage.ts';

export type Refreshes = ReturnType<typeof createRefreshes>;

/** Maximum share of the remaining quota to use. */
const SHARE_MAX = 0.1;
/** Maximum number of metadata updates of one run. */
const UNITS_MAX = 500;
const TOKENS_MAX = 12;
const STACKS_MAX = 10;

export const keyOfMetadata = (contract: string, kind: string, subject: string): string =>
  `${contract} ${kind} ${subject}`;

interface GivenMetadata {
  readonly kind: 'collection' | 'token' | 'stack';
  readonly subject: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export function createRefreshes(stage: MintStage) {
  const { random, counts, differences, options, book } = stage;
  const given = new Map<string, Readonly<Record<string, unknown>> | null>();
  const stacks = Array.from({ length: STACKS_MAX }, () => randomUUID());
  let remaining = Number.POSITIVE_INFINITY;
  const send = async (collection: CollectionKind, subjects: readonly GivenMetadata[]) => {
    if (counts.refreshed + subjects.length > UNITS_MAX || subjects.length > remaining * SHARE_MAX) return;
    counts.refreshes++;
    counts.refreshed += subjects.length;
    const answer = await stage.api.call(toCall(stage, collection, subjects));
    const fault = describeFault(stage, { collection, subjects, answer });
    if (fault !== null) differences.add('answer', `metadata of ${subjects.length} ${subjects[0]?.kind}: ${fault}`);
    remaining = remainingRefreshesOf(answer) ?? remaining;
    for (const { kind, subject, metadata } of subjects) {
      const key = keyOfMetadata(options.contracts[collection], kind, subject);
      if (fault === null) given.set(key, metadata);
      else if (answer.status === null) given.set(key, null);
    }
  };
  return {
    /** By `contract kind subject`; null when an answer is missing, so that the stored value is unknown. */
    given,
    play: async (): Promise<void> => {
      const collection = random.chance(0.5) ? 'erc721' : 'erc1155';
      const kind = random.pick(['collection', 'token', 'token', 'stack'] as const);
      const count = random.integer(1, kind === 'token' ? TOKENS_MAX : STACKS_MAX);
      if (kind === 'collection')
        return send(collection, [{ kind, subject: '', metadata: makeCollectionMetadata(stage) }]);
      const ofBook = book.entries().filter(({ asset }) => asset.collection === collection && asset.tokenId !== null);
      const subjects = kind === 'stack' ? stacks : [...new Set(ofBook.map(({ asset }) => asset.tokenId!))];
      const drawn = random.shuffle(subjects).slice(0, count);
      if (drawn.length === 0) return;
      return send(
        collection,
        drawn.map((subject) => ({ kind, subject, metadata: makeMetadata(random) })),
      );
    },
  };
}

function makeCollectionMetadata({ random, run }: MintStage): Record<string, string | null> {
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

function toCall(stage: MintStage, collection: CollectionKind, subjects: readonly GivenMetadata[]): ApiCall {
  const path = pathOf(stage, collection);
  const [{ kind, metadata }] = subjects as [GivenMetadata, ...GivenMetadata[]];
  if (kind === 'collection')
    return { method: 'POST', path: `${path}/refresh-metadata`, body: { collection_metadata: metadata } };
  const list = subjects.map((each) => ({
    ...each.metadata,
    [kind === 'token' ? 'token_id' : 'metadata_id']: each.subject,
  }));
  if (kind === 'token') return { method: 'POST', path: `${path}/nfts/refresh-metadata`, body: { nft_metadata: list } };
  return { method: 'POST', path: `${path}/metadata/refresh-metadata`, body: { metadata: list } };
}

function describeFault(
  { options }: MintStage,
  given: { collection: CollectionKind; subjects: readonly GivenMetadata[]; answer: ApiAnswer },
): string | null {
  const { collection, subjects, answer } = given;
  const isOfCollection = subjects[0]?.kind === 'collection';
  if (answer.status !== (isOfCollection ? 200 : 202)) return describeAnswer(answer);
  if (isOfCollection) {
    const { id, name } = options.chain;
    const contract_address = options.contracts[collection];
    const expected = { contract_address, chain: { id, name }, collection_metadata: subjects[0]?.metadata };
    const wrong = describeDifferences(expected, answer.json);
    if (wrong.length > 0) return wrong.join('; ');
  }
  return describeQuota('refresh', answer);
}

const POLL_MS = 1_000;

/** Compares stored metadata with what was last sent, once it is written. @returns the number of subjects checked */
export async function checkMetadata(stage: MintStage, { given }: Refreshes): Promise<number> {
  const { options, differences } = stage;
  const known = [...given].filter(([, metadata]) => metadata !== null);
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
