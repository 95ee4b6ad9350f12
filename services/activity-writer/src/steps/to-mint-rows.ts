import type { LoggedVersion } from '@playline/chain';
import type { ChainMetadataRecord, MintRequestRecord, MintStateRecord } from '@playline/contracts';
import { type MetadataRow, type MintRow, toMintState, toRequestedState } from '@playline/mints';

/** Largest time of a column with milliseconds: the end of 2299. */
const TIME_MAX_MS = Date.UTC(2299, 11, 31);

/** @throws RangeError that names the member, without its value */
function assertTime(name: string, epochMs: number): void {
  if (!(epochMs >= 0 && epochMs <= TIME_MAX_MS)) throw new RangeError(`${name} is no time that is stored`);
}

function assertCount(name: string, count: number | null): void {
  if (count !== null && !(Number.isSafeInteger(count) && count >= 0)) throw new RangeError(`${name} is no count`);
}

/** @throws RangeError that names what is invalid */
export function toRequestRow(record: MintRequestRecord, version: LoggedVersion): MintRow {
  assertTime('requestedAt', record.requestedAt);
  return { ...toRequestedState(record), metadata: record.metadata, ...version };
}

/** @throws RangeError that names what is invalid */
export function toStateRow(record: MintStateRecord, version: LoggedVersion): MintRow {
  assertTime('requestedAt', record.requestedAt);
  assertTime('changedAt', record.changedAt);
  assertCount('nonce', record.nonce);
  // The request itself has revision 0.
  if (!Number.isSafeInteger(record.revision) || record.revision < 1) throw new RangeError('revision is below 1');
  return { ...toMintState(record), metadata: null, ...version };
}

/** @throws RangeError that names what is invalid */
export function toMetadataRow(record: ChainMetadataRecord, version: LoggedVersion): MetadataRow {
  assertTime('requestedAt', record.requestedAt);
  const { contractAddress, ...rest } = record;
  return { ...rest, ...version, contractAddress: `0x${contractAddress.toString('hex')}` };
}
