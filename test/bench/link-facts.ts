import { randomBytes, randomInt } from 'node:crypto';
import { frameRecord, identityLinkCodec, TOPICS } from '@playline/contracts';
import { createIdentityKeyer } from '@playline/people';
import type { Bench } from './figure.ts';
import { type PreparedRecord, readSchemaId } from './prepared-records.ts';

export interface Pair {
  link: 'identify' | 'alias';
  from: string;
  to: string;
}

const PERSON_IDS = 1_000;

/** Creates facts that link a new anonymous id to a new typed user id: two decisions and three identities each. */
export function pairNewIds(tag: string, count: number): Pair[] {
  return Array.from({ length: count }, (_, n) => ({ link: 'identify', from: `${tag}-v${n}`, to: `${tag}-u${n}` }));
}

/** Creates facts that link random pairs of `3 * count` identities, so that persons stay small. */
export function pairRandom(tag: string, count: number): Pair[] {
  const id = () => `${tag}-${randomInt(3 * count)}`;
  return Array.from({ length: count }, () => ({ link: 'alias', from: id(), to: id() }));
}

/** Creates facts that add identities to a growing person, in ascending (`up`) or descending key order. */
export function pairGrowing(bench: Bench, tag: string, options: { count: number; order: 'up' | 'down' }): Pair[] {
  const keyOf = createIdentityKeyer(Buffer.from(bench.environment.IDENTITY_PEPPER ?? '', 'hex'));
  const pairs: Pair[] = [];
  for (let person = 0; pairs.length < options.count; person++) {
    const ids = Array.from({ length: PERSON_IDS }, (_, n) => `${tag}-${person}-${n}`);
    const keyed = ids.map((id) => ({ id, key: keyOf(bench.environmentId, 'custom', id) }));
    keyed.sort((a, b) => (options.order === 'up' ? Buffer.compare(a.key, b.key) : Buffer.compare(b.key, a.key)));
    for (let n = 1; n < PERSON_IDS && pairs.length < options.count; n++)
      pairs.push({ link: 'alias', from: keyed[n]!.id, to: keyed[n - 1]!.id });
  }
  return pairs;
}

export async function prepareLinks(
  bench: Pick<Bench, 'stores' | 'topicPrefix' | 'environmentId'>,
  pairs: readonly Pair[],
): Promise<PreparedRecord[]> {
  const topic = `${bench.topicPrefix}${TOPICS.identityLinks.name}`;
  const schemaId = await readSchemaId(bench, topic, identityLinkCodec.schema);
  const key = Buffer.from(bench.environmentId);
  return pairs.map((pair) => ({ topic, key, value: frameRecord(schemaId, encodeLink(bench.environmentId, pair)) }));
}

function encodeLink(environmentId: string, { link, from, to }: Pair): Buffer {
  const timestampMs = Date.now();
  return identityLinkCodec.encode({
    environmentId,
    messageId: randomBytes(16),
    link,
    fromKind: link === 'identify' ? 'anonymous' : 'custom',
    fromId: from,
    toKind: link === 'identify' ? 'steam' : 'custom',
    toId: to,
    eventTime: timestampMs,
    receivedAt: timestampMs,
    traceId: '0'.repeat(32),
    unlink: [],
  });
}
