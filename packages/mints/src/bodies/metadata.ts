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

const TEXTS = ['name', 'description', 'image', 'external_url', 'animation_url', 'youtube_url'] as const;
const KEYS = [...TEXTS, 'attributes'];
const ATTRIBUTES_MAX = 1_000;

export interface MetadataLocation {
  /** Path of its object with a dot at the end, or ''. */
  readonly at: string;
  /** Their values may be null. */
  readonly areKeysRequired: boolean;
}

/** Unknown members are dropped. */
export function readMetadata(object: JsonObject, location: MetadataLocation, faults: BodyFaults): TokenMetadata {
  const { at, areKeysRequired } = location;
  if (areKeysRequired) requireKeys({ object, at }, KEYS, faults);
  const text = (name: string) => readText({ object, name, at }, faults);
  return {
    name: text('name'),
    description: text('description'),
    image: text('image'),
    external_url: text('external_url'),
    animation_url: text('animation_url'),
    youtube_url: text('youtube_url'),
    attributes: readAttributes(memberOf(object, 'attributes'), `${at}attributes`, faults),
  };
}

function readAttributes(value: unknown, at: string, faults: BodyFaults): Attribute[] | null {
  if (value === undefined) return null;
  if (!Array.isArray(value) || value.length > ATTRIBUTES_MAX)
    return faults.add(at, `must be null or a list of at most ${ATTRIBUTES_MAX}`);
  return value.flatMap((each, index) => {
    const item = readItem(each, `${at}[${index}]`, faults);
    const attribute = item === null ? null : readAttribute(item, `${at}[${index}].`, faults);
    return attribute === null ? [] : [attribute];
  });
}

function readAttribute(item: JsonObject, at: string, faults: BodyFaults): Attribute | null {
  const trait = memberOf(item, 'trait_type');
  const value = memberOf(item, 'value');
  const display = memberOf(item, 'display_type');
  const displayType = DISPLAY_TYPES.find((type) => type === display);
  if (typeof trait !== 'string') faults.add(`${at}trait_type`, 'must be a string');
  if (!isAttributeValue(value)) faults.add(`${at}value`, 'must be a string, a number or a boolean');
  else if (isInexact(value)) faults.add(`${at}value`, INEXACT);
  if (display !== undefined && displayType === undefined)
    faults.add(`${at}display_type`, `must be one of ${DISPLAY_TYPES.join(', ')}`);
  if (typeof trait !== 'string' || !isAttributeValue(value)) return null;
  const shown = typeof value === 'string' ? value.toWellFormed() : value;
  const attribute = { trait_type: trait.toWellFormed(), value: shown };
  return displayType === undefined ? attribute : { ...attribute, display_type: displayType };
}

/** JSON.parse has rounded the number. */
const isInexact = (value: AttributeValue): boolean =>
  typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value);
const INEXACT = 'must be a string where a whole number lies beyond 9007199254740991 (2^53 - 1) on either side of zero';

/** Infinity would be stored as null. */
const isAttributeValue = (value: unknown): value is AttributeValue =>
  typeof value === 'string' || typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value));

/** Returns the JSON text to store. */
export function readOptionalMetadata(value: unknown, at: string, faults: BodyFaults): string | null {
  if (value === undefined) return null;
  if (!isJsonObject(value)) return faults.add(at, 'must be an object or null');
  const metadata = readMetadata(value, { at: `${at}.`, areKeysRequired: false }, faults);
  // Absent members are not stored, so that they can be set later.
  const given = Object.entries(metadata).filter(([name]) => Object.hasOwn(value, name));
  return JSON.stringify(Object.fromEntries(given));
}
