import { randomBytes } from 'node:crypto';
import {
  type Author,
  type CollectionRecord,
  collectionIdOf,
  findSigner,
  type SignableKeyRecord,
} from '@playline/access-keys';
import {
  frameRecord,
  MINT_STATUSES,
  type MintRequestRecord,
  mintRequestCodec,
  TOPICS,
  toSignerKey,
} from '@playline/contracts';
import {
  catchUpMints,
  createAcceptMints,
  createMintLogs,
  isOwnedBy,
  type MintAsset,
  type MintClaims,
  type MintCollection,
  type MintLog,
  type MintReader,
  type MintState,
  type MintView,
  type Quotas,
  START_GAP,
} from '@playline/mints';
import type { Producer } from '@playline/stream';
import { awaitSchemaId } from '../await-schema.ts';
import { withStore } from '../await-store.ts';
import type { ChangedLogSources } from '../changed-log.ts';
import {
  type Command,
  choiceOf,
  EXIT,
  type ExitCode,
  numberOf,
  parseOptions,
  type Terminal,
  textOf,
  UsageError,
  unconfirmed,
  type Values,
  wordOf,
} from '../command.ts';
import { contractOf } from '../contract-option.ts';
import { type GiveUpContext, type GiveUpTarget, giveUp, type MintName, reasonOf, signerOf } from '../mints/give-up.ts';
import { readSigners, toSignerLines } from '../mints/signers.ts';
import { type RecordSources, withRecords } from '../records/record-access.ts';

interface Closing {
  close(): Promise<void>;
}

/** Openers of the stores of mints; each throws UnreachableError when its address is not configured. */
export interface MintsContext extends ChangedLogSources {
  readonly openMints: () => Promise<{ claims: MintClaims; view: MintView; ready(): Promise<boolean> } & Closing>;
  readonly openReader: () => Promise<
    MintReader & { readAll(piece: number): AsyncIterable<readonly MintState[]> } & Closing
  >;
  readonly openProducer: (topic: string) => Promise<Producer>;
  readonly author: Author;
  readonly collections: RecordSources<CollectionRecord>;
  readonly signableKeys: RecordSources<SignableKeyRecord>;
}

const HELP = `usage: operator mints list --chain C --contract 0x… [--status S] [--limit N] [--json]   (npm run mints -- …)
       operator mints show --chain C --contract 0x… --reference R [--project P] [--json]
       operator mints retry --chain C --contract 0x… --reference R [--project P]
       operator mints give-up --chain C (--contract 0x… --reference R [--project P] | --signer 0x…) --reason TEXT [--yes]
       operator mints signers [--json]
       operator mints rebuild [--json]

Assets that projects have asked to mint.

  list     those of a collection, the first that were accepted first, as the tables have them
  show     one of them, with why it waits or has failed
  retry    accepts one that has failed once more, as it was asked for, under the key that signs now
  give-up  ends a pending one as failed, or all of a signer whose key is lost; refused while a signed transaction of it may
           still get in. Whoever asked for it is told the reason, and the audit who gave it up
  signers  each key that signs, on each chain: how much is pending and why it waits, as the tables have it
  rebuild  brings all that is known of them into Redis, from the tables and the logs; npm run rebuild does so too

  --project P      id of the project that requested the asset; without it, the project that has the collection
  --status pending|succeeded|failed     --limit N    1 to 1000, 100 unless it is said
  --json                                JSON, one a line

Needs REDIS_URL, KAFKA_BROKERS, SCHEMA_REGISTRY_URL and CLICKHOUSE_URL, or a stack that runs here (.playline/stack.json).`;

const text = { type: 'string' } as const;
const JSON_OPTION = { json: { type: 'boolean', default: false } } as const;
const OF_COLLECTION = { ...JSON_OPTION, chain: text, contract: text } as const;
const OF_ONE = { ...OF_COLLECTION, reference: text, project: text } as const;
const GIVE_UP = { ...OF_ONE, signer: text, reason: text, yes: { type: 'boolean', default: false } } as const;

