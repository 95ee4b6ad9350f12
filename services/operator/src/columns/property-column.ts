import { InvalidArgumentError } from '@commander-js/extra-typings';
import { quoteText } from '@playline/stores';
import { UsageError } from '../command.ts';

export const TYPE_NAMES = ['Int64', 'Float64', 'String', 'LowCardinality(String)', 'Bool', 'DateTime'] as const;
type TypeName = (typeof TYPE_NAMES)[number];

/** How a type is stored, and parsed from JSON. */
interface PropertyType {
  /** ClickHouse type of a column with a default. */
  readonly plain: string;
  readonly nullable: string;
  /** @param raw SQL expression for the raw JSON value @returns a SQL expression that is NULL for other types */
  readonly read: (raw: string) => string;
  /** @throws UsageError when the text is not a valid value of the type */
  readonly parseDefault: (text: string) => string;
  readonly toLiteral: (text: string) => string;
}

const INT64_MAX = 2n ** 63n - 1n;
const DEFAULT_BYTES_MAX = 256;
const ISO_TIME = '\\d{4}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d([.]\\d{1,9})?)?(Z|[+-]\\d\\d:?\\d\\d)?)?';
/** Years that DateTime64(3) can store. */
const [YEAR_MIN, YEAR_MAX] = [1900, 2299];

const refuse = (expected: string): never => {
  throw new UsageError(`--default: expected ${expected}`);
};

function parseInt64(text: string): string {
  const isInteger = /^-?\d{1,19}$/.test(text);
  const value = isInteger ? BigInt(text) : 0n;
  if (!isInteger || value > INT64_MAX || value < -INT64_MAX - 1n)
    return refuse('a whole number from -9223372036854775808 to 9223372036854775807');
  return String(value);
}

function parseFloat64(text: string): string {
  const value = /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text) ? Number(text) : Number.NaN;
  return Number.isFinite(value) ? String(value) : refuse('a number, such as 0 or -1.5');
}

function parseText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern refuses control characters
  if (/[\u0000-\u001f\u007f]/.test(text) || Buffer.byteLength(text) > DEFAULT_BYTES_MAX)
    return refuse(`at most ${DEFAULT_BYTES_MAX} bytes without control characters`);
  return text;
}

/** Times without a time zone are UTC, as in ClickHouse. */
function parseTime(text: string): string {
  const isTime = new RegExp(`^${ISO_TIME}$`).test(text);
  const zoned = /[T ]/.test(text) && !/(Z|[+-]\d\d:?\d\d)$/.test(text) ? `${text}Z` : text;
  const time = new Date(isTime ? zoned.replace(' ', 'T').replace(/([+-]\d\d)(\d\d)$/, '$1:$2') : Number.NaN);
  const year = time.getUTCFullYear();
  if (!(year >= YEAR_MIN && year <= YEAR_MAX))
    return refuse(`a time from ${YEAR_MIN} to ${YEAR_MAX}, such as 2026-01-02T03:04:05Z`);
  return time.toISOString();
}

const textType = (plain: string, nullable: string): PropertyType => ({
  plain,
  nullable,
  read: (raw) => `if(startsWith(${raw}, '"'), JSONExtractString(${raw}), NULL)`,
  parseDefault: parseText,
  toLiteral: quoteText,
});

const number = (plain: 'Int64' | 'Float64', parseDefault: (text: string) => string): PropertyType => ({
  plain,
  nullable: `Nullable(${plain})`,
  // Strings are not converted to numbers; ClickHouse formats 5.0 as 5.
  read: (raw) => `to${plain}OrNull(${raw})`,
  parseDefault,
  toLiteral: (text) => `to${plain}('${text}')`,
});

const PROPERTY_TYPES: Readonly<Record<TypeName, PropertyType>> = {
  Int64: number('Int64', parseInt64),
  Float64: number('Float64', parseFloat64),
  String: textType('String', 'Nullable(String)'),
  'LowCardinality(String)': textType('LowCardinality(String)', 'LowCardinality(Nullable(String))'),
  Bool: {
    plain: 'Bool',
    nullable: 'Nullable(Bool)',
    read: (raw) => `multiIf(${raw} = 'true', true, ${raw} = 'false', false, NULL)`,
    parseDefault: (text) => (text === 'true' || text === 'false' ? text : refuse('true or false')),
    toLiteral: (text) => text,
  },
  DateTime: {
    plain: "DateTime64(3, 'UTC')",
    nullable: "Nullable(DateTime64(3, 'UTC'))",
    read: (raw) =>
      `if(match(${raw}, ${quoteText(`^"${ISO_TIME}"$`)}), ` +
      `parseDateTime64BestEffortOrNull(substring(${raw}, 2, length(${raw}) - 2), 3, 'UTC'), NULL)`,
    parseDefault: parseTime,
    toLiteral: (text) => `toDateTime64('${text.replace('T', ' ').replace('Z', '')}', 3, 'UTC')`,
  },
};

