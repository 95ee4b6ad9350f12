import { isJsonObject } from '@playline/contracts';
import { type BodyFaults, type JsonObject, memberOf, readItem, readText, requireKeys } from './values.ts';

export type AttributeValue = string | number | boolean;

export const DISPLAY_TYPES = ['number', 'boost_percentage', 'boost_number', 'date'] as const;

export interface Attribute {
  readonly trait_type: string;
  readonly value: AttributeValue;
  readonly display_type?: (typeof DISPLAY_TYPES)[number];
}

export interface TokenMetadata {
  readonly name: string | null;
  readonly description: string | null;
  readonly image: string | null;
  readonly external_url: string | null;
  readonly animation_url: string | null;
  readonly youtube_url: string | null;
  readonly attributes: readonly Attribute[] | null;
}

const STRING_KEYS = ['name', 'description', 'image', 'external_url', 'animation_url', 'youtube_url'] as const;
const KEYS = [...STRING_KEYS, 'attributes'];
const ATTRIBUTES_MAX = 1_000;

export interface MetadataLocation {
  /** Path to the object with a trailing dot, or ''. */
  readonly path: string;
  /** Whether all keys must be present. Their values may still be null. */
  readonly areKeysRequired: boolean;
}

/** Reads metadata and drops unknown members. */
export function readMetadata(object: JsonObject, location: MetadataLocation, faults: BodyFaults): TokenMetadata {
  const { path, areKeysRequired } = location;
  if (areKeysRequired) requireKeys({ object, path }, KEYS, faults);
  const text = (name: string) => readText({ object, name, path }, faults);
  return {
    name: text('name'),
    description: text('description'),
    image: text('image'),
    external_url: text('external_url'),
    animation_url: text('animation_url'),
    youtube_url: text('youtube_url'),
    attributes: readAttributes(memberOf(object, 'attributes'), `${path}attributes`, faults),
  };
}

function readAttributes(value: unknown, path: string, faults: BodyFaults): Attribute[] | null {
  if (value === undefined) return null;
  if (!Array.isArray(value) || value.length > ATTRIBUTES_MAX)
    return faults.add(path, `must be null or a list of at most ${ATTRIBUTES_MAX} attributes`);
  return value.flatMap((each, index) => {
    const item = readItem(each, `${path}[${index}]`, faults);
    const attribute = item === null ? null : readAttribute(item, `${path}[${index}].`, faults);
    return attribute === null ? [] : [attribute];
  });
}

function readAttribute(item: JsonObject, path: string, faults: BodyFaults): Attribute | null {
  const trait = memberOf(item, 'trait_type');
  const value = memberOf(item, 'value');
  const display = memberOf(item, 'display_type');
  const displayType = DISPLAY_TYPES.find((type) => type === display);
  if (typeof trait !== 'string') faults.add(`${path}trait_type`, 'must be a string');
  if (!isAttributeValue(value)) faults.add(`${path}value`, 'must be a string, a number or a boolean');
  else if (isInexact(value)) faults.add(`${path}value`, INEXACT);
  if (display !== undefined && displayType === undefined)
    faults.add(`${path}display_type`, `must be one of ${DISPLAY_TYPES.join(', ')}`);
  if (typeof trait !== 'string' || !isAttributeValue(value)) return null;
  const shown = typeof value === 'string' ? value.toWellFormed() : value;
  const attribute = { trait_type: trait.toWellFormed(), value: shown };
  return displayType === undefined ? attribute : { ...attribute, display_type: displayType };
}

/** Detects a number that JSON.parse has rounded. */
const isInexact = (value: AttributeValue): boolean =>
  typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value);
const INEXACT = 'must be a string if its absolute value is a whole number above 9007199254740991 (2^53 - 1)';

/** Rejects Infinity, which would be stored as null. */
const isAttributeValue = (value: unknown): value is AttributeValue =>
  typeof value === 'string' || typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value));

/** @returns the JSON to store */
export function readOptionalMetadata(value: unknown, path: string, faults: BodyFaults): string | null {
  if (value === undefined) return null;
  if (!isJsonObject(value)) return faults.add(path, 'must be an object or null');
  const metadata = readMetadata(value, { path: `${path}.`, areKeysRequired: false }, faults);
  // Absent members are not stored, so that they can still be set later.
  const presentMembers = Object.entries(metadata).filter(([name]) => Object.hasOwn(value, name));
  return JSON.stringify(Object.fromEntries(presentMembers));
}
