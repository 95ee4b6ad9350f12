import { type ChainMetadataRecord, isJsonObject } from '@playline/contracts';
import type { MintAsset } from '../asset.ts';
import { readMetadata, readOptionalMetadata } from './metadata.ts';
import {
  BodyFaults,
  type JsonObject,
  memberOf,
  parseBody,
  readAddress,
  readDigits,
  readItem,
  readList,
  readReferenceId,
  readText,
  readUuid,
  requireKeys,
} from './values.ts';

export const ASSETS_MAX = 100;
export const ASSET_METADATA_BYTES_MAX: number = 16 * 1024;
/** Large enough for a hundred assets with metadata of the maximum size. */
export const MINT_BODY_BYTES_MAX: number = 2 * 1024 * 1024;

/** Unknown members are ignored, and null counts as absent. @throws PublicError VALIDATION_ERROR with all errors */
export function parseMintBody(body: Buffer): readonly MintAsset[] {
  const object = parseBody(body);
  const faults = new BodyFaults();
  const items = readList({ object, name: 'assets', path: '' }, faults, { min: 1, max: ASSETS_MAX });
  const assets = items.flatMap((item, index) => readAsset(item, `assets[${index}]`, faults) ?? []);
  faults.assertNone();
  return assets;
}

function readAsset(item: unknown, itemPath: string, faults: BodyFaults): MintAsset | null {
  const object: JsonObject | null = readItem(item, itemPath, faults);
  if (object === null) return null;
  const path = `${itemPath}.`;
  const referenceId = readReferenceId({ object, name: 'reference_id', path }, faults);
  const ownerAddress = readAddress({ object, name: 'owner_address', path }, faults);
  const tokenId = readDigits({ object, name: 'token_id', path }, faults);
  const amount = readDigits({ object, name: 'amount', path }, faults, { min: 1n });
  const metadata = readOptionalMetadata(memberOf(object, 'metadata'), `${path}metadata`, faults);
  if (metadata !== null && Buffer.byteLength(metadata) > ASSET_METADATA_BYTES_MAX)
    faults.add(`${path}metadata`, `must be at most ${ASSET_METADATA_BYTES_MAX} bytes of JSON`);
  if (referenceId === null || ownerAddress === null) return null;
  return { referenceId, ownerAddress, tokenId, amount, metadata };
}

export const REFRESH_BODY_BYTES_MAX: number = 228 * 1024;
export const TOKENS_MAX = 250;
export const STACKS_MAX = 10;

export type SubjectMetadata = Pick<ChainMetadataRecord, 'kind' | 'subject' | 'metadata'>;

const COLLECTION_KEYS = [
  'name',
  'symbol',
  'description',
  'image',
  'external_link',
  'contract_uri',
  'base_uri',
] as const;

export type CollectionMetadata = Readonly<Record<(typeof COLLECTION_KEYS)[number], string | null>>;

/** @throws PublicError VALIDATION_ERROR with all errors */
export function parseCollectionBody(body: Buffer): CollectionMetadata {
  const object = parseBody(body);
  const faults = new BodyFaults();
  const path = 'collection_metadata.';
  const member = memberOf(object, 'collection_metadata');
  if (!isJsonObject(member)) faults.add('collection_metadata', 'must be an object');
  const metadata = isJsonObject(member) ? member : {};
  if (isJsonObject(member)) requireKeys({ object: metadata, path }, COLLECTION_KEYS, faults);
  const texts = COLLECTION_KEYS.map((name) => [name, readText({ object: metadata, name, path }, faults)] as const);
  faults.assertNone();
  return Object.fromEntries(texts) as CollectionMetadata;
}

/** @throws PublicError VALIDATION_ERROR with all errors */
export function parseTokensBody(body: Buffer): readonly SubjectMetadata[] {
  return parseSubjects(body, { list: 'nft_metadata', kind: 'token', name: 'token_id', max: TOKENS_MAX });
}

/** @throws PublicError VALIDATION_ERROR with all errors */
export function parseStacksBody(body: Buffer): readonly SubjectMetadata[] {
  return parseSubjects(body, { list: 'metadata', kind: 'stack', name: 'metadata_id', max: STACKS_MAX });
}

function parseSubjects(
  body: Buffer,
  { list, kind, name, max }: { list: string; kind: 'token' | 'stack'; name: string; max: number },
): readonly SubjectMetadata[] {
  const object = parseBody(body);
  const faults = new BodyFaults();
  const items = readList({ object, name: list, path: '' }, faults, { min: 1, max });
  const read = items.flatMap((item, index) => {
    const fields = readItem(item, `${list}[${index}]`, faults);
    if (fields === null) return [];
    const path = `${list}[${index}].`;
    const member = { object: fields, name, path };
    if (kind === 'token' && memberOf(fields, name) === undefined) faults.add(`${path}${name}`, 'is missing');
    const subject = kind === 'token' ? readDigits(member, faults) : readUuid(member, faults);
    const metadata = JSON.stringify(readMetadata(fields, { path, areKeysRequired: true }, faults));
    return subject === null ? [] : [{ kind, subject, metadata }];
  });
  faults.assertNone();
  return read;
}
