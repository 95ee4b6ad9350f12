import { quoteText } from '@playline/stores';
import { UsageError } from '../command.ts';

/** Types that a property column may have. */
export const TYPE_NAMES = ['Int64', 'Float64', 'String', 'LowCardinality(String)', 'Bool', 'DateTime'] as const;
export type TypeName = (typeof TYPE_NAMES)[number];

interface PropertyType {
  /** Type of the column in the engine when it has a default; without a default it is nullable. */
  readonly plain: string;
  readonly nullable: string;
  /** @param raw expression of the value's JSON text, empty when absent @returns an expression, NULL for other types */
  readonly read: (raw: string) => string;
  /** A default in the form in which it is stored. @throws UsageError when the text is no value of the type */
  readonly parseDefault: (text: string) => string;
  /** A default that `parseDefault` has accepted, as a literal. */
  readonly toLiteral: (text: string) => string;
}

const INT64_MAX = 2n ** 63n - 1n;
const DEFAULT_BYTES_MAX = 256;
const ISO_TIME = '\\d{4}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d([.]\\d{1,9})?)?(Z|[+-]\\d\\d:?\\d\\d)?)?';
/** Years that the engine stores to the millisecond. */
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
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is refused
  if (/[\u0000-\u001f\u007f]/.test(text) || Buffer.byteLength(text) > DEFAULT_BYTES_MAX)
    return refuse(`at most ${DEFAULT_BYTES_MAX} bytes without control characters`);
  return text;
}

/** Without a time zone it is UTC, as for the engine. */
function parseTime(text: string): string {
  const isTime = new RegExp(`^${ISO_TIME}$`).test(text);
  const zoned = /[T ]/.test(text) && !/(Z|[+-]\d\d:?\d\d)$/.test(text) ? `${text}Z` : text;
  const time = new Date(isTime ? zoned.replace(' ', 'T').replace(/([+-]\d\d)(\d\d)$/, '$1:$2') : Number.NaN);
  const year = time.getUTCFullYear();
  if (!(year >= YEAR_MIN && year <= YEAR_MAX))
    return refuse(`a time of ${YEAR_MIN} to ${YEAR_MAX}, such as 2026-01-02T03:04:05Z`);
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
  // A quoted text is no number, and the engine writes 5.0 as 5.
  read: (raw) => `to${plain}OrNull(${raw})`,
  parseDefault,
  toLiteral: (text) => `to${plain}('${text}')`,
});

/** How each type is stored, and read from the JSON text of a value. */
export const PROPERTY_TYPES: Readonly<Record<TypeName, PropertyType>> = {
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