const MEMBERS_MAX = 16;
const BYTES_MAX = 512;
const MEMBER_END = '.';
const ESCAPE = '\\';

/**
 * Parses a path such as `economy.coins` into member names. `\.` is a dot in a name, and `\\` is a backslash. Numbers
 * are names, not indexes. @throws InvalidArgumentError
 */
export function parsePath(text: string): readonly string[] {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern refuses control characters
  if (/[\u0000-\u001f\u007f]/.test(text)) throw new InvalidArgumentError('Expected no control characters.');
  if (Buffer.byteLength(text) > BYTES_MAX) throw new InvalidArgumentError(`Expected at most ${BYTES_MAX} bytes.`);
  const members = splitMembers(text);
  if (members.includes(''))
    throw new InvalidArgumentError(
      'Expected names separated by dots, such as economy.coins. Escape a dot in a name as \\.',
    );
  if (members.length > MEMBERS_MAX) throw new InvalidArgumentError(`Expected at most ${MEMBERS_MAX} members.`);
  return members;
}

function splitMembers(text: string): string[] {
  const members = [''];
  const append = (char: string) => {
    members[members.length - 1] += char;
  };
  let isEscaped = false;
  for (const char of text) {
    if (isEscaped) {
      if (char !== MEMBER_END && char !== ESCAPE)
        throw new InvalidArgumentError('Expected . or \\ after a backslash, as in economy\\.coins, which is one name.');
      append(char);
      isEscaped = false;
    } else if (char === ESCAPE) isEscaped = true;
    else if (char === MEMBER_END) members.push('');
    else append(char);
  }
  if (isEscaped) throw new InvalidArgumentError('Expected . or \\ after the last backslash.');
  return members;
}

/** Distinguishes property columns from other columns. The analyst views and the eraser depend on this prefix. */
export const PREFIX = 'property_';
const NAME = /^[a-z][a-z0-9_]{0,63}$/;

export interface PropertyColumn {
  /** Name without the prefix. */
  readonly name: string;
  /** Path as entered by the operator. */
  readonly path: string;
  readonly type: TypeName;
  /** Value for rows without a valid value, or null for NULL. */
  readonly fallback: string | null;
  /** When the column was added, in ISO 8601 format. */
  readonly since: string;
}

export const columnOf = (name: string): string => PREFIX + name;

/** @throws InvalidArgumentError */
export function parseName(text: string): string {
  if (text.startsWith(PREFIX)) throw new InvalidArgumentError(`Expected the name without ${PREFIX}.`);
  if (!NAME.test(text)) throw new InvalidArgumentError('Expected at most 64 of a-z, 0-9 and _, starting with a-z.');
  return text;
}

interface ColumnOptions {
  readonly name: string;
  readonly path: string;
  readonly type: TypeName;
  readonly default?: string | undefined;
}

/** @throws UsageError for a default that does not have the column's type */
export function parseColumn({ default: text, ...column }: ColumnOptions): Omit<PropertyColumn, 'since'> {
  const fallback = text === undefined ? null : PROPERTY_TYPES[column.type].parseDefault(text);
  return { ...column, fallback };
}

/** New rows store the value when they are inserted; existing rows compute the value on read. */
export function toAddStatement({ name, path, type, fallback, since }: PropertyColumn): string {
  const { plain, nullable, read, toLiteral } = PROPERTY_TYPES[type];
  // ClickHouse evaluates equal expressions once per row.
  const raw = `JSONExtractRaw(properties, ${parsePath(path).map(quoteText).join(', ')})`;
  const value = read(raw);
  const [columnType, expression] =
    fallback === null ? [nullable, value] : [plain, `ifNull(${value}, ${toLiteral(fallback)})`];
  const comment = `Property of events: ${JSON.stringify({ path, type, default: fallback, since })}`;
  return `ALTER TABLE events ADD COLUMN ${columnOf(name)} ${columnType} DEFAULT ${expression} COMMENT ${quoteText(comment)}`;
}

/** Parses a column comment; returns null if the column was not added by this command. */
export function readComment(name: string, comment: string): PropertyColumn | null {
  const [, text = ''] = /^Property of events: (\{.*\})$/.exec(comment) ?? [];
  try {
    const { path, type, default: fallback, since } = JSON.parse(text) as Record<string, unknown>;
    const typeName = TYPE_NAMES.find((each) => each === type);
    if (typeof path !== 'string' || typeof since !== 'string' || typeName === undefined) return null;
    return { name, path, type: typeName, fallback: typeof fallback === 'string' ? fallback : null, since };
  } catch {
    return null;
  }
}

export const describeColumn = ({ path, type, fallback }: Omit<PropertyColumn, 'since' | 'name'>): string =>
  `${path} as ${type}, default ${fallback === null ? 'NULL' : JSON.stringify(fallback)}`;