/** Number of rows that are counted at once. */
const SIGNERS_PIECE = 5_000;

type Work = (context: MintsContext, terminal: Terminal) => Promise<ExitCode> | Promise<void>;

interface MintWord {
  readonly options: Parameters<typeof parseOptions>[1];
  /** Checks the arguments before any store is opened. @throws UsageError */
  readonly prepare: (values: Values) => Work;
}

const WORDS: Readonly<Record<string, MintWord>> = {
  list: { options: { ...OF_COLLECTION, status: text, limit: text }, prepare: prepareList },
  show: { options: OF_ONE, prepare: prepareShow },
  retry: { options: OF_ONE, prepare: prepareRetry },
  'give-up': { options: GIVE_UP, prepare: prepareGiveUp },
  signers: { options: JSON_OPTION, prepare: prepareSigners },
  rebuild: { options: JSON_OPTION, prepare: prepareRebuild },
};

export function createMintsCommand(context: MintsContext): Command {
  const run = async (args: readonly string[], terminal: Terminal): Promise<ExitCode> => {
    const [name = '', ...rest] = args;
    const word = wordOf(WORDS, name);
    return (await word.prepare(parseOptions(rest, word.options).values)(context, terminal)) ?? EXIT.ok;
  };
  return {
    name: 'mints',
    summary: 'list and show assets to be minted; accept failed ones again, give pending ones up',
    help: HELP,
    run,
  };
}

function prepareList(values: Values): Work {
  const collection = contractOf(values);
  const status = values.status === undefined ? null : choiceOf(values, 'status', { choices: MINT_STATUSES });
  const limit = numberOf(values, 'limit', { min: 1, max: 1000, fallback: 100 });
  return async (context, terminal) => {
    const { states } = await withReader(context, (reader) =>
      reader.readPage({ collection, owner: null, horizon: null, status, gap: START_GAP, direction: 'next', limit }),
    );
    for (const state of states) terminal.result(toLine(state, values));
  };
}

function prepareShow(values: Values): Work {
  const named = nameOf(values);
  return async (context, terminal) => {
    const state = await withMints(context, ({ claims }) => findState(context, claims, named));
    for (const line of values.json === true ? [JSON.stringify(state)] : toSentences(state)) terminal.result(line);
  };
}

function prepareRetry(values: Values): Work {
  const named = nameOf(values);
  return async (context, terminal) => {
    const collections = await withRecords(context.collections, (store) => store.readAll());
    const signableKeys = await withRecords(context.signableKeys, (store) => store.readAll());
    await withMints(context, async ({ claims }) => {
      const state = await findState(context, claims, named);
      if (state.status !== 'failed') throw new Error(toNotFailed(state));
      const given = await withReader(context, (reader) => reader.readMetadata(state));
      if (given === null)
        throw new Error(
          `The request of ${state.referenceId} is not in the tables yet. Run the command again in a minute.`,
        );
      await withPublish(context, (publish) => {
        const traceId = randomBytes(16).toString('hex');
        return retryMint({ claims, collections, signableKeys, publish, traceId }, { ...state, ...given });
      });
    });
    terminal.result(`${named.referenceId}: accepted again`);
  };
}

function prepareGiveUp(values: Values): Work {
  reasonOf(values);
  const target: GiveUpTarget =
    textOf(values, 'signer') === undefined
      ? { kind: 'asset', ...nameOf(values) }
      : { kind: 'signer', ...signerOf(values) };
  return (context, terminal) => {
    const find: GiveUpContext['find'] = (named) =>
      withMints(context, ({ claims }) => findState(context, claims, named));
    return giveUp({ ...context, find }, { target, values }, terminal);
  };
}

function prepareSigners(values: Values): Work {
  return async (context, terminal) => {
    const keys = await withRecords(context.signableKeys, (store) => store.readAll());
    const lanes = await withReader(context, (reader) => readSigners(reader.readAll(SIGNERS_PIECE), keys));
    for (const lane of lanes)
      for (const line of values.json === true ? [JSON.stringify(lane)] : toSignerLines(lane)) terminal.result(line);
    if (lanes.length === 0) terminal.progress('no key signs, and nothing was ever asked to be minted');
  };
}

