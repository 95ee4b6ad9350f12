import type { z } from 'zod';
import type { Example, JsonSchema, Operation } from './operation.ts';
import { isPlaceholder } from './placeholders.ts';
import { toWholeSchema } from './schemas.ts';

/** The values that an example's address gives to the parameters of its operation, as text. */
export function valuesIn({ path, parameters }: Operation, { request }: Example): ReadonlyMap<string, string> {
  const { pathname, searchParams } = new URL(request.target, 'http://any');
  const parts = pathname.split('/');
  const inPath = path.split('/').flatMap((part, index): [string, string][] => {
    const name = nameIn(part);
    return name === null || parts[index] === undefined ? [] : [[name, decodeURIComponent(parts[index])]];
  });
  const inQuery = parameters.flatMap((parameter): [string, string][] => {
    const value = parameter.in === 'query' ? searchParams.get(parameter.name) : null;
    return value === null ? [] : [[parameter.name, value]];
  });
  return new Map([...inPath, ...inQuery]);
}

/** Name of the parameter that a part of a path stands for; null for a fixed part. */
export const nameIn = (part: string): string | null => /^\{(\w+)\}$/.exec(part)?.[1] ?? null;

/**
 * The JSON value that a text in an address means.
 * @returns undefined when it is a placeholder, or when the schema does not allow it
 */
export function jsonValueOf(text: string, schema: z.ZodType): unknown {
  if (isPlaceholder(text)) return undefined;
  const { type } = toWholeSchema(schema);
  const value = type === 'integer' || type === 'number' ? toNumber(text) : text;
  return schema.safeParse(value).success ? value : undefined;
}

/** A text that is not a number stays text, which no schema of numbers allows. */
const toNumber = (text: string): unknown => (/^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text);

/**
 * Which values are allowed, where that is more than "text": `integer from 1 to 200`, `one of a, b`, `date-time`, and
 * the default.
 */
export function toValueWords(of: z.ZodType): string[] {
  const schema = toWholeSchema(of);
  const { enum: values, type, format, default: fallback } = schema;
  const words: string[] = [];
  if (Array.isArray(values)) words.push(`one of ${values.join(', ')}`);
  else if (type === 'integer' || type === 'number') words.push(`${type}${toBoundWords(schema)}`);
  else if (format !== undefined) words.push(String(format));
  if (fallback !== undefined) words.push(`${String(fallback)} when absent`);
  return words;
}

function toBoundWords({ minimum, maximum }: JsonSchema): string {
  const [from, to] = [boundOf(minimum), boundOf(maximum)];
  if (from !== null && to !== null) return ` from ${from} to ${to}`;
  if (from !== null) return ` of at least ${from}`;
  return to === null ? '' : ` of at most ${to}`;
}

/** The largest integer that a double can hold is no bound that matters to a caller. */
function boundOf(value: unknown): number | null {
  return typeof value === 'number' && Math.abs(value) < Number.MAX_SAFE_INTEGER ? value : null;
}
