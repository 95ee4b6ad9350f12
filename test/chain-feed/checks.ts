import { isDeepStrictEqual } from 'node:util';
import { toTimestamp } from '@playline/contracts';
import type { Audit } from './auditor.ts';
import type { BackWalk } from './back-walker.ts';
import type { FeedChain } from './feed-rig.ts';
import type { Findings } from './findings.ts';
import type { Walk } from './follower.ts';
import type { ServedVersion } from './page-checks.ts';
import { isMatch, lastVersions, type TimedVersion } from './truth.ts';

export type Versions = ReadonlyMap<string, readonly TimedVersion[]>;

/** Checks that every returned row is a version exactly as published, with its final `updated_at`. */
export function checkServed(pageChecks: Iterable<ServedVersion>, versions: Versions, findings: Findings): void {
  const versionsByName = new Map(
    [...versions.values()].flat().map((version) => [`${version.chain} ${version.id} ${version.us}`, version]),
  );
  for (const { chain, id, us, text } of pageChecks) {
    const version = versionsByName.get(`${chain} ${id} ${us}`);
    const expected = version && { ...version.shown, updated_at: toTimestamp(us) };
    if (!isDeepStrictEqual(JSON.parse(text), expected))
      findings.add('correct content', `${text} is not a version of its activity; expected ${JSON.stringify(expected)}`);
  }
}

const replicaOf = (rows: Walk['rows']): Map<string, number> => new Map(rows.map(({ id, us }) => [id, us]));

// Checks that a replica at the end has each matching activity in the version at the watermark or in a later version.
export function checkArrivals(walk: Walk, versions: Versions, findings: Findings): void {
  const { chain, filters } = walk.query;
  const matchingVersions = (versions.get(chain.name) ?? []).filter((version) => isMatch(version, filters));
  for (const { watermark, count } of walk.arrivals) {
    const replica = replicaOf(walk.rows.slice(0, count));
    for (const [id, { us }] of lastVersions(matchingVersions, watermark))
      if ((replica.get(id) ?? 0) < us)
        findings.add(
          'at the end',
          `${chain.name} ${id} is at ${us}, below ${watermark}; a reader at the end of the feed has ${replica.get(id)}`,
        );
  }
}

/** Checks that a replica eventually has the last version of each matching activity, and no other activity. */
export function checkComplete(walk: Walk, versions: Versions, findings: Findings): void {
  const { chain, filters } = walk.query;
  const matchingVersions = (versions.get(chain.name) ?? []).filter((version) => isMatch(version, filters));
  const replica = replicaOf(walk.rows);
  const last = lastVersions(matchingVersions, Number.POSITIVE_INFINITY);
  for (const [id, { us }] of last)
    if (replica.get(id) !== us)
      findings.add('complete', `${chain.name} ${id} is at ${us}; a replica has ${replica.get(id)}`);
  for (const id of replica.keys())
    if (!last.has(id))
      findings.add('complete', `${chain.name} ${id} does not match the filters of the replica that has it`);
}

// Checks that a backward walk returns each activity before the cursor at its position. Activities that are updated
// during the walk may be missing.
export function checkBackWalk(walk: BackWalk, versions: Versions, findings: Findings): void {
  const { query, upTo, rows, watermark } = walk;
  const seen = new Set(rows.map(({ id, us }) => `${id} ${us}`));
  const matchingVersions = (versions.get(query.chain.name) ?? []).filter((version) => isMatch(version, query.filters));
  for (const [id, { us }] of lastVersions(matchingVersions, watermark))
    if (us < upTo && !seen.has(`${id} ${us}`))
      findings.add('backward reads', `${query.chain.name} ${id} is at ${us}, before ${upTo}, and was not returned`);
}

/** Checks that the tables had all rows up to a watermark when it was published. */
export function checkAudits(
  audits: readonly Audit[],
  chains: readonly FeedChain[],
  { versions, findings }: { versions: Versions; findings: Findings },
): void {
  for (const { partition, watermark, ...found } of audits) {
    const chainsInPartition = chains.filter((chain) => chain.partition === partition);
    const current = chainsInPartition
      .flatMap(({ name }) => versions.get(name) ?? [])
      .filter(({ us }) => us <= watermark).length;
    for (const [table, count] of Object.entries(found))
      if (count !== current)
        findings.add(
          'stable watermarks',
          `${table} contained ${count} of ${current} rows up to ${watermark} in partition ${partition}`,
        );
  }
}
