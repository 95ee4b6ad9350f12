import type { FeedRig } from './feed-rig.ts';

export interface Audit {
  readonly partition: number;
  readonly watermark: number;
  readonly activities: number;
  readonly versions: number;
}

const UNFILTERED =
  "(SELECT substring(feed, 1, length(feed) - 4) AS chain, id, updated_at FROM activity_feeds WHERE entry = 'version' AND endsWith(feed, ' * *')) WHERE true";

export async function audit({
  chains,
  watermarks,
  query,
}: Pick<FeedRig, 'chains' | 'watermarks' | 'query'>): Promise<Audit[]> {
  const audits: Audit[] = [];
  for (const [partition, chainsInPartition] of Map.groupBy(chains, (chain) => chain.partition)) {
    const watermark = await watermarks.read(partition);
    if (watermark === null) continue;
    const where = `chain IN (${chainsInPartition.map(({ name }) => `'${name}'`).join()}) AND updated_at <= fromUnixTimestamp64Micro(${watermark}, 'UTC')`;
    const countIn = (from: string) => `(SELECT uniqExact(chain, id, updated_at) FROM ${from} AND ${where})`;
    const [activities = 0, versions = 0] = (
      await query(`SELECT ${countIn('activities WHERE true')}, ${countIn(UNFILTERED)} FORMAT TSV`)
    )
      .split('\t')
      .map(Number);
    audits.push({ partition, watermark, activities, versions });
  }
  return audits;
}
