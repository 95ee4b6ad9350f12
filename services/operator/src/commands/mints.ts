import { randomBytes } from 'node:crypto';
import { Option } from '@commander-js/extra-typings';
import {
  type Author,
  COLLECTIONS,
  type CollectionRecord,
  collectionIdOf,
  findSigner,
  SIGNABLE_KEYS,
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
  type MintState,
  type MintView,
  type Quotas,
  START_GAP,
} from '@playline/mints';
import type { Producer } from '@playline/stream';
import { awaitSchemaId, withStore } from '../await-store.ts';
import {
  type Deps as CommandDeps,
  type CreateCommand,
  command,
  endWith,
  jsonCommand,
  jsonOption,
  plural,
  printResult,
  throwUnconfirmed,
  UsageError,
  wholeNumberFrom,
  yesOption,
} from '../command.ts';
import { type ContractOptions, contractOf } from '../contract-option.ts';
import {
  type GiveUpContext,
  type GiveUpTarget,
  giveUp,
  type MintName,
  parseReason,
  parseSigner,
} from '../mints/give-up.ts';
import { createAuthor, type RecordSources, withRecords } from '../records/record-access.ts';
import { createRecordSources } from '../records/record-sources.ts';
import { createLogSources, type RecordOpeners, type StoreOpeners } from '../store-openers.ts';
import type { WritableLogSources } from '../writable-log.ts';

type SignerLaneState = Awaited<ReturnType<typeof readSigners>>[number];

/** @param states of all requests, in any order. @returns signers by chain and address, blocked signers first */
export async function readSigners(states: AsyncIterable<readonly MintState[]>, keys: readonly SignableKeyRecord[]) {
  const lanes = new Map<string, ReturnType<typeof newLane>>();
  for await (const batch of states)
    for (const { chain, signer, status, stage, nonce, reason, requestedAt } of batch) {
      const name = `${chain} ${signer}`;
      const lane = lanes.get(name) ?? newLane(chain, signer);
      lanes.set(name, lane);
      lane[status]++;
      if (status !== 'pending') continue;
      lane.oldestPendingAt = Math.min(lane.oldestPendingAt ?? requestedAt, requestedAt);
      if (nonce !== null) lane.nonces.add(nonce);
      if (stage === 'waiting' && reason !== null) lane.reasons.set(reason, (lane.reasons.get(reason) ?? 0) + 1);
    }
  const byAddress = new Map(keys.map((key) => [key.address, key]));
  const used = new Set([...lanes.values()].map(({ signer }) => signer));
  const idle = keys.filter(({ address }) => !used.has(address)).map(({ address }) => newLane(null, address));
  const described = [...lanes.values(), ...idle].map(({ reasons, nonces, ...lane }) => ({
    ...lane,
    /** `keyName` and `keyState` are null if no key has this address. */
    keyName: byAddress.get(lane.signer)?.name ?? null,
    keyState: byAddress.get(lane.signer)?.state ?? null,
    /** Nonces of transactions that are not final. */
    openNonces: [...nonces].sort((a, b) => a - b),
    /** Assets that wait for an operator, by reason. */
    waiting: [...reasons].map(([reason, count]) => ({ reason, count })).sort((a, b) => b.count - a.count),
  }));
  return described.sort(compareLanes);
}

const newLane = (chain: string | null, signer: string) => ({
  chain,
  signer,
  pending: 0,
  succeeded: 0,
  failed: 0,
  oldestPendingAt: null as number | null,
  reasons: new Map<string, number>(),
  nonces: new Set<number>(),
});

type RankedLane = Pick<ReturnType<typeof newLane>, 'chain' | 'signer' | 'pending'> & {
  readonly waiting: readonly unknown[];
};

function compareLanes(a: RankedLane, b: RankedLane): number {
  const rank = ({ waiting, pending }: RankedLane) => (waiting.length > 0 ? 0 : pending > 0 ? 1 : 2);
  const toName = ({ chain, signer }: RankedLane) => `${chain ?? '~'} ${signer}`;
  return rank(a) - rank(b) || (toName(a) < toName(b) ? -1 : 1);
}

/** Returns a line for the signer, followed by a line per blocker. */
export function toSignerLines(lane: SignerLaneState): readonly string[] {
  const { chain, signer, keyName, keyState, pending, waiting, openNonces, oldestPendingAt, succeeded, failed } = lane;
  const key = keyName === null ? 'unknown key' : `key "${keyName}", ${keyState}`;
  const parts = [
    `${pending} pending`,
    oldestPendingAt === null ? '' : `oldest since ${new Date(oldestPendingAt).toISOString()}`,
    openNonces.length === 0 ? '' : `open nonces ${openNonces.join(', ')}`,
    `${succeeded} succeeded`,
    `${failed} failed`,
  ];
  const summary = `${chain ?? 'not used yet'}  ${signer}  (${key}): ${parts.filter((part) => part !== '').join(', ')}`;
  return [summary, ...waiting.map(({ reason, count }) => `  ${plural(count, 'asset')} waiting: ${reason}`)];
}

