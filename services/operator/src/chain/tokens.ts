/** Changes the verification status, or the name, symbol and decimals, of a token in the log. */
import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { type ChainNode, describeTokens, NodeFault } from '@playline/chain';
import {
  ADDRESS_EXPECTED,
  createRecordReader,
  frameRecord,
  parseAddress,
  type TokenRecord,
  tokenCodec,
} from '@playline/contracts';
import type { LogReader } from '@playline/stream';
import type { Schemas } from '../await-store.ts';
import { printResult, UsageError } from '../command.ts';
import { TOKENS } from '../import/subjects.ts';
import { publishChange, readCommittedBounds, type WritableLogSources, withWritableLog } from '../writable-log.ts';
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

export async function setVerification(
  job: ChainJob,
  options: TokenOptions & { readonly status: TokenRecord['verificationStatus'] },
): Promise<void> {
  const [token, verificationStatus] = [tokenOf(job, options), options.status];
  report(job, options, await changeToken(job.context, token, (current) => ({ ...current, verificationStatus })));
}

/** Updates the name, symbol and decimals of a token from its contract. */
export async function refreshToken(job: ChainJob, options: TokenOptions): Promise<void> {
  const token = tokenOf(job, options);
  const nodes = nodesOf(job, chainOf(job, options.chain));
  const changed = await changeToken(job.context, token, async (current) => {
    const [described] = (await requestFromNodes(nodes, (node) => describeOne(node, token))) ?? [];
    const { name = null, symbol = null, decimals = null } = described ?? {};
    // An empty response must not replace the current values.
    if (name === null && symbol === null && decimals === null)
      throw new Error('the contract returns no name, symbol or decimals: no change was published');
    return { ...current, name, symbol, decimals };
  });
  report(job, options, changed);
}

async function describeOne(node: ChainNode, { chain, contract }: TokenName): Promise<TokenRecord[]> {
  const described = await describeTokens(node, chain, [contract]);
  return described.map((each) => {
    if (each instanceof NodeFault) throw each;
    return each;
  });
}

type ChangedToken = Awaited<ReturnType<typeof changeToken>>;

function report({ terminal }: ChainJob, options: TokenOptions, { token, isPublished }: ChangedToken): void {
  const { chain, contractAddress, name, symbol, decimals, verificationStatus } = TOKENS.toRow(token);
  const shown = { chain, contract_address: contractAddress, name, symbol, decimals };
  const text = `${name ?? 'no name'} (${symbol ?? 'no symbol'}), ${decimals ?? 'no'} decimals, ${verificationStatus}`;
  printResult(
    terminal,
    options,
    { ...shown, verification_status: verificationStatus, published: isPublished },
    `${chain} ${contractAddress}: ${text}: ${isPublished ? 'published' : 'no change to publish'}`,
  );
}

/** `contract` is `0x` and 40 lower-case hexadecimal digits. */
interface TokenName {
  readonly chain: string;
  readonly contract: string;
}

const NEXT_STEP = 'run the command again; it does not publish a change twice';
const TAKEN_OVER =
  'another command changed this token at the same time: this change was not published. Run the command again';

/**
 * Changes the last record of a token. The publisher is opened first, which fences concurrent commands: of two
 * concurrent changes, only the later one succeeds.
 * @param change returns the new record; its trace id is replaced
 * @throws Error for an unknown token, or when another command took over; UnreachableError when the result is unknown
 */
export function changeToken(
  sources: WritableLogSources,
  name: TokenName,
  change: (current: TokenRecord) => TokenRecord | Promise<TokenRecord>,
) {
  const { schemas } = sources;
  const target = { name: TOKENS.topic.name, schema: tokenCodec.schema };
  return withWritableLog(sources, target, async ({ log, topic, schemaId, openPublisher }) => {
    const publisher = await openPublisher(`operator.token.${name.chain}.${name.contract}`);
    const key = Buffer.from(`${name.chain} ${name.contract}`);
    const current = await readLast(log, { topic, key, schemas });
    if (current === null) throw new Error(`token ${name.contract} does not exist on ${name.chain}: ${TOKEN_UNKNOWN}`);
    const token = { ...(await change(current)), traceId: randomBytes(16).toString('hex') };
    const isPublished = !isDeepStrictEqual({ ...token, traceId: '' }, { ...current, traceId: '' });
    const value = frameRecord(schemaId, tokenCodec.encode(token));
    if (isPublished && !(await publishChange(publisher, [{ topic, key, value, headers: {} }], NEXT_STEP)))
      throw new Error(TAKEN_OVER);
    return { token: isPublished ? token : current, isPublished };
  });
}

const TOKEN_UNKNOWN =
  'the indexer publishes a token with its first transfer. To add a token earlier, use import --topic chain.tokens.v1';

/** Reads the last record with a key, or null, once all open transactions in the partition have ended. */
async function readLast(
  log: LogReader,
  { topic, key, schemas }: { readonly topic: string; readonly key: Buffer; readonly schemas: Schemas },
): Promise<TokenRecord | null> {
  const [bounds] = await readCommittedBounds(log, topic, key);
  const read = createRecordReader({ schemaOf: schemas.schemaOf, createReader: tokenCodec.decoderOf });
  let last: TokenRecord | null = null;
  for await (const record of log.read({ topic, ...bounds! })) {
    if (record.key?.equals(key) !== true || record.value === null) continue;
    const found = await read(record.value);
    if (found.kind === 'record') last = found.record;
  }
  return last;
}
