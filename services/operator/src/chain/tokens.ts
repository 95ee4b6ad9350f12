import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { type ChainNode, describeTokens, NodeFault, toTokenRow } from '@playline/chain';
import {
  ADDRESS_EXPECTED,
  createRecordReader,
  frameRecord,
  parseAddress,
  type TokenRecord,
  tokenCodec,
} from '@playline/contracts';
import type { LogReader } from '@playline/stream';
import type { Schemas } from '../await-schema.ts';
import { UsageError } from '../command.ts';
import { TOKENS } from '../import/subjects.ts';
import {
  type ChangeMessages,
  publishChange,
  readCommittedBounds,
  type WritableLogSources,
  withWritableLog,
} from '../writable-log.ts';
import { type ChainJob, type ChainOptions, chainOf, nodesOf } from './chain-job.ts';
import { requestFromNodes } from './read-ranges.ts';

interface TokenOptions extends ChainOptions {
  readonly address: string;
}

function tokenOf(job: ChainJob, options: TokenOptions): TokenName {
  const { name: chain } = chainOf(job, options.chain);
  const contract = parseAddress(options.address);
  if (contract === null) throw new UsageError(`--address: expected ${ADDRESS_EXPECTED}`);
  return { chain, contract };
}

/** Sets the verification status of a token. */
export async function setVerification(
  job: ChainJob,
  options: TokenOptions & { readonly status: TokenRecord['verificationStatus'] },
): Promise<void> {
  const [token, verificationStatus] = [tokenOf(job, options), options.status];
  report(job, options, await changeToken(job.context, token, (standing) => ({ ...standing, verificationStatus })));
}

/** Reads name, symbol and decimals of a token from its contract again. */
export async function refreshToken(job: ChainJob, options: TokenOptions): Promise<void> {
  const token = tokenOf(job, options);
  const nodes = nodesOf(job, chainOf(job, options.chain));
  const changed = await changeToken(job.context, token, async (standing) => {
    const [described] = (await requestFromNodes(nodes, (node) => describeOne(node, token))) ?? [];
    const { name = null, symbol = null, decimals = null } = described ?? {};
    // The values in the history are better than none.
    if (name === null && symbol === null && decimals === null)
      throw new Error('the contract returns no name, symbol or decimals: nothing was published');
    return { ...standing, name, symbol, decimals };
  });
  report(job, options, changed);
}

/** @throws NodeFault when the node does not answer all calls */
async function describeOne(node: ChainNode, { chain, contract }: TokenName): Promise<TokenRecord[]> {
  const described = await describeTokens(node, chain, [contract]);
  return described.map((each) => {
    if (each instanceof NodeFault) throw each;
    return each;
  });
}

const NOWHERE = { updatedAt: 0, partition: 0, offset: 0, loggedAtMs: 0 };

function report({ terminal }: ChainJob, { json }: TokenOptions, { token, isPublished }: ChangedToken): void {
  const { chain, contractAddress, name, symbol, decimals, verificationStatus } = toTokenRow(token, NOWHERE);
  const shown = { chain, contract_address: contractAddress, name, symbol, decimals };
  terminal.result(
    json === true
      ? JSON.stringify({ ...shown, verification_status: verificationStatus, published: isPublished })
      : `${chain} ${contractAddress}: ${toTokenText({ name, symbol, decimals })}, ${verificationStatus}: ` +
          `${isPublished ? 'published' : 'no change, nothing was published'}`,
  );
}

const toTokenText = ({ name, symbol, decimals }: Pick<TokenRecord, 'name' | 'symbol' | 'decimals'>) =>
  `${name ?? 'no name'} (${symbol ?? 'no symbol'}), ${decimals ?? 'no'} decimals`;

/** A token: its chain by name, its contract as `0x` and 40 lower-case digits. */
interface TokenName {
  readonly chain: string;
  readonly contract: string;
}

/** The result of a change. */
interface ChangedToken {
  readonly token: TokenRecord;
  /** False: the token had these values already, so nothing was published. */
  readonly isPublished: boolean;
}

const MESSAGES: ChangeMessages = {
  takenOver: 'another command changed this token at the same time: nothing was published, run it again',
  retry: 'the same command again publishes nothing twice',
};

/**
 * Changes a token that is in the log. Its publisher is opened first, which fences any other command that changes it,
 * and its last record is read after that. So a change is made to the current record; of two at once one fails.
 * @param change makes the new record of the current one; its trace is replaced
 * @throws Error when the log does not have the token, or another command changed it meanwhile; UnreachableError when
 * brokers or registry do not answer, or it is unknown whether the change was written
 */
export function changeToken(
  sources: WritableLogSources,
  name: TokenName,
  change: (standing: TokenRecord) => TokenRecord | Promise<TokenRecord>,
): Promise<ChangedToken> {
  const { schemas } = sources;
  const changed = { name: TOKENS.topic.name, schema: tokenCodec.schema };
  return withWritableLog(sources, changed, async ({ log, topic, schemaId, openPublisher }) => {
    const publisher = await openPublisher(`operator.token.${name.chain}.${name.contract}`);
    const key = Buffer.from(`${name.chain} ${name.contract}`);
    const standing = await readLast(log, { topic, key, schemas });
    if (standing === null) throw new Error(`no token ${name.contract} of ${name.chain} is known: ${UNKNOWN}`);
    const token = { ...(await change(standing)), traceId: randomBytes(16).toString('hex') };
    if (isDeepStrictEqual({ ...token, traceId: '' }, { ...standing, traceId: '' }))
      return { token: standing, isPublished: false };
    const value = frameRecord(schemaId, tokenCodec.encode(token));
    await publishChange(publisher, [{ topic, key, value, headers: {} }], MESSAGES);
    return { token, isPublished: true };
  });
}

const UNKNOWN =
  'the indexer publishes one with its first transfer; import --topic chain.tokens.v1 puts one in that it has not seen';

interface LastOf {
  readonly topic: string;
  readonly key: Buffer;
  readonly schemas: Schemas;
}

/** The last record of a key, after all open transactions in its partition have ended; null when there is none. */
async function readLast(log: LogReader, { topic, key, schemas }: LastOf): Promise<TokenRecord | null> {
  const [wanted] = await readCommittedBounds(log, topic, key);
  const read = createRecordReader({ schemaOf: schemas.schemaOf, createReader: tokenCodec.decoderOf });
  let last: TokenRecord | null = null;
  for await (const record of log.read({ topic, ...wanted! })) {
    if (record.key?.equals(key) !== true || record.value === null) continue;
    const found = await read(record.value);
    if (found.kind === 'record') last = found.record;
  }
  return last;
}