interface MintsContext extends WritableLogSources, Pick<StoreOpeners, 'openMints' | 'openMintReader'> {
  readonly openProducer: (topic: string) => Promise<Producer>;
  readonly author: Author;
  readonly collections: RecordSources<CollectionRecord>;
  readonly signableKeys: RecordSources<SignableKeyRecord>;
}

const ABOUT = `
An asset is identified by its collection and by the reference id of its mint request.

Requires REDIS_URL, KAFKA_BROKERS, SCHEMA_REGISTRY_URL and CLICKHOUSE_URL, or a local stack.`;

const GIVE_UP = `
Skips assets whose signed transaction could still be included in a block. The reason is shown to the project, and the
audit log records who gave up on the asset.`;

/** Rows per query. */
const SIGNERS_BATCH = 5_000;
/** Rows per query and per Redis call. */
const REBUILD_BATCH = 200;

type Deps = CommandDeps<MintsContext>;
const chain = () => new Option('--chain <name>', 'chain name').makeOptionMandatory();
const contract = () => new Option('--contract <address>', 'contract address: 0x and 40 hexadecimal digits');
const reference = () => new Option('--reference <id>', 'reference id of the mint request');
const project = () =>
  new Option('--project <id>', 'project that requested the asset (default: the project that linked the collection)');

const assetCommand = (name: string, description: string) =>
  command(name, description)
    .addOption(chain())
    .addOption(contract().makeOptionMandatory())
    .addOption(reference().makeOptionMandatory())
    .addOption(project());

export function createMintCommand(
  stores: RecordOpeners & Pick<StoreOpeners, 'openMints' | 'openMintReader' | 'openPublisher'>,
  topicPrefix: string,
): CreateCommand {
  const author = createAuthor();
  const sourcesOf = createRecordSources(stores, { topicPrefix, author });
  const records = { collections: sourcesOf(COLLECTIONS), signableKeys: sourcesOf(SIGNABLE_KEYS) };
  const context: MintsContext = { ...createLogSources(stores), ...stores, ...records, author, topicPrefix };
  return (terminal) => {
    const deps: Deps = { context, terminal };
    return command('mints', 'list mint requests; retry failed assets and give up on pending assets')
      .addCommand(list(deps))
      .addCommand(show(deps))
      .addCommand(retry(deps))
      .addCommand(giveUpPending(deps))
      .addCommand(signers(deps))
      .addCommand(rebuild(deps))
      .addHelpText('after', ABOUT);
  };
}

const list = ({ context, terminal }: Deps) =>
  jsonCommand('list', 'list the assets of a collection in request order')
    .addOption(chain())
    .addOption(contract().makeOptionMandatory())
    .addOption(new Option('--status <status>', 'show only assets with this status').choices(MINT_STATUSES))
    .option('--limit <number>', 'maximum number of assets, up to 1000', wholeNumberFrom(1, 1000), 100)
    .action(async ({ status = null, limit, json, ...options }) => {
      const collection = contractOf(options);
      const { states } = await withReader(context, (reader) =>
        reader.readPage({ collection, owner: null, horizon: null, status, gap: START_GAP, direction: 'next', limit }),
      );
      for (const state of states) printResult(terminal, { json }, state, toLine(state));
    });

const show = ({ context, terminal }: Deps) =>
  assetCommand('show', 'show an asset and the reason why it is waiting or has failed')
    .addOption(jsonOption())
    .action(async (options) => {
      const mintName = nameOf(options);
      const state = await withMints(context, ({ claims }) => findState(context, claims, mintName));
      printResult(terminal, options, state, toSentences(state));
    });

const retry = ({ context, terminal }: Deps) =>
  assetCommand('retry', 'retry a failed asset with the current signing key').action(async (options) => {
    const mintName = nameOf(options);
    const collections = await withRecords(context.collections, (store) => store.readAll());
    const signableKeys = await withRecords(context.signableKeys, (store) => store.readAll());
    await withMints(context, async ({ claims }) => {
      const state = await findState(context, claims, mintName);
      if (state.status !== 'failed') throw new Error(toNotFailedText(state));
      const requested = await withReader(context, (reader) => reader.readMetadata(state));
      if (requested === null)
        throw new Error(
          `The mint request ${state.referenceId} is not in the tables yet. Run the command again in a minute.`,
        );
      await withPublish(context, (publish) => {
        const traceId = randomBytes(16).toString('hex');
        return retryMint({ claims, collections, signableKeys, publish, traceId }, { ...state, ...requested });
      });
    });
    terminal.result(`${mintName.referenceId}: accepted again`);
  });