function prepareRebuild(values: Values): Work {
  return (context, terminal) =>
    withMints(context, async ({ view }) => {
      const { schemas, topicPrefix } = context;
      const log = await context.openLog();
      const done = await withReader(context, (reader) => {
        const logs = createMintLogs({ log, schemaOf: schemas.schemaOf, topicPrefix });
        return rebuildMints({ view, logs, stored: () => reader.readAll(PIECE) });
      }).finally(() => log.close());
      const words = `${done.rows} mint requests in the tables, ${done.records} records of them in the logs`;
      terminal.result(values.json === true ? JSON.stringify({ kind: 'mints', ...done }) : words);
    });
}

type Mints = Awaited<ReturnType<MintsContext['openMints']>>;

const withMints = async <T>(context: MintsContext, work: (mints: Mints) => Promise<T>): Promise<T> =>
  withStore('Redis', await context.openMints(), work);

type Reader = Awaited<ReturnType<MintsContext['openReader']>>;

const withReader = async <T>(context: MintsContext, work: (reader: Reader) => Promise<T>): Promise<T> =>
  withStore('ClickHouse', await context.openReader(), work);

type Publish = (records: readonly MintRequestRecord[]) => Promise<void>;

async function withPublish(context: MintsContext, work: (publish: Publish) => Promise<void>): Promise<void> {
  const topic = context.topicPrefix + TOPICS.mintRequests.name;
  const schemaId = await awaitSchemaId(context.schemas, topic, mintRequestCodec.schema);
  const producer = await context.openProducer(topic);
  const publish: Publish = async (records) => {
    for (const record of records)
      await producer
        .sendPlaced({
          topic,
          key: Buffer.from(toSignerKey(record)),
          value: frameRecord(schemaId, mintRequestCodec.encode(record)),
        })
        .catch(unconfirmed('it', 'the same command again takes it over'));
  };
  await withStore('Kafka', producer, () => work(publish));
}

/** From Redis, which is ahead of the tables; the tables have what was settled long ago. */
async function findState(context: MintsContext, claims: MintClaims, named: MintName): Promise<MintState> {
  const { collection, referenceId } = named;
  const scope = { ...collection, projectId: named.projectId ?? (await findProjectOf(context, collection)) };
  const { state } = await claims.read(scope, referenceId);
  const found = state ?? (await withReader(context, (reader) => reader.readOne(scope, referenceId)));
  if (found !== null) return found;
  throw new Error(
    `The project ${scope.projectId} has no mint request ${referenceId} of this collection. "mints list" shows all ` +
      'requests of the collection; --project selects another project.',
  );
}

/** The project that has, or last had, the collection. */
async function findProjectOf(context: MintsContext, collection: MintCollection): Promise<string> {
  const records = await withRecords(context.collections, (store) => store.readAll());
  const record = records.find(({ id }) => id === collectionIdOf(collection));
  if (record !== undefined) return record.projectId;
  throw new Error('No project has linked the collection. Pass --project with the id of the project that requested it.');
}

const nameOf = (values: Values): MintName => ({
  collection: contractOf(values),
  projectId: textOf(values, 'project') ?? null,
  referenceId: referenceOf(values),
});

function referenceOf(values: Values): string {
  const reference = textOf(values, 'reference');
  if (reference === undefined) throw new UsageError('--reference: expected the reference id of the asset');
  return reference;
}

const at = (epochMs: number) => new Date(epochMs).toISOString();

function toLine(state: MintState, values: Values): string {
  if (values.json === true) return JSON.stringify(state);
  const { referenceId, status, stage, tokenId, ownerAddress, requestedAt, error, reason } = state;
  const why = error ?? reason ?? '';
  return `${at(requestedAt)}  ${status} (${stage})  ${referenceId}  token ${tokenId ?? '-'}  ${ownerAddress}  ${why}`.trimEnd();
}

