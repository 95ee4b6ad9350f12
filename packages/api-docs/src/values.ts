import type { z } from 'zod';
import type { Example, JsonSchema, Operation } from './operation.ts';
import { resolveSchema } from './schemas.ts';
import type { DocsSource } from './source.ts';

/** Returns the placeholder for a key in the syntax of collection variables, such as `{{publishableKey}}`. */
export const placeholderOf = (kind: string): string => `{{${kind}Key}}`;

/** Placeholders for the cursors in the previous response. */
export const CURSOR_PLACEHOLDERS = { next: '{{nextCursor}}', previous: '{{previousCursor}}' } as const;

const PLACEHOLDER = /\{\{(\w+)\}\}/g;

export const isPlaceholder = (text: string): boolean => /^\{\{\w+\}\}$/.test(text);

/** Returns an array that alternates between literal text and placeholder names. */
export const splitAtPlaceholders = (text: string): string[] => text.split(PLACEHOLDER);

/** Returns `$PUBLISHABLE_KEY` for `{{publishableKey}}`. */
export const toShellVariable = (placeholder: string): string =>
  `$${placeholder
    .replaceAll(/[{}]/g, '')
    .replaceAll(/(?=[A-Z])/g, '_')
    .toUpperCase()}`;

/** Returns the placeholders in the examples: first for keys, in source order, then for cursors. */
export function placeholdersIn({ keys }: Pick<DocsSource, 'keys'>, examples: readonly Example[]): string[] {
  const used = new Set(
    examples.flatMap(({ request }) =>
      [request.target, ...Object.values(request.headers)].flatMap((text) => text.match(PLACEHOLDER) ?? []),
    ),
  );
  return [...keys.map(({ kind }) => placeholderOf(kind)), ...Object.values(CURSOR_PLACEHOLDERS)].filter((one) =>
    used.has(one),
  );
}

/** Returns the parameter values in the request target of an example as strings. */
export function valuesIn({ path, parameters }: Operation, { request }: Example): ReadonlyMap<string, string> {
  const { pathname, searchParams } = new URL(request.target, 'http://any');
  const segments = pathname.split('/');
  const inPath = path.split('/').flatMap((segment, index): [string, string][] => {
    const name = nameIn(segment);
    return name === null || segments[index] === undefined ? [] : [[name, decodeURIComponent(segments[index])]];
  });
  const inQuery = parameters.flatMap((parameter): [string, string][] => {
    const value = parameter.in === 'query' ? searchParams.get(parameter.name) : null;
    return value === null ? [] : [[parameter.name, value]];
  });
  return new Map([...inPath, ...inQuery]);
}

/** Returns the name of the path parameter in a segment; null for a literal segment. */
export const nameIn = (segment: string): string | null => /^\{(\w+)\}$/.exec(segment)?.[1] ?? null;

/** Parses a parameter value. Returns undefined for a placeholder or a value that fails validation. */
export function jsonValueOf(text: string, schema: z.ZodType): unknown {
  if (isPlaceholder(text)) return undefined;
  const { type } = resolveSchema(schema);
  const value = type === 'integer' || type === 'number' ? toNumber(text) : text;
  return schema.safeParse(value).success ? value : undefined;
}

/** Returns text that is not numeric unchanged, so that it fails validation against a number schema. */
const toNumber = (text: string): unknown => (/^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text);

/** Describes the constraints of a parameter (`integer from 1 to 200`, `one of a, b`, `date-time`) and its default. */
export function describeValues(type: z.ZodType): string[] {
  const schema = resolveSchema(type);
  const { enum: values, type: jsonType, format, default: defaultValue } = schema;
  const phrases: string[] = [];
  if (Array.isArray(values)) phrases.push(`one of ${values.join(', ')}`);
  else if (jsonType === 'integer' || jsonType === 'number') phrases.push(`${jsonType}${describeBounds(schema)}`);
  else if (format !== undefined) phrases.push(String(format));
  if (defaultValue !== undefined) phrases.push(`default ${String(defaultValue)}`);
  return phrases;
}

function describeBounds({ minimum, maximum }: JsonSchema): string {
  const [from, to] = [toBound(minimum), toBound(maximum)];
  if (from !== null && to !== null) return ` from ${from} to ${to}`;
  if (from !== null) return ` of at least ${from}`;
  return to === null ? '' : ` of at most ${to}`;
}

/** Omits the safe integer bounds that zod adds. */
function toBound(value: unknown): number | null {
  return typeof value === 'number' && Math.abs(value) < Number.MAX_SAFE_INTEGER ? value : null;
}