const giveUpPending = ({ context, terminal }: Deps) =>
  command('give-up', 'mark one pending asset, or all pending assets of a signer, as failed')
    .addOption(chain())
    .addOption(contract())
    .addOption(reference())
    .addOption(project())
    .addOption(
      new Option('--signer <address>', 'give up on all pending assets of this signer, for example if its key is lost')
        .argParser(parseSigner)
        .conflicts(['contract', 'reference', 'project']),
    )
    .addOption(
      new Option('--reason <text>', 'reason to show to the project that requested the asset')
        .argParser(parseReason)
        .makeOptionMandatory(),
    )
    .addOption(yesOption())
    .addHelpText('after', GIVE_UP)
    .action(async ({ signer, ...options }) => {
      const target: GiveUpTarget =
        signer === undefined ? { kind: 'asset', ...nameOf(options) } : { kind: 'signer', chain: options.chain, signer };
      const find: GiveUpContext['find'] = (mintName) =>
        withMints(context, ({ claims }) => findState(context, claims, mintName));
      endWith(await giveUp({ ...context, find }, { target, ...options }, terminal));
    });

const signers = ({ context, terminal }: Deps) =>
  jsonCommand('signers', 'list signers by chain, with their pending assets and blockers').action(async (options) => {
    const keys = await withRecords(context.signableKeys, (store) => store.readAll());
    const lanes = await withReader(context, (reader) => readSigners(reader.readAll(SIGNERS_BATCH), keys));
    for (const lane of lanes) printResult(terminal, options, lane, toSignerLines(lane));
    if (lanes.length === 0) terminal.progress('no signing keys or mint requests');
  });

const rebuild = ({ context, terminal }: Deps) =>
  jsonCommand('rebuild', 'restore mint requests from the tables and the logs into Redis').action((options) =>
    withMints(context, async ({ view }) => {
      const { schemas, topicPrefix } = context;
      const log = await context.openLog();
      const rebuilt = await withReader(context, (reader) => {
        const logs = createMintLogs({ log, schemaOf: schemas.schemaOf, topicPrefix });
        return rebuildMints({ view, logs, stored: () => reader.readAll(REBUILD_BATCH) });
      }).finally(() => log.close());
      const text = `restored ${rebuilt.rows} mint requests from the tables and ${rebuilt.records} newer records from the logs`;
      printResult(terminal, options, { kind: 'mints', ...rebuilt }, text);
    }),
  );

type Mints = Awaited<ReturnType<MintsContext['openMints']>>;

const withMints = async <T>(context: MintsContext, work: (mints: Mints) => Promise<T>): Promise<T> =>
  withStore('Redis', await context.openMints(), work);

type Reader = Awaited<ReturnType<MintsContext['openMintReader']>>;

const withReader = async <T>(context: MintsContext, work: (reader: Reader) => Promise<T>): Promise<T> =>
  withStore('ClickHouse', await context.openMintReader(), work);

type Publish = (records: readonly MintRequestRecord[]) => Promise<void>;

async function withPublish(context: MintsContext, work: (publish: Publish) => Promise<void>): Promise<void> {
  const topic = context.topicPrefix + TOPICS.mintRequests.name;
  const schemaId = await awaitSchemaId(context.schemas, topic, mintRequestCodec.schema);
  const producer = await context.openProducer(topic);
  const publish: Publish = async (records) => {
    for (const record of records)
      await producer
        .sendForOffset({
          topic,
          key: Buffer.from(toSignerKey(record)),
          value: frameRecord(schemaId, mintRequestCodec.encode(record)),
        })
        .catch(throwUnconfirmed('the mint request', 'run the command again to complete it'));
  };
  await withStore('Kafka', producer, () => work(publish));
}

/** Redis is newer than the tables, but contains no assets that were settled long ago. */
async function findState(context: MintsContext, claims: MintClaims, mintName: MintName): Promise<MintState> {
  const { collection, referenceId } = mintName;
  const scope = { ...collection, projectId: mintName.projectId ?? (await findProjectOf(context, collection)) };
  const { state } = await claims.read(scope, referenceId);
  const found = state ?? (await withReader(context, (reader) => reader.readOne(scope, referenceId)));
  if (found !== null) return found;
  throw new Error(
    `Project ${scope.projectId} has no mint request ${referenceId} for this collection. "mints list" shows all requests ` +
      'for the collection; pass --project to select another project.',
  );
}