function toSentences(state: MintState): string[] {
  const { transactionHash, nonce, signer, changedAt, traceId } = state;
  const carried = transactionHash === null ? 'in no transaction' : `in ${transactionHash}, nonce ${nonce}`;
  return [toLine(state, {}), `signed by ${signer}, ${carried}; changed ${at(changedAt)}; trace ${traceId}`];
}

interface RetryParts {
  readonly claims: MintClaims;
  readonly collections: readonly CollectionRecord[];
  readonly signableKeys: readonly SignableKeyRecord[];
  readonly publish: (records: readonly MintRequestRecord[]) => Promise<void>;
  readonly traceId: string;
}

/** A retry by an operator counts against no quota. */
const UNLIMITED: Quotas = { take: async () => ({ isAllowed: true, remaining: 0, fullInMs: 0, retryAfterS: 0 }) };
const POLICY = { kind: 'mint', perSecond: 1, burst: 1 } as const;

/** Why an asset that has not failed is not accepted again. */
const toNotFailed = ({ status, tokenId }: MintState) =>
  `${status === 'pending' ? 'it is pending' : `it has succeeded and is token ${tokenId}`}: only what has failed is accepted again`;

const toOwnerWords = (state: MintState, linked: CollectionRecord) =>
  `it was asked for by ${state.environmentId} of the project ${state.projectId}, and the collection is linked by ` +
  `${linked.environmentId} of the project ${linked.projectId} now: nothing was accepted`;

/**
 * Accepts a failed asset again, as the interface does, with the current signing key.
 * @throws Error when it has not failed, its collection is not linked, or linked by another environment than the one
 * that requested it, or there is no signing key; PublicError CONFLICT_ERROR when another request was faster
 */
export async function retryMint(parts: RetryParts, state: MintState & Pick<MintAsset, 'metadata'>): Promise<void> {
  const { claims, collections, signableKeys, publish, traceId } = parts;
  if (state.status !== 'failed') throw new Error(toNotFailed(state));
  const collection: MintCollection = { chain: state.chain, contractAddress: state.contractAddress };
  const id = collectionIdOf(collection);
  const linked = collections.find((record) => record.id === id && record.state === 'linked');
  if (linked === undefined) throw new Error('no project has linked the collection: npm run collections -- relink');
  // Otherwise the current environment would pay for and sign what it did not request and cannot see.
  if (!isOwnedBy(state, linked)) throw new Error(toOwnerWords(state, linked));
  const signer = findSigner(signableKeys, linked.environmentId);
  if (signer === undefined)
    throw new Error(`no key signs for ${linked.environmentId}: npm run keys -- create --kind signable makes one`);
  const { projectId, environmentId } = linked;
  const accept = createAcceptMints({
    claims,
    quotas: UNLIMITED,
    policy: POLICY,
    publish,
    // An attempt with an unknown result is not decided here: its requester asks again.
    isLogKnown: async () => false,
  });
  const requireSigner = async () => signer.address;
  await accept({ collection, projectId, environmentId, requireSigner, traceId, assets: [state] });
}

interface MintRebuildParts {
  readonly view: MintView;
  readonly logs: { readonly states: MintLog; readonly requests: MintLog };
  /** Contents of the tables, in pieces. */
  readonly stored: () => AsyncIterable<readonly MintState[]>;
}

/** Rows per call of Redis. */
const PIECE = 200;

/**
 * Copies everything known of mint requests into Redis: the tables first, then the whole logs. Nothing is deleted, and
 * no request is accepted until it is done. After a kill, run it again, or activity writers finish it.
 */
export async function rebuildMints({
  view,
  logs,
  stored,
}: MintRebuildParts): Promise<{ rows: number; records: number }> {
  await view.forgetPlaces();
  let rows = 0;
  for await (const states of stored()) {
    await view.restore(states);
    rows += states.length;
  }
  const records = await catchUpMints(view, logs);
  return { rows, records };
}
