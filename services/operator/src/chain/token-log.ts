import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { createRecordReader, frameRecord, type TokenRecord, tokenCodec } from '@playline/contracts';
import type { LogReader } from '@playline/stream';
import type { Schemas } from '../await-schema.ts';
import {
  type ChangedLogSources,
  type ChangeWords,
  publishChange,
  readDecidedBounds,
  withChangedLog,
} from '../changed-log.ts';
import { TOKENS } from '../import/subjects.ts';

/** A token: its chain by name, its contract as `0x` and 40 lower-case digits. */
export interface TokenName {
  readonly chain: string;
  readonly contract: string;
}

/** The result of a change. */
export interface ChangedToken {
  readonly token: TokenRecord;
  /** False: the token had these values already, so nothing was published. */
  readonly isPublished: boolean;
}

const WORDS: ChangeWords = {
  takenOver: 'another command changed this token at the same time: nothing was published, run it again',
  again: 'the same command again publishes nothing twice',
};

/**
 * Changes a token that is in the log. Its publisher is opened first, which fences any other command that changes it,
 * and its last record is read after that. So a change is made to the current record; of two at once one fails.
 * @param change makes the new record of the current one; its trace is replaced
 * @throws Error when the log does not have the token, or another command changed it meanwhile; UnreachableError when
 * brokers or registry do not answer, or it is unknown whether the change was written
 */
export function changeToken(
  sources: ChangedLogSources,
  name: TokenName,
  change: (standing: TokenRecord) => TokenRecord | Promise<TokenRecord>,
): Promise<ChangedToken> {
  const { schemas } = sources;
  const changed = { name: TOKENS.topic.name, schema: tokenCodec.schema };
  return withChangedLog(sources, changed, async ({ log, topic, schemaId, openPublisher }) => {
    const publisher = await openPublisher(`operator.token.${name.chain}.${name.contract}`);
    const key = Buffer.from(`${name.chain} ${name.contract}`);
    const standing = await readLast(log, { topic, key, schemas });
    if (standing === null) throw new Error(`no token ${name.contract} of ${name.chain} is known: ${UNKNOWN}`);
    const token = { ...(await change(standing)), traceId: randomBytes(16).toString('hex') };
    if (isDeepStrictEqual({ ...token, traceId: '' }, { ...standing, traceId: '' }))
      return { token: standing, isPublished: false };
    const value = frameRecord(schemaId, tokenCodec.encode(token));
    await publishChange(publisher, [{ topic, key, value, headers: {} }], WORDS);
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
  const [wanted] = await readDecidedBounds(log, topic, key);
  const read = createRecordReader({ schemaOf: schemas.schemaOf, createReader: tokenCodec.decoderOf });
  let last: TokenRecord | null = null;
  for await (const record of log.read({ topic, ...wanted! })) {
    if (record.key?.equals(key) !== true || record.value === null) continue;
    const found = await read(record.value);
    if (found.kind === 'record') last = found.record;
  }
  return last;
}