/** Returns the project that most recently linked the collection. */
async function findProjectOf(context: MintsContext, collection: MintCollection): Promise<string> {
  const records = await withRecords(context.collections, (store) => store.readAll());
  const record = records.find(({ id }) => id === collectionIdOf(collection));
  if (record !== undefined) return record.projectId;
  throw new Error('No project has linked the collection. Pass --project with the project that requested the asset.');
}

/** @throws UsageError */
function nameOf({ reference: referenceId = '', project, ...options }: AssetOptions): MintName {
  if (referenceId === '') throw new UsageError('Pass --reference with the reference id of the asset.');
  return { collection: contractOf(options), projectId: project ?? null, referenceId };
}

interface AssetOptions extends ContractOptions {
  readonly reference?: string | undefined;
  readonly project?: string | undefined;
}

const toTimeText = (epochMs: number) => new Date(epochMs).toISOString();

function toLine(state: MintState): string {
  const { referenceId, status, stage, tokenId, ownerAddress, requestedAt, error, reason } = state;
  const explanation = error ?? reason ?? '';
  return `${toTimeText(requestedAt)}  ${status} (${stage})  ${referenceId}  token ${tokenId ?? '-'}  ${ownerAddress}  ${explanation}`.trimEnd();
}

function toSentences(state: MintState): string[] {
  const { transactionHash, nonce, signer, changedAt, traceId } = state;
  const transaction = transactionHash === null ? 'no transaction' : `transaction ${transactionHash}, nonce ${nonce}`;
  return [toLine(state), `signer ${signer}, ${transaction}; changed ${toTimeText(changedAt)}; trace ${traceId}`];
}

interface RetryParts {
  readonly claims: MintClaims;
  readonly collections: readonly CollectionRecord[];
  readonly signableKeys: readonly SignableKeyRecord[];
  readonly publish: Publish;
  readonly traceId: string;
}

/** Quotas do not apply to operators. */
const UNLIMITED: Quotas = { take: async () => ({ isAllowed: true, remaining: 0, fullInMs: 0, retryAfterS: 0 }) };
const POLICY = { kind: 'mint', perSecond: 1, burst: 1 } as const;

const toNotFailedText = ({ status, tokenId }: MintState) =>
  `only a failed asset can be retried: ${status === 'pending' ? 'the asset is pending' : `the asset is token ${tokenId}`}`;
const toOtherOwnerText = (state: MintState, linked: CollectionRecord) =>
  `the asset was requested by ${state.environmentId} of project ${state.projectId}, but the collection is now linked to ` +
  `${linked.environmentId} of project ${linked.projectId}: no request was accepted`;

/**
 * Accepts a failed asset again with the current signing key, as for a repeated API request.
 * @throws Error when the asset cannot be retried; PublicError CONFLICT_ERROR after a concurrent request
 */
export async function retryMint(parts: RetryParts, state: MintState & Pick<MintAsset, 'metadata'>): Promise<void> {
  const { claims, collections, signableKeys, publish, traceId } = parts;
  if (state.status !== 'failed') throw new Error(toNotFailedText(state));
  const collection: MintCollection = { chain: state.chain, contractAddress: state.contractAddress };
  const id = collectionIdOf(collection);
  const linked = collections.find((record) => record.id === id && record.state === 'linked');
  if (linked === undefined)
    throw new Error('the collection is not linked to a project: link it first (npm run collections -- relink)');
  // An environment must not sign and pay for assets that it did not request.
  if (!isOwnedBy(state, linked)) throw new Error(toOtherOwnerText(state, linked));
  const signer = findSigner(signableKeys, linked.environmentId);
  if (signer === undefined)
    throw new Error(
      `${linked.environmentId} has no live signable key: create one (npm run keys -- create --kind signable)`,
    );
  const { projectId, environmentId } = linked;
  const accept = createAcceptMints({
    claims,
    quotas: UNLIMITED,
    policy: POLICY,
    publish,
    // Only the requester can resolve an attempt whose result is unknown, by sending the request again.
    isLogApplied: async () => false,
  });
  const requireSigner = async () => signer.address;
  await accept({ collection, projectId, environmentId, requireSigner, traceId, assets: [state] });
}

interface MintRebuildParts {
  readonly view: MintView;
  readonly logs: { readonly states: MintLog; readonly requests: MintLog };
  readonly stored: () => AsyncIterable<readonly MintState[]>;
}

/**
 * Copies mint requests from the tables and then the logs into Redis. No data is deleted. Requests are refused until
 * the copy is complete. An interrupted rebuild is resumed by another run or by an activity writer.
 */
export async function rebuildMints({ view, logs, stored }: MintRebuildParts) {
  await view.forgetOffsets();
  let rows = 0;
  for await (const states of stored()) {
    await view.restore(states);
    rows += states.length;
  }
  const records = await catchUpMints(view, logs);
  return { rows, records };
}
