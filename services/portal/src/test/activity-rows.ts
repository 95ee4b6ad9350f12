import { randomBytes } from 'node:crypto';

/** @param us epoch microseconds */
export const toTimestamp = (us: number) =>
  `${new Date(Math.floor(us / 1000)).toISOString().slice(0, 19).replace('T', ' ')}.${String(us % 1_000_000).padStart(6, '0')}`;

export const createContract = () => ({ chain: 'main', contractAddress: `0x${randomBytes(20).toString('hex')}` });
export type Contract = ReturnType<typeof createContract>;

export interface Version {
  readonly id: string;
  readonly us: number;
  readonly type?: string;
  readonly tokenId?: string;
  /** Time of the next version, in epoch microseconds. */
  readonly supersededUs?: number;
  readonly indexedUs?: number;
}

/** Returns the rows that the activity writer stores for a version, one for each feed. */
export function toFeedRows({ chain, contractAddress }: Contract, version: Version): object[] {
  const { id, us, type = 'mint', tokenId = '7', supersededUs, indexedUs = us } = version;
  const asset = { contract_type: 'ERC721', contract_address: contractAddress, token_id: tokenId, amount: '1' };
  const members = JSON.stringify({
    type,
    details: { to: '0xto', amount: '1', asset },
    blockchain_metadata: null,
  }).slice(1, -1);
  const entry = { updated_at: toTimestamp(us), id, indexed_at: toTimestamp(indexedUs) };
  const feeds = [
    `${chain} * *`,
    `${chain} * ${type}`,
    `${chain} ${contractAddress} *`,
    `${chain} ${contractAddress} ${type}`,
  ];
  return feeds.flatMap((feed) => [
    { ...entry, entry: 'version', feed, members, superseded_at: '2255-06-05 23:47:34' },
    ...(supersededUs === undefined
      ? []
      : [{ ...entry, entry: 'superseded', feed, superseded_at: toTimestamp(supersededUs) }]),
  ]);
}
