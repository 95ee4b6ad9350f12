import type { MintAsset } from '../asset.ts';
import { BodyFaults, type JsonObject, memberOf, parseBody } from './faults.ts';
import { readOptionalMetadata } from './metadata.ts';
import { readAddress, readDigits, readItem, readList, readReferenceId } from './values.ts';

export const ASSETS_MAX = 100;
export const ASSET_METADATA_BYTES_MAX: number = 16 * 1024;
/** Enough for a hundred assets with the largest metadata. */
export const MINT_BODY_BYTES_MAX: number = 2 * 1024 * 1024;

/**
 * Reads the assets of a mint request. Unknown members are ignored; null counts as absent.
 * @throws PublicError VALIDATION_ERROR with all faults
 */
export function parseMintBody(body: Buffer): readonly MintAsset[] {
  const object = parseBody(body);
  const faults = new BodyFaults();
  const items = readList({ object, name: 'assets', at: '' }, faults, { min: 1, max: ASSETS_MAX });
  const assets = items.flatMap((item, index) => readAsset(item, `assets[${index}]`, faults) ?? []);
  faults.assertNone();
  return assets;
}

function readAsset(item: unknown, path: string, faults: BodyFaults): MintAsset | null {
  const object: JsonObject | null = readItem(item, path, faults);
  if (object === null) return null;
  const at = `${path}.`;
  const referenceId = readReferenceId({ object, name: 'reference_id', at }, faults);
  const ownerAddress = readAddress({ object, name: 'owner_address', at }, faults);
  const tokenId = readDigits({ object, name: 'token_id', at }, faults);
  const amount = readDigits({ object, name: 'amount', at }, faults, { min: 1n });
  const metadata = readOptionalMetadata(memberOf(object, 'metadata'), `${at}metadata`, faults);
  if (metadata !== null && Buffer.byteLength(metadata) > ASSET_METADATA_BYTES_MAX)
    faults.add(`${at}metadata`, `must have at most ${ASSET_METADATA_BYTES_MAX} bytes of JSON`);
  if (referenceId === null || ownerAddress === null) return null;
  return { referenceId, ownerAddress, tokenId, amount, metadata };
}
