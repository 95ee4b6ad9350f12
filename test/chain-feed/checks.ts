import { isDeepStrictEqual } from 'node:util';
import { toTimestamp } from '@playline/contracts';
import type { Audit } from './auditor.ts';
import type { BackWalk } from './back-walker.ts';
import type { FeedChain } from './feed-rig.ts';
import type { Findings } from './findings.ts';
import type { Walk } from './follower.ts';
import type { ServedVersion } from './served.ts';
import { isWanted, lastVersions, type PlacedVersion } from './truth.ts';

/** Of each chain its versions, ascending. */
export type Versions = ReadonlyMap<string, readonly PlacedVersion[]>;

/** Everything that was served is a version as it was sent, at the place that it still has in the end. */
export function checkServed(served: Iterable<ServedVersion>, versions: Versions, findings: Findings): void {
  const known = new Map(
    [...versions.values()].flat().map((version) => [`${version.chain} ${version.id} ${version.us}`, version]),
  );
  for (const { chain, id, us, text } of served) {
    const version = known.get(`${chain} ${id} ${us}`);
    const expected = version && { ...version.shown, updated_at: toTimestamp(us) };
    if (!isDeepStrictEqual(JSON.parse(text), expected))
      findings.add('true content', `${text} is no version of its activity; ${JSON.stringify(expected)}`);
  }
}

/** What a walk has of each activity. */
const replicaOf = (rows: Walk['rows']): Map<string, number> => new Map(rows.map(({ id, us }) => [id, us]));

/**
 * Whoever has come to the end holds, of every activity that passes its filters, the version that stood at the watermark
 * before, or a later one: nothing has come behind it since. Nor is there another.
 */
export function checkArrivals(walk: Walk, versions: Versions, findings: Findings): void {
  const { chain, filters } = walk.question;
  const wanted = (versions.get(chain.name) ?? []).filter((version) => isWanted(version, filters));
  for (const { watermark, count } of walk.arrivals) {
    const replica = replicaOf(walk.rows.slice(0, count));
    for (const [id, { us }] of lastVersions(wanted, watermark))
      if ((replica.get(id) ?? 0) < us)
        findings.add(
          'at the end',
          `${chain.name} ${id} stood at ${us}, below ${watermark}; a reader at the end has ${replica.get(id)}`,
        );
  }
}

/** A replica in the end is the last version of each activity that passes its filters, and nothing else. */
export function checkComplete(walk: Walk, versions: Versions, findings: Findings): void {
  const { chain, filters } = walk.question;
  const wanted = (versions.get(chain.name) ?? []).filter((version) => isWanted(version, filters));
  const replica = replicaOf(walk.rows);
  const last = lastVersions(wanted, Number.POSITIVE_INFINITY);
  for (const [id, { us }] of last)
    if (replica.get(id) !== us)
      findings.add('complete', `${chain.name} ${id} is at ${us}; a replica has ${replica.get(id)}`);
  for (const id of replica.keys())
    if (!last.has(id)) findings.add('complete', `${chain.name} ${id} passes no filter of the replica that has it`);
}

/**
 * What a walk back can promise, while updates move activities away to the end, where it does not come again: an activity
 * that lies before its cursor and is not updated until the walk is over comes at its place; whoever begins where a follower
 * stood has so, with the follower, all there is. One that is updated meanwhile comes at its former place, or not at all.
 * No place comes twice, since places come in descending order, which is looked at as they come.
 */
export function checkBackWalk(walk: BackWalk, versions: Versions, findings: Findings): void {
  const { question, upTo, rows, watermark } = walk;
  const seen = new Set(rows.map(({ id, us }) => `${id} ${us}`));
  const wanted = (versions.get(question.chain.name) ?? []).filter((version) => isWanted(version, question.filters));
  for (const [id, { us }] of lastVersions(wanted, watermark))
    if (us < upTo && !seen.has(`${id} ${us}`))
      findings.add('backwards', `${question.chain.name} ${id} stood at ${us}, before ${upTo}, and did not come`);
}

/** What stood at or below a watermark when it was read is all that ever stands there. */
export function checkAudits(
  audits: readonly Audit[],
  chains: readonly FeedChain[],
  { versions, findings }: { versions: Versions; findings: Findings },
): void {
  for (const { partition, watermark, ...found } of audits) {
    const own = chains.filter((chain) => chain.partition === partition);
    const standing = own.flatMap(({ name }) => versions.get(name) ?? []).filter(({ us }) => us <= watermark).length;
    for (const [table, count] of Object.entries(found))
      if (count !== standing)
        findings.add(
          'standing watermarks',
          `${count} of ${standing} rows up to ${watermark} stood in ${table} of partition ${partition}`,
        );
  }
}
